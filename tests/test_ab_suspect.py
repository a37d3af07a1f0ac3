"""The suspect's share before and after an A/B, with intervals; a gain that left it as it was is a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.evidence.finding import Strength
from layers.evidence.guard import Effect
from layers.layer2_stacks.model import Capture
from layers.layer4_ab.analyse import Beside
from layers.layer4_ab.judge import judge
from layers.layer4_ab.leaf_share import leaf_evidence
from layers.layer4_ab.model import AbAnalysis
from tests.ab_builders import analysed, arm_b, fired
from tests.command_runs import document, run
from tests.stack_builders import LOOP, captures, said, stack, write_raw
from tests.test_ab_command import both

HASH, REST = f"{LOOP};hash_tokens engine.py 70", f"{LOOP};run_batch engine.py 45"
PLACE = "engine.py:70"


def side(hits: int, total: int = 300, n: int = 3) -> list[Capture]:
    stacks = [stack(HASH, hits)] if hits else []
    return captures(n, *stacks, stack(REST, total - hits))


def compared(before: list[Capture], after: list[Capture], by: float = 1.10) -> AbAnalysis:
    beside = Beside(leaf=leaf_evidence(before, after, [PLACE]))
    return analysed(b=arm_b(by=by), beside=beside)


def test_a_suspect_that_is_gone_is_evidence_with_its_bound() -> None:
    found = compared(side(90), side(0))
    assert found.leaf is not None
    (one,) = found.leaf.shares
    assert one.before.value == pytest.approx(0.3) and one.after.value == 0.0
    assert one.high < 0 and "→ 0 of 900 ticks, at most" in one.text
    result = judge(found)
    (told,) = [f for f in result.findings if f.statement.startswith("share of the suspect")]
    assert told.statement.startswith(f"share of the suspect, less: {PLACE}: 30.0 % [")
    assert told.strength is Strength.STRONG and len(told.measurements) == 2
    assert result.verdict.word == "improvement" and not result.verdict.directional
    assert result.sections["suspects"][0]["unchanged"] is False


def test_pk537_a_gain_that_left_the_suspect_as_it_was_is_a_hint() -> None:
    found = compared(side(90), side(92))
    told = fired(found)["suspect-unchanged"]
    assert told.effect is Effect.DIRECTIONAL and PLACE in told.message
    assert judge(found).verdict.directional
    assert "suspect-unchanged" not in fired(compared(side(90), side(10)))
    assert "suspect-unchanged" not in fired(compared(side(90), side(92), by=1.0))


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (side(90), [], "no sound capture of B"),
        ([], side(90), "no sound capture of A"),
        (side(10, total=40), side(10, total=40), f"{PLACE} (idle): fewer than 200 ticks of an arm"),
    ],
)
def test_pk538_a_suspect_that_was_not_seen_in_both_arms_is_said(
    before: list[Capture], after: list[Capture], why: str
) -> None:
    found = compared(before, after)
    assert fired(found)["suspect-not-sampled"].message == why
    assert "suspect-unchanged" not in fired(found) and judge(found).sections["suspects"] == []
    assert "suspect-not-sampled" not in fired(compared(side(90), side(0)))


def test_another_thread_in_the_other_arm_is_no_comparison() -> None:
    elsewhere = captures(3, stack("Other.run other.py 3;work other.py 9", 300))
    found = leaf_evidence(side(90), elsewhere, [PLACE])
    assert found.shares == () and found.problems


def raw(folder: Path, name: str, hits: int) -> list[str]:
    """Three captures with what py-spy printed beside them: how they were recorded."""
    paths = [folder / f"{name}{n}.raw" for n in range(3)]
    for path in paths:
        path.with_suffix(".log").write_text(said(300, seconds=15, command="--idle -r 20 -d 15"))
    hash_, rest = stack(HASH, hits), stack(REST, 300 - hits)
    return [write_raw(path, [hash_, rest] if hits else [rest]) for path in paths]


def test_the_command_reads_captures_of_both_arms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stacks = ["--stacks-a", *raw(tmp_path, "a", 90), "--stacks-b", *raw(tmp_path, "b", 3)]
    made = document(capsys, "ab", *both(tmp_path, 1.05), *stacks, "--suspect", PLACE, "--no-record")
    (told,) = made["suspects"]
    assert told["place"] == PLACE and told["before"]["share"] == pytest.approx(0.3)
    assert told["high"] < 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--suspect", PLACE], "give captures of stacks of both arms"),
        (["--stacks-a", "x.raw"], "name the place"),
    ],
)
def test_what_lacks_the_other_half_is_one_line(
    more: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "ab", *both(tmp_path, 1.05), *more, "--no-record")
    assert code == 2 and said in err
