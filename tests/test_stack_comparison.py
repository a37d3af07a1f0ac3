"""Two sets of captures compared: shares, intervals of differences, what no side may have missed, guards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.stack_change_coverage import Pair, try_pair
from layers.collectors.stacks.recording import Mode
from layers.evidence.guard import Effect
from layers.layer2_stacks.analyse import analyse
from layers.layer2_stacks.choice import Choice
from layers.layer2_stacks.compare import Steadiness, compare_scopes, share_change, unseen
from layers.layer2_stacks.comparison import Comparison, compare_captures
from layers.layer2_stacks.judge import judge
from layers.layer2_stacks.model import Capture, ScopeAnalysis
from layers.layer2_stacks.shares import smallest_visible
from parsers.errors import UsageError
from parsers.stack_model import Stack, ThreadName
from tests.command_runs import document, run
from tests.stack_builders import LOOP, capture, captures, recording, said, stack, write_raw

HASH, REST = f"{LOOP};hash_tokens engine.py 70", f"{LOOP};run_batch engine.py 45"
HASH_KEY = ("engine.py:70", "hash_tokens")


def side(hits: int, total: int = 499, n: int = 3, **how: Any) -> list[Capture]:
    stacks = [stack(HASH, hits)] if hits else []
    return captures(n, *stacks, stack(REST, total - hits), **how)


def scope(of: list[Capture]) -> ScopeAnalysis:
    (found,) = analyse(of).scopes
    return found


def compared(before: list[Capture], after: list[Capture]) -> Comparison:
    found = compare_captures(before, after)
    assert found is not None
    return found


def effect(of: Comparison, code: str) -> Effect | None:
    return next((g.effect for g in of.guards if g.code == code and g.fired), None)


def test_a_line_that_is_gone_has_the_one_sided_exact_bound() -> None:
    change = share_change(HASH_KEY, scope(side(100)), scope(side(0)))
    after = change.after
    assert (after.hits, after.value, after.low) == (0, 0.0, 0.0)
    assert after.high == pytest.approx(1 - 0.05 ** (1 / 1497)) and "one-sided" in after.method
    assert change.clear and change.difference == pytest.approx(-100 / 499)
    assert change.low < change.difference < change.high < 0
    assert change.steadiness is Steadiness.ONE_OFF


def test_zero_of_300_independent_ticks_still_allow_one_percent() -> None:
    alone = scope([capture(stack(REST, 300))])
    assert unseen(alone).high == pytest.approx(0.00994, abs=1e-5)


def test_the_design_effect_of_other_lines_widens_the_bound_of_none() -> None:
    uneven = [capture(stack(REST, n), stack(f"{LOOP};g engine.py 2", 499 - n)) for n in (450, 250, 100)]
    found = scope(uneven)
    assert found.design_effect is not None and found.design_effect > 50
    assert unseen(found).high == smallest_visible(3 * 499, found.design_effect)
    assert unseen(found).high > 50 * unseen(scope(side(0))).high


def test_a_small_change_is_not_clear() -> None:
    found = compared(side(100), side(105))
    (line,) = [c for c in found.lines if c.where == "engine.py:70"]
    assert not line.clear and line.low < 0 < line.high and line.steadiness is Steadiness.STEADY
    (finding,) = [f for f in judge(side(105), before=side(100)).findings if "changed clearly" in f.statement]
    assert finding.negative and "points would have been seen" in finding.statement


def test_a_clear_change_is_a_finding_with_both_shares() -> None:
    result = judge(side(0), before=side(100))
    said_so = [f.statement for f in result.findings if "engine.py:70" in f.statement]
    assert len(said_so) == 1 and "lost 20.0 points" in said_so[0] and "0 hits: at most 0.2 %" in said_so[0]
    lines = result.sections["comparison"]["lines"]
    assert {line["where"] for line in lines if line["clear"]} == {"engine.py:70", "engine.py:45"}
    assert result.verdict == judge(side(0)).verdict, "a comparison does not change the verdict"


def test_many_lines_that_chance_moves_are_not_all_clear() -> None:
    rng = np.random.default_rng(5)
    clear, trials = 0, 100
    for _ in range(trials):
        sides = [
            [
                capture(*(stack(f"{LOOP};f engine.py {n}", int(k)) for n, k in enumerate(counts, 1) if k))
                for counts in rng.multinomial(499, [0.05] * 20, size=3)
            ]
            for _ in range(2)
        ]
        clear += any(c.clear for c in compare_scopes(*map(scope, sides)))
    assert clear <= 10, "5 in 100 runs may show one; each line by itself would in most of them"


@pytest.mark.parametrize(
    "pair",
    [Pair(0.2, 0.2, 8.0, 3), Pair(0.2, 0.02, 3.0, 3), Pair(0.5, 0.5, 1.0, 5, spread=0.15)],
    ids=["correlated", "gone", "varying"],
)
def test_intervals_of_changes_cover_the_true_one(pair: Pair) -> None:
    found = try_pair(pair, trials=200, seed=3)
    assert found.coverage >= 0.93
    if pair.before == pair.after:
        assert found.claims <= 0.05


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 200), min_size=2, max_size=4),
    st.lists(st.integers(0, 200), min_size=2, max_size=4),
)
def test_a_difference_lies_in_its_interval_and_turns_its_sign_with_the_sides(
    old: list[int], new: list[int]
) -> None:
    before, after = ([c for n in hits for c in side(n, 250, n=1)] for hits in (old, new))
    forth, back = (share_change(HASH_KEY, scope(a), scope(b)) for a, b in ((before, after), (after, before)))
    assert -1 <= forth.low <= forth.difference <= forth.high <= 1
    assert (back.difference, back.low, back.high) == pytest.approx(
        (-forth.difference, -forth.high, -forth.low)
    )


def test_pk240_sides_that_were_not_recorded_alike() -> None:
    def by(profiler: str) -> list[Capture]:
        return side(100, recording=recording(profiler=profiler))

    assert effect(compared(by("py-spy 0.4.2"), by("py-spy 0.4.3")), "PK240") is Effect.VOID
    full = captures(3, stack("Scheduler.event_loop_normal /srv/engine.py 53", 499))
    assert effect(compared(full, side(100)), "PK240") is Effect.VOID
    native = captures(3, stack(f"{REST};time_sleep libc.so", 499))
    assert effect(compared(native, side(100)), "PK240") is Effect.VOID
    unnamed = captures(3, stack(REST, 499, None))
    assert compared(unnamed, side(100)).void
    nolineno = captures(3, stack("Scheduler.event_loop_normal engine.py", 499))
    assert effect(compared(nolineno, side(100)), "PK240") is Effect.VOID
    found = compared(by("py-spy 0.4.3"), by("py-spy 0.4.3"))
    assert effect(found, "PK240") is None and not found.void and found.lines


def test_a_void_comparison_costs_itself_alone() -> None:
    native = captures(3, stack(f"{REST};time_sleep libc.so", 499))
    result = judge(side(100), before=native)
    assert result.sections["comparison"]["lines"] == [] and result.sections["comparison"]["void"]
    assert result.verdict == judge(side(100)).verdict and result.findings


def test_pk241_a_thread_or_a_mode_that_one_side_lacks() -> None:
    other = captures(3, stack("watch engine.py 3", 499, ThreadName("8", "watchdog")))
    assert effect(compared(other, side(100)), "PK241") is Effect.VOID
    assert effect(compared(side(100, mode=Mode.ACTIVE), side(100)), "PK241") is Effect.VOID
    assert effect(compared(side(100), side(90)), "PK241") is None
    assert compare_captures(side(100), [capture()]) is None
    late = side(100, log=said(499, "py-spy> 3.0s behind in sampling, results may be inaccurate."))
    assert effect(compared(late, side(90)), "PK241") is Effect.VOID, "all before fell behind"


def test_pk242_few_captures_on_a_side() -> None:
    assert effect(compared(side(100, n=2), side(90)), "PK242") is Effect.DIRECTIONAL
    assert effect(compared(side(100), side(90)), "PK242") is None


def test_pk243_lines_that_moved() -> None:
    before, after = (
        captures(3, stack(f"{LOOP};burn engine.py {n}", 300), stack(REST, 199)) for n in (14, 19)
    )
    found = compared(before, after)
    assert effect(found, "PK243") is Effect.NOTE
    burn = next(c for c in found.functions if c.function == "burn")
    assert burn.difference == 0 and not burn.clear
    assert effect(compared(before, before), "PK243") is None


def test_pk244_a_recording_that_nobody_tells_of() -> None:
    assert effect(compared(side(100), side(90)), "PK244") is Effect.NOTE
    own = recording()
    assert effect(compared(side(100, recording=own), side(90, recording=own)), "PK244") is None


def test_a_choice_is_of_the_thread_after_the_change() -> None:
    other = stack("watch engine.py 3", 499, ThreadName("8", "watchdog"))
    both = [*captures(3, stack(REST, 499), other)]
    found = compare_captures(both, both, Choice(thread="watchdog"))
    assert found is not None and found.thread == "watchdog in watch"
    with pytest.raises(UsageError):
        compare_captures(both, both, Choice(thread="nobody"))


def test_two_sets_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def files(name: str, *stacks: Stack) -> list[str]:
        return [write_raw(tmp_path / f"{name}{n}.raw", stacks) for n in range(3)]

    before, after = files("before", stack(HASH, 100), stack(REST, 399)), files("after", stack(REST, 499))
    options = ("--compare", *before)
    made = document(capsys, "layer2", *after, *options, "--mode", "idle")
    first = made["comparison"]["lines"][0]
    assert first["clear"] and abs(first["difference"]) == pytest.approx(100 / 499)
    assert len(made["captures"]) == 3
    _, out, _ = run(capsys, "layer2", *after, *options, "--mode", "idle", "--no-record")
    assert "before" in out and "-20.0" in out and max(map(len, out.splitlines())) <= 120


def test_pk245_two_programs_whose_threads_have_the_same_name() -> None:
    def program(entry: str, *below: str) -> list[Capture]:
        wait = stack(f"{entry};Queue.get queue.py 171", 199)
        return captures(3, *(stack(f"{entry};{one}", 300 // len(below)) for one in below), wait)

    mine, theirs = program("main a.py 1", "work a.py 9"), program("serve b.py 1", "step b.py 9")
    assert effect(compared(mine, theirs), "PK245") is Effect.VOID, "that both wait in a queue is nothing"
    renamed = program("run a.py 1", "work a.py 12")
    assert effect(compared(mine, renamed), "PK245") is None, (
        "the entry has another name, the work is the same"
    )
    rewritten = program("main a.py 1", "other a.py 30")
    assert effect(compared(mine, rewritten), "PK245") is None, "the same thread does other work"
