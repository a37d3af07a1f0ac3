"""Guards on the thread of the verdict: each fires on its trap and not without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from layers.collectors.stacks.recording import LoadEvidence, Mode, ThreadCpu
from layers.evidence.guard import Checked, Effect
from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from layers.layer2_stacks.judge import judge
from layers.layer2_stacks.model import Capture
from layers.layer2_stacks.waits import SHM_BROADCAST
from parsers.stack_model import Stack, ThreadName
from tests.stack_builders import LOOP, MAIN, capture, captures, recording, said, stack

OTHER = ThreadName("8", "watchdog")
QUEUE = f"{LOOP};Queue.get queue.py 171;Condition.wait threading.py 327"
SELECT = "main app.py 3;EpollSelector.select selectors.py 468"
BUSY = (stack(f"{LOOP};burn engine.py 14", 300), stack(f"{LOOP};f engine.py 2", 199))
FORKED = (
    f"<module> engine.py 9;{LOOP};BaseProcess.start multiprocessing/process.py 121;"
    "Popen._launch multiprocessing/popen_fork.py 71;BaseProcess._bootstrap multiprocessing/process.py 314;"
)


def checked(of: Sequence[Capture], code: str) -> Checked | None:
    return next((g for g in judge(of).guards if g.code == code), None)


def effect(of: Sequence[Capture], code: str) -> Effect | None:
    """Of the guard where it fired."""
    found = checked(of, code)
    return found.effect if found is not None and found.fired else None


def three(*stacks: Stack, **how: Any) -> list[Capture]:
    return captures(3, *stacks, **how)


def test_sound_captures_under_a_load_that_was_watched_fire_nothing_but_work_or_wait() -> None:
    load = LoadEvidence("the server's counters", 40, 8.0, None)
    stacks = (stack(f"{LOOP};burn /srv/a/engine.py 14", 300), stack(f"{LOOP};f /srv/a/engine.py 2", 199))
    result = judge(three(*stacks, recording=recording(load=load)))
    assert [g.code for g in result.guards if g.fired] == ["PK226"]


def test_pk210_a_thread_that_waits_for_work_under_a_load_that_nobody_watched() -> None:
    assert effect(three(stack(QUEUE, 499)), "PK210") is Effect.DIRECTIONAL
    assert effect(three(*BUSY), "PK210") is Effect.NOTE
    load = LoadEvidence("the server's counters", 40, 8.0, None)
    assert effect(three(stack(QUEUE, 499), recording=recording(load=load)), "PK210") is None


def test_pk213_a_fork_that_carries_a_loop() -> None:
    helper = stack(f"{FORKED}helper_main engine.py 5", 400, None, 1, 2)
    found = checked(three(stack(LOOP, 499, None, 1), helper), "PK213")
    assert found and found.fired and "helper_main" in found.message and "1,200 ticks" in found.message
    assert effect(three(stack(LOOP, 499, None, 1)), "PK213") is None
    launched = FORKED.replace(f"{LOOP};", "")
    own = stack(f"{launched}{LOOP}", 499, None, 1, 2)
    assert effect(three(own), "PK213") is None, "a scheduler that was forked itself carries no loop"


def test_pk214_threads_that_were_not_recorded() -> None:
    assert effect(three(stack(LOOP, 499, None)), "PK214") is Effect.NOTE
    assert effect(three(stack(LOOP, 900, None)), "PK214") is Effect.DIRECTIONAL
    assert effect(three(stack(LOOP, 499, None), log=None), "PK214") is Effect.DIRECTIONAL
    assert effect(three(*BUSY), "PK214") is None


def test_pk215_files_without_a_folder() -> None:
    assert effect(three(*BUSY), "PK215") is Effect.NOTE
    merged = (stack(f"{LOOP};f utils.py 4", 250), stack(f"{LOOP};g utils.py 4", 249))
    found = checked(three(*merged), "PK215")
    assert found and found.effect is Effect.DIRECTIONAL and "utils.py:4 in f and g" in found.message
    lambdas = (stack(f"{LOOP};f utils.py 4", 250), stack(f"{LOOP};<lambda> utils.py 4", 249))
    assert effect(three(*lambdas), "PK215") is Effect.NOTE
    for file in ("/srv/engine.py", "vllm/core.py", "threading.py"):
        assert effect(three(stack(f"{LOOP};f {file} 2", 499)), "PK215") is None


def test_pk216_several_modes_are_told_and_never_pooled() -> None:
    both = [*three(*BUSY), *captures(3, stack(f"{LOOP};burn engine.py 14", 290), mode=Mode.ACTIVE)]
    found = checked(both, "PK216")
    assert found and found.fired and "3 idle, 3 active" in found.message
    ticks = {(s["mode"], s["ticks"]) for s in judge(both).sections["scopes"]}
    assert ticks == {("idle", 3 * 499), ("active", 3 * 290)}
    assert effect(three(*BUSY), "PK216") is None


@pytest.mark.parametrize(("n", "ticks", "fires"), [(3, 499, False), (2, 499, True), (3, 60, True)])
def test_pk218_few_ticks_or_few_captures(n: int, ticks: int, fires: bool) -> None:
    found = checked(captures(n, stack(LOOP, ticks), log=None), "PK218")
    assert found and found.fired is fires and found.effect is Effect.DIRECTIONAL


def test_pk219_captures_that_disagree() -> None:
    waits, works = capture(stack(QUEUE, 400), stack(LOOP, 99)), capture(stack(QUEUE, 100), stack(LOOP, 399))
    assert effect([waits, works, waits], "PK219") is Effect.DIRECTIONAL
    more, less = (capture(stack(LOOP, n), stack(f"{LOOP};f a.py 2", 499 - n)) for n in (400, 300))
    assert effect([more, less, more], "PK219") is Effect.NOTE
    assert effect(three(*BUSY), "PK219") is None
    assert checked([waits], "PK219") is None


def test_pk221_a_line_with_several_callers() -> None:
    call = "_call_impl torch/nn/modules/module.py 1790;linear torch/nn/functional.py 5"
    stacks = (stack(f"{LOOP};attend a.py 3;{call}", 300), stack(f"{LOOP};mlp a.py 9;{call}", 199))
    found = checked(three(*stacks), "PK221")
    assert found and found.fired and "900 from attend (a.py:3), 597 from mlp (a.py:9)" in found.message
    assert effect(three(stacks[0]), "PK221") is None


def test_pk222_a_front_process() -> None:
    front = (stack(SELECT, 499), stack("f a.py 1;Queue.get queue.py 171", 499, OTHER))
    assert effect(three(*front), "PK222") is Effect.DIRECTIONAL
    assert effect(three(front[0], stack(QUEUE, 499, OTHER)), "PK222") is None, "a loop of an engine"
    assert effect(three(front[0], stack("f a.py 1", 499, OTHER)), "PK222") is None, "one of them works"
    assert checked(three(*BUSY, mode=Mode.ACTIVE), "PK222") is None


def test_pk223_versions_and_switches_that_differ() -> None:
    def by(profiler: str, *command: str) -> Capture:
        return capture(*BUSY, recording=recording(profiler=profiler, command=command))

    assert effect([by("py-spy 0.4.2"), by("py-spy 0.4.3")], "PK223") is Effect.NOTE
    assert effect([by("py-spy 0.4.3", "--threads"), by("py-spy 0.4.3", "--native")], "PK223") is Effect.NOTE
    assert effect([by("py-spy 0.4.3"), by("py-spy 0.4.3")], "PK223") is None
    without = capture(stack("Scheduler.event_loop_normal engine.py", 499))
    assert effect([capture(*BUSY), without], "PK223") is Effect.DIRECTIONAL
    assert checked([capture(*BUSY)], "PK223") is None


def test_pk224_a_spin_that_takes_a_core() -> None:
    spin = stack(f"{LOOP};acquire_read {SHM_BROADCAST} 674", 480)
    assert effect(three(spin, stack(LOOP, 19), mode=Mode.ACTIVE), "PK224") is Effect.NOTE
    assert judge(three(spin, stack(LOOP, 19), mode=Mode.ACTIVE)).verdict.word == "blocked"
    assert effect(three(*BUSY), "PK224") is None


def test_pk225_stacks_that_lack_their_root() -> None:
    torn = (stack(LOOP, 480), stack("burn engine.py 14", 19))
    assert effect(three(*torn), "PK225") is Effect.DIRECTIONAL
    assert effect(three(*BUSY), "PK225") is None
    assert checked(three(stack("f a.py 1", 499)), "PK225") is None


def test_pk226_idle_captures_do_not_tell_work_from_a_call_that_blocks() -> None:
    assert effect(three(*BUSY), "PK226") is Effect.NOTE
    assert effect(three(stack(QUEUE, 499)), "PK226") is None
    native = stack(f"{LOOP};f a.py 3;time_sleep libpython3.11.so", 499)
    assert effect(three(native), "PK226") is None
    both = [*three(*BUSY), *captures(3, stack(f"{LOOP};burn engine.py 14", 490), mode=Mode.ACTIVE)]
    assert effect(both, "PK226") is None


@pytest.mark.parametrize(("on_cpu_s", "fires"), [(24.0, False), (4.0, True)])
def test_pk228_the_kernel_counts_otherwise(on_cpu_s: float, fires: bool) -> None:
    cpu = ThreadCpu(7, "MainThread", on_cpu_s, 0.5, 25.0)
    of = three(*BUSY, mode=Mode.ACTIVE, recording=recording(threads=(cpu,)))
    found = checked(of, "PK228")
    assert found and found.fired is fires and "100.0 % by stacks" in found.message
    assert checked(three(*BUSY, mode=Mode.ACTIVE), "PK228") is None


def test_pk234_a_thread_that_waited_for_a_core() -> None:
    """The same stacks: what the thread computes is ruled out only where it had a core to compute on."""
    lines = (stack(f"{LOOP};f /srv/a/engine.py 2", 400), stack(f"{LOOP};burn /srv/a/engine.py 14", 99))
    load = LoadEvidence("the server's counters", 40, 8.0, None)

    def judged(waiting_s: float) -> Result:
        ours = ThreadCpu(7, "MainThread", 4.5 - waiting_s / 4, waiting_s, 25.0)
        other = ThreadCpu(8, "watchdog", 0.0, 20.0, 25.0)
        how = recording(load=load, threads=(ours, other))
        seen = captures(3, *lines, recording=how)
        return judge([*seen, *captures(3, lines[1], mode=Mode.ACTIVE, recording=how, log=said(99))])

    free, taken = judged(1.0), judged(11.0)
    guards = [next(g for g in one.guards if g.code == "PK234") for one in (free, taken)]
    assert [(g.fired, g.effect) for g in guards] == [(False, Effect.DIRECTIONAL), (True, Effect.DIRECTIONAL)]
    assert "waited for one for 44.0 % (6 captures)" in guards[1].message
    assert taken.sections["thread"]["core_wait"]["waiting"] == pytest.approx(0.44)
    assert (free.verdict.word, taken.verdict.word) == ("blocked", "blocked")
    assert taken.verdict.exit_code == Exit.NO_CONCLUSION
    assert [f.negative for f in free.findings].count(True) == 1
    assert not any(f.negative for f in taken.findings)


def test_pk229_several_loops_of_an_engine() -> None:
    ranks = [stack(LOOP, 499, MAIN, pid) for pid in (1, 2)]
    found = checked(three(*ranks), "PK229")
    assert found and found.fired and "process 1" in found.message and "process 2" in found.message
    assert effect(three(*BUSY), "PK229") is None


@pytest.mark.parametrize(("ticks", "fires"), [(480, True), (110, False)])
def test_pk232_two_modes_that_contradict_each_other(ticks: int, fires: bool) -> None:
    idle = three(stack(QUEUE, 400), stack(LOOP, 99))
    found = checked([*idle, *captures(3, stack(LOOP, ticks), mode=Mode.ACTIVE)], "PK232")
    assert found and found.fired is fires
    spin = three(stack(f"{LOOP};acquire_read {SHM_BROADCAST} 674", 400), stack(LOOP, 99))
    spins = checked([*spin, *captures(3, stack(LOOP, ticks), mode=Mode.ACTIVE)], "PK232")
    assert spins and not spins.fired
    assert checked(idle, "PK232") is None


def test_pk233_one_file_under_several_names_is_no_repeat() -> None:
    def files(*sums: str, stacks: Sequence[Stack] = BUSY) -> list[Capture]:
        some = captures(len(sums), *stacks)
        return [
            replace(one, recorded=replace(one.recorded, sha256=at))
            for one, at in zip(some, sums, strict=True)
        ]

    found = checked(files("a", "b", "a"), "PK233")
    assert found and found.fired and found.effect is Effect.DIRECTIONAL
    assert found.message == "c0.raw and c2.raw: byte for byte the same"
    assert effect(files("a", "b", "c"), "PK233") is None
    still = (stack(QUEUE, 499), stack(SELECT, 499, OTHER))
    assert effect(files("a", "a", stacks=still), "PK233") is None, "threads that never move"
