"""A suspect's share counts its waits, ranks it capture by capture, and never says 0 % of what was not hit."""

from __future__ import annotations

import pytest

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.judge import judge
from layers.layer2_stacks.suspect import Place, suspects, with_suspects
from layers.layer2_stacks.weigh import weigh
from tests.command_runs import document
from tests.stack_builders import capture, frame, record, stack

LOOP = "event_loop_normal /srv/engine.py 5"
WAIT = "wait /lib/python3.11/threading.py 327"
KEYS = f"{LOOP};Keys.write /srv/stages/keys.py 61"
OTHER = f"{LOOP};burn /srv/burn.py 9"


@pytest.mark.parametrize(
    ("place", "holds"),
    [
        ("keys.py", True),
        ("stages/keys.py", True),
        ("keys.py:61", True),
        ("keys.py:62", False),
        ("eys.py", False),
        ("write", True),
        ("Keys.write", True),
        ("Other.write", False),
    ],
)
def test_what_a_place_is(place: str, holds: bool) -> None:
    assert Place(place).holds(frame("Keys.write /srv/stages/keys.py 61")) is holds


def test_a_suspect_has_the_time_that_it_waits_and_its_rank_in_each_capture() -> None:
    first = capture(stack(f"{KEYS};{WAIT}", 60), stack(KEYS, 5), stack(OTHER, 35))
    second = capture(stack(f"{KEYS};{WAIT}", 20), stack(OTHER, 80))
    (found,) = suspects(weigh([first, second]), [Place("keys.py:61")])
    assert (found.share.hits, found.share.ticks, found.ranks) == (85, 200, (1, 2))
    assert found.mode is Mode.IDLE
    assert "its rank, capture by capture: 1, 2" in str(found)


def test_a_suspect_that_was_never_hit_has_an_upper_bound() -> None:
    (found,) = suspects(weigh([capture(stack(OTHER, 300))]), [Place("keys.py")])
    assert found.share.hits == 0
    assert found.share.high == pytest.approx(0.00994, abs=1e-5), (
        "0 of 300 independent ticks still allow 1.0 %"
    )
    assert found.ranks == (None,)
    assert "at most 0.99 %" in str(found)


def test_a_suspect_is_asked_for_in_both_modes_and_is_in_the_document() -> None:
    captures = [capture(stack(KEYS, 50), stack(OTHER, 50)), capture(stack(OTHER, 30), mode=Mode.ACTIVE)]
    result = with_suspects(judge(captures), weigh(captures), [Place("keys.py")])
    assert [(s["mode"], s["share"], s["n"]) for s in result.sections["suspects"]] == [
        ("idle", 0.5, 100),
        ("active", 0.0, 30),
    ]
    named = [m for m in result.measurements if m.name.startswith("suspect_share keys.py")]
    assert [(m.value, m.n, m.n_unit) for m in named] == [(0.5, 100, "ticks"), (0.0, 30, "ticks")]
    assert all(m.artifact is not None for m in named), "a report would not pass its lint"


def test_a_forked_helper_is_not_below_the_line_that_started_it() -> None:
    forked = f"{KEYS};_launch /lib/python3.11/multiprocessing/popen_fork.py 71;child /srv/child.py 5"
    found = suspects(weigh([capture(stack(forked, 100))]), [Place("keys.py"), Place("child.py")])
    assert [(one.share.hits, one.share.ticks) for one in found] == [(0, 100), (100, 100)]


def test_without_a_capture_that_counts_there_is_no_suspect() -> None:
    assert suspects(weigh([capture()]), [Place("keys.py")]) == []


def test_the_command_takes_suspects(
    capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("raw") / "a.raw"
    path.write_text(f"{record(stack(KEYS, 30))}\n{record(stack(OTHER, 70))}\n")
    made = document(
        capsys, "layer2", str(path), "--mode", "idle", "--suspect", "keys.py", "--suspect", "none.py"
    )
    assert [(s["place"], s["hits"]) for s in made["suspects"]] == [("keys.py", 30), ("none.py", 0)]
