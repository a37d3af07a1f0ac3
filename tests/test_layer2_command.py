"""`perfkit layer2`: captures in, one verdict out, in the terminal, as JSON and in the investigation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layers.evidence.store import Investigation
from parsers.stack_model import Stack, ThreadName
from tests.command_runs import document, run
from tests.stack_builders import LOOP, said, stack, write_raw

QUEUE = f"{LOOP};Queue.get queue.py 171;Condition.wait threading.py 327"
OTHER = ThreadName("8", "watchdog")
IDLE = (stack(QUEUE, 400), stack(f"{LOOP};burn engine.py 14", 99), stack("watch engine.py 3", 499, OTHER))
ACTIVE = (stack(f"{LOOP};burn engine.py 14", 95), stack("watch engine.py 3", 2, OTHER))


def written(folder: Path, name: str, *stacks: Stack, log: bool = True, command: str = "") -> str:
    """A capture with py-spy's words beside it."""
    path = write_raw(folder / name, stacks)
    if log:
        samples = sum(of.count for of in stacks)
        Path(path).with_suffix(".log").write_text(said(samples, name=name, command=command), encoding="utf-8")
    return path


def idle_three(folder: Path) -> list[str]:
    return [written(folder, f"idle_{n}.raw", *IDLE) for n in range(3)]


def test_the_document_has_the_names_of_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = document(capsys, "layer2", *idle_three(tmp_path))
    assert (made["command"], made["verdict"]["word"]) == ("layer2", "blocked")
    first = made["captures"][0]
    names = ("mode", "samples", "ticks", "expected_ticks", "errors", "lagged", "void")
    assert {name: first[name] for name in names} == {
        "mode": "idle",
        "samples": 998,
        "ticks": 499,
        "expected_ticks": 499,
        "errors": 0,
        "lagged": False,
        "void": False,
    }
    assert first["file"].endswith("idle_0.raw")
    (scope,) = [s for s in made["scopes"] if s["chosen"]]
    assert (scope["scope"], scope["ticks"]) == ("MainThread in event_loop_normal", 3 * 499)
    leaf = scope["leaves"][0]
    assert (leaf["where"], leaf["function"], leaf["n"]) == ("threading.py:327", "wait", 3 * 499)
    assert leaf["share"] == pytest.approx(400 / 499) and leaf["low"] < leaf["share"] < leaf["high"]
    assert {"findings", "guards", "guards_clear", "measurements", "thread", "lost"} <= made.keys()


def test_the_terminal_names_the_verdict_first_and_fits_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    active = [written(tmp_path, f"active_{n}.raw", *ACTIVE) for n in range(3)]
    code, out, err = run(
        capsys, "layer2", *idle_three(tmp_path), *active, "--mode", "active=active_*", "--no-record"
    )
    assert out.startswith("BLOCKED?   MainThread in event_loop_normal waits for 80.2 %") and code == 3
    assert err == "" and max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 80
    text = " ".join(out.split())
    for words in ("where it is at all looks (--idle)", "where it is on a CPU", "watchdog in watch", "PK210"):
        assert words in text
    for words in ("on CPU", "would have been seen", "ruled out", "strength", "3 captures", "looks"):
        assert words in text


def test_zero_samples_print_their_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "empty.raw", command="--pid 7 --threads")
    code, out, _ = run(capsys, "layer2", "--raw", path, "--no-record")
    text = " ".join(out.split())
    assert code == 4 and text.startswith("VOID empty.raw: 0 samples in 25 s. This is not a clean result")
    assert "without --idle every thread was blocked" in text and "→ record with --idle, under load" in text


def test_a_result_is_recorded_with_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "investigation"
    code, _, err = run(capsys, "layer2", *idle_three(tmp_path), "--investigation", str(folder))
    assert code == 3 and "recorded as run 1" in err
    with Investigation.open(folder) as opened:
        (recorded,) = opened.runs()
    assert recorded.document["command"] == "layer2" and recorded.document["scopes"]


def test_a_folder_stands_for_the_captures_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    idle_three(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing of note\n", encoding="utf-8")
    assert len(document(capsys, "layer2", str(tmp_path))["captures"]) == 3
    several = [str(tmp_path / f"idle_{n}.raw") for n in range(3)]
    assert len(document(capsys, "layer2", "--raw", *several)["captures"]) == 3, "as a shell expands a pattern"
    assert len(document(capsys, "layer2", str(tmp_path / "idle_[01].raw"))["captures"]) == 2


def test_modes_come_from_an_option_a_command_or_the_ticks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def modes(*arguments: str) -> list[tuple[str, str]]:
        return [(c["mode"], c["mode_from"]) for c in document(capsys, "layer2", *arguments)["captures"]]

    told, ticks, unknown = (
        written(tmp_path, "told.raw", *ACTIVE, command="--pid 7 -t --gil"),
        written(tmp_path, "ticks.raw", *IDLE),
        written(tmp_path, "unknown.raw", *ACTIVE),
    )
    assert modes(told, ticks, unknown) == [
        ("gil", "py-spy's command in the log"),
        ("idle", "its ticks: none was left out"),
        ("unknown", "nobody"),
    ]
    assert modes(told, unknown, "--mode", "idle", "--mode", "active=unk*") == [
        ("idle", "the caller"),
        ("active", "the caller"),
    ]


def test_a_terminals_text_with_several_runs_is_one_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [written(tmp_path, f"c{n}.raw", *ACTIVE, log=False) for n in range(2)]
    pasted = tmp_path / "terminal.txt"
    texts = [
        said(97, name="out/c0.raw", command="--idle -o out/c0.raw --pid 7"),
        said(97, "py-spy> 2.5s behind in sampling, results may be inaccurate.", name="c1.raw", command="-t"),
        said(3, name="elsewhere.raw"),
    ]
    pasted.write_text("user@gpu:~$ ls\n" + "".join(texts), encoding="utf-8")
    made = document(capsys, "layer2", *paths, "--log", str(pasted))
    assert [(c["mode"], c["lagged"]) for c in made["captures"]] == [("idle", False), ("active", True)]
    assert made["lost"] == [f"{pasted}: a run that wrote elsewhere.raw"]


def test_a_speedscope_file_is_read_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    profile = {
        "type": "sampled",
        "name": 'Thread 7 "MainThread"',
        "unit": "seconds",
        "samples": [[0]] * 40,
        "weights": [0.05] * 40,
    }
    shared = {"frames": [{"name": "event_loop_normal", "file": "engine.py", "line": 9}]}
    path.write_text(json.dumps({"profiles": [profile], "shared": shared, "exporter": "py-spy@0.4.3"}))
    made = document(capsys, "layer2", str(path), "--mode", "idle")
    assert (made["captures"][0]["samples"], made["captures"][0]["profiler"]) == (40, "py-spy 0.4.3")


def test_later_captures_tell_a_one_off_from_a_steady_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loads = stack(f"{LOOP};compile engine.py 70", 200)
    early = [written(tmp_path, f"e{n}.raw", loads, stack(LOOP, 299)) for n in range(3)]
    late = [written(tmp_path, f"l{n}.raw", stack(LOOP, 499)) for n in range(3)]
    options = ("--later", *late)
    made = document(capsys, "layer2", *early, *options, "--mode", "idle")
    assert {c["where"]: c["steadiness"] for c in made["later"]["lines"]}["engine.py:70"] == "one-off"
    assert len(made["captures"]) == 3
    _, out, _ = run(capsys, "layer2", *early, *options, "--mode", "idle", "--no-record")
    assert "one-off" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "name a service"),
        (("nowhere.raw",), "nowhere.raw"),
        (("*.nothing",), "no file matches"),
        (("FILE", "--mode", "wall"), "say idle, active or gil"),
        (("FILE", "--mode", "wall=*.raw"), "say idle, active or gil"),
        (("FILE", "--thread", "nobody"), "no such thread in these captures; there is MainThread"),
        (("FILE", "--log", "LOG"), "tells of none of these captures"),
        (("SVG",), "a drawing (py-spy's default format)"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {
        "FILE": written(tmp_path, "a.raw", *IDLE),
        "LOG": str(tmp_path / "log"),
        "SVG": str(tmp_path / "x.svg"),
    }
    Path(made["LOG"]).write_text(said(1, name="z.raw") + said(2, name="y.raw"), encoding="utf-8")
    Path(made["SVG"]).write_text('<?xml version="1.0"?><svg/>', encoding="utf-8")
    code, out, err = run(capsys, "layer2", *(made.get(a, a) for a in arguments), "--no-record")
    assert (code, out, len(err.splitlines())) == (2, "", 1) and says in err


def test_what_cannot_be_read_is_told_and_does_not_stop_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chrome.json").write_text('[{"ph": "B"}]', encoding="utf-8")
    made = document(capsys, "layer2", *idle_three(tmp_path), str(tmp_path / "chrome.json"))
    assert len(made["captures"]) == 3 and "a chrome trace" in made["lost"][0]


def test_hostile_names_are_shown_and_not_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("\x1b[31mred", "<script>", "[bold]x")
    stacks = [stack(f"{name} a.py {n}", 100) for n, name in enumerate(names)]
    _, out, _ = run(capsys, "layer2", written(tmp_path, "h.raw", *stacks), "--no-record")
    assert "\x1b" not in out and "[bold]x" in out and "<script>" in out
