"""The words of Layer 2, by the intervals of a thread's shares; strength, findings and what is chosen."""

from __future__ import annotations

from typing import Any

import pytest

from layers.collectors.stacks.recording import LoadEvidence, Mode, ThreadCpu
from layers.evidence.finding import FindingKind, Strength
from layers.evidence.guard import Checked, Effect
from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from layers.layer2_stacks.choice import Choice
from layers.layer2_stacks.judge import judge
from layers.layer2_stacks.model import Capture
from parsers.errors import UsageError
from parsers.stack_model import Stack, ThreadName
from tests.stack_builders import LOOP, capture, captures, recording, said, stack

FULL = "Scheduler.event_loop_normal /srv/a/engine.py 53"
QUEUE = f"{FULL};Queue.get queue.py 171;Condition.wait threading.py 327"
BURN = f"{FULL};burn /srv/a/engine.py 14"
LOAD = LoadEvidence("the server's counters", 40, 8.0, None)


def watched(n: int, *stacks: Stack, **how: Any) -> list[Capture]:
    return captures(n, *stacks, recording=recording(load=LOAD), **how)


def spread(total: int, lines: int) -> list[Stack]:
    """Ticks over as many lines, each of a function of its own."""
    return [stack(f"{FULL};f{n} /srv/a/engine.py {100 + n}", total // lines) for n in range(lines)]


def word(of: list[Capture]) -> str:
    return judge(of).verdict.word


def test_a_thread_that_waits_is_blocked_and_in_what() -> None:
    result = judge(watched(3, stack(QUEUE, 400), stack(FULL, 99)))
    assert (result.verdict.word, result.verdict.exit_code) == ("blocked", Exit.OK)
    assert "waits for 80.2 % [78.1, 82.1], limit 50 %; queue 80.2 %" in result.verdict.because
    assert "perfkit stages" in result.verdict.next_step
    (verdict,) = [f for f in result.findings if f.kind is FindingKind.VERDICT]
    assert (verdict.strength, "3 captures that agree" in verdict.rule) == (Strength.STRONG, True)
    (negative,) = [f for f in result.findings if f.negative]
    assert "own code is not the limit" in negative.statement


def test_a_thread_on_a_cpu_at_one_line_burns_it() -> None:
    both = [*watched(3, stack(BURN, 200), *spread(299, 10)), *watched(3, stack(BURN, 190), mode=Mode.ACTIVE)]
    both[3:] = watched(3, stack(BURN, 190), *spread(280, 10), mode=Mode.ACTIVE)
    result = judge(both)
    assert (result.verdict.word, result.verdict.exit_code) == ("burning-cpu", Exit.OK)
    assert "38.1 % [" in result.verdict.because and "/srv/a/engine.py:14 (burn)" in result.verdict.because
    (line,) = [f for f in result.findings if f.statement.startswith("/srv/a/engine.py:14")]
    assert "it works there" in line.recommendation


def test_a_line_with_time_and_no_cpu_blocks_in_a_call() -> None:
    item = stack(f"{FULL};sample /srv/a/engine.py 30", 400)
    both = [*watched(3, item, stack(BURN, 99)), *watched(3, stack(BURN, 95), mode=Mode.ACTIVE)]
    result = judge(both)
    assert result.verdict.word == "blocked"
    assert "works on a CPU for 19.0 %" in result.verdict.because and "engine.py:30" in result.verdict.because
    assert "--native" in result.verdict.next_step
    (negative,) = [f for f in result.findings if f.negative]
    assert "what this thread computes is not the limit: 19.0 %" in negative.statement


def test_nothing_stands_out_of_many_equal_lines() -> None:
    assert word(watched(3, *spread(480, 40))) == "nothing-stands-out"
    assert word(watched(3, *spread(480, 40), mode=Mode.ACTIVE)) == "nothing-stands-out"
    together = [stack(f"{FULL};f /srv/a/engine.py {100 + n}", 12) for n in range(40)]
    assert word(watched(3, *together)) == "undecided", "their function holds all of it"


def test_idle_captures_alone_do_not_say_whether_a_line_works() -> None:
    result = judge(watched(3, stack(BURN, 499)))
    assert (result.verdict.word, result.verdict.exit_code) == ("undecided", Exit.NO_CONCLUSION)
    assert "--idle alone does not tell" in result.verdict.because
    assert "without --idle" in result.verdict.next_step
    strengths = [(f.kind, f.strength) for f in result.findings]
    assert strengths == [
        (FindingKind.VERDICT, Strength.WEAK),
        (FindingKind.OBSERVATION, Strength.STRONG),
    ], "what the line holds is measured, what the thread does is not known"


def test_active_captures_say_nothing_of_time_without_the_number_of_looks() -> None:
    alone = captures(3, stack(BURN, 300), mode=Mode.ACTIVE, log=None)
    result = judge(alone)
    assert result.verdict.word == "undecided" and "no log tells" in result.verdict.because
    assert "on_cpu" not in result.sections["thread"] and "--log" in result.verdict.next_step


def test_few_active_ticks_are_a_thread_that_is_blocked_somewhere() -> None:
    result = judge(watched(3, stack(BURN, 80), mode=Mode.ACTIVE))
    assert result.verdict.word == "blocked" and "no capture without --idle tells" in result.verdict.because
    assert "record with --idle" in result.verdict.next_step


def test_the_holder_of_the_interpreters_lock_burns_a_cpu() -> None:
    assert word(watched(3, stack(BURN, 480), mode=Mode.GIL)) == "burning-cpu"
    few = judge(watched(3, stack(BURN, 48), mode=Mode.GIL))
    assert few.verdict.word == "undecided" and "--gil does not tell" in few.verdict.because


def test_an_interval_on_both_sides_of_the_threshold_is_no_word() -> None:
    half = captures(3, stack(QUEUE, 20), stack(FULL, 20), log=said(40, seconds=2))
    result = judge(half)
    assert result.verdict.word == "undecided" and "on both sides of 50 %" in result.verdict.because


def test_a_doubt_leaves_the_word_with_a_question_mark() -> None:
    result = judge(watched(1, stack(QUEUE, 499)))
    assert (result.verdict.headline, result.verdict.exit_code) == ("BLOCKED?", Exit.NO_CONCLUSION)
    assert {f.strength for f in result.findings} == {Strength.WEAK}


def test_captures_that_differ_by_more_than_chance_are_no_strong_finding() -> None:
    some = [*watched(2, stack(QUEUE, 480), stack(FULL, 19)), *watched(1, stack(QUEUE, 430), stack(FULL, 69))]
    (verdict,) = [f for f in judge(some).findings if f.kind is FindingKind.VERDICT]
    assert verdict.strength is Strength.MEDIUM


def test_a_cost_that_is_gone_later_is_a_one_off() -> None:
    compile_it = stack(f"{FULL};compile /srv/a/engine.py 70", 150)
    early = watched(3, compile_it, stack(BURN, 349))
    for late, what in ((watched(3, stack(BURN, 499)), "one-off"), (early, "steady")):
        result = judge(early, later=late)
        (told,) = [f for f in result.findings if "engine.py:70" in f.statement and what in f.statement]
        lines = result.sections["later"]["lines"]
        assert what in {c["steadiness"] for c in lines if c["where"].endswith(":70")}
        assert told.negative is False
    assert judge(early).sections["later"] is None


def test_the_kernel_that_says_the_same_is_a_second_method() -> None:
    cpu = ThreadCpu(7, "MainThread", 24.0, 0.5, 25.0)
    own = recording(load=LOAD, threads=(cpu,))
    some = [
        *captures(2, stack(BURN, 490), mode=Mode.ACTIVE, recording=own),
        *captures(1, stack(BURN, 450), mode=Mode.ACTIVE, recording=own),
    ]
    (verdict,) = [f for f in judge(some).findings if f.kind is FindingKind.VERDICT]
    assert verdict.rule.startswith("two methods agree")


def test_the_loop_of_an_engine_is_chosen_before_busier_threads() -> None:
    other = ThreadName("8", "tokenizer")
    result = judge(watched(3, stack(QUEUE, 499), stack("encode /srv/a/t.py 3", 499, other)))
    assert result.sections["thread"]["scope"].startswith("MainThread in event_loop_normal")
    assert "is the loop of an engine" in result.sections["thread"]["why"]
    assert result.sections["thread"]["loop"] is True


def test_without_a_loop_the_thread_with_most_work_is_chosen() -> None:
    other = ThreadName("8", "worker")
    waits = stack("main /srv/a/m.py 1;Queue.get queue.py 171", 499)
    result = judge(watched(3, waits, stack("run /srv/a/w.py 3", 499, other)))
    assert result.sections["thread"]["scope"] == "worker in run"
    assert result.sections["thread"]["loop"] is False
    assert result.sections["thread"]["others"] == 1


@pytest.mark.parametrize("choice", [Choice(thread="worker"), Choice(thread="8"), Choice(entry="run")])
def test_a_thread_is_chosen_by_name_id_or_entry(choice: Choice) -> None:
    some = watched(3, stack(QUEUE, 499), stack("run /srv/a/w.py 3", 499, ThreadName("8", "worker")))
    assert judge(some, choice=choice).sections["thread"]["scope"] == "worker in run"
    with pytest.raises(UsageError, match="no such thread in these captures; there is MainThread"):
        judge(some, choice=Choice(thread="nobody"))


def test_a_share_of_all_samples_stands_beside_that_of_the_thread() -> None:
    idle_pool = [stack("f /srv/a/p.py 1", 499, ThreadName(str(n), f"pool-{n}")) for n in range(9)]
    result = judge(watched(3, stack(BURN, 499), *idle_pool))
    (chosen,) = [s for s in result.sections["scopes"] if s["chosen"]]
    assert chosen["leaves"][0]["share"] == 1.0 and chosen["leaves"][0]["of_all"] == pytest.approx(0.1)


def test_measurements_are_of_ticks_with_each_captures_own_share() -> None:
    result: Result = judge(watched(3, stack(QUEUE, 400), stack(FULL, 99)))
    waiting = next(m for m in result.measurements if m.name == "waiting_share")
    assert (waiting.n, waiting.n_unit, waiting.unit) == (3 * 499, "ticks", "share")
    assert waiting.raw == pytest.approx((400 / 499,) * 3) and "--idle" in waiting.method


def test_one_capture_of_another_loop_does_not_join_the_thread() -> None:
    mine, theirs = (
        capture(stack(LOOP, 499), name="a"),
        capture(stack("run_busy_loop core.py 3", 499), name="b"),
    )
    assert len(judge([mine, theirs]).sections["scopes"]) == 2


@pytest.mark.parametrize(
    ("active", "says"), [(190, "it works there"), (8, "it blocks there"), (99, "part of it may be a call")]
)
def test_a_line_works_or_blocks_by_what_it_holds_of_a_cpu(active: int, says: str) -> None:
    some = [
        *watched(3, stack(BURN, 200), stack(FULL, 299)),
        *watched(3, stack(BURN, active), stack(FULL, 290), mode=Mode.ACTIVE),
    ]
    (line,) = [f for f in judge(some).findings if f.statement.startswith("/srv/a/engine.py:14")]
    assert line.recommendation.startswith(says) or says in line.recommendation


def test_one_capture_that_decides_is_no_strong_word_however_many_stand_beside_it() -> None:
    some = [*watched(3, stack(BURN, 499)), *watched(1, stack(BURN, 490), mode=Mode.ACTIVE)]
    result = judge(some)
    assert (result.verdict.word, result.verdict.directional) == ("burning-cpu", True)
    assert "490 ticks in 1 capture" not in result.verdict.because
    (few,) = [g for g in result.guards if g.code == "PK218"]
    assert few.fired and few.message == "499 ticks in 1 capture"


def test_a_void_guard_on_the_recording_leaves_no_finding_at_all() -> None:
    nothing = Checked("PK250", "made-up", Effect.VOID, True, "nothing was recorded")
    result = judge(watched(3, stack(QUEUE, 499)), before=watched(3, stack(BURN, 499)), more_guards=[nothing])
    assert (result.verdict.word, result.verdict.exit_code) == ("void", Exit.INVALID)
    assert result.findings == [] and "nothing was recorded" in result.verdict.because


def test_the_kernels_count_of_cpu_time_says_which_thread_works() -> None:
    """One that waits for its device in naps is at work; one that blocks in a call without a label is not."""
    worker, other = ThreadName("8", "ar"), ThreadName("9", "build-0")
    napping = stack("run /srv/a/run.py 3;wait_for sample_engine/emulated/host/waiting.py 61", 499, worker)
    blocked = stack("work /srv/a/work.py 4", 499, other)
    cpu = (ThreadCpu(8, "ar", 5.0, 1.0, 25.0), ThreadCpu(9, "build-0", 0.0, 0.0, 25.0))
    counted = captures(3, napping, blocked, recording=recording(load=LOAD, threads=cpu))
    assert judge(counted).sections["thread"]["scope"].startswith("ar in ")
    assert "by the kernel's count" in judge(counted).sections["thread"]["why"]
    uncounted = watched(3, napping, blocked)
    assert judge(uncounted).sections["thread"]["scope"].startswith("build-0 in ")


def test_without_a_word_of_the_profiler_nothing_is_strong() -> None:
    quiet = captures(3, stack(BURN, 499), log=None)
    strengths = {f.strength for f in judge(quiet).findings if f.kind is FindingKind.OBSERVATION}
    assert strengths == {Strength.MEDIUM}
    told = captures(3, stack(BURN, 499))
    assert Strength.STRONG in {f.strength for f in judge(told).findings}


def test_a_wait_is_told_with_the_line_of_the_program_that_it_serves() -> None:
    result = judge(watched(3, stack(f"{FULL};step /srv/a/engine.py 9;Queue.get queue.py 171", 499)))
    assert (
        "queue 100.0 %, first at queue.py:171 (get) from step (/srv/a/engine.py:9)" in result.verdict.because
    )


def test_a_wait_that_is_not_half_of_the_looks_still_leads_where_it_waits() -> None:
    sync = f"{FULL};copy /srv/a/engine.py 61;synchronize torch/cuda/streams.py 90"
    both = [
        *watched(3, stack(sync, 240), stack(BURN, 130), *spread(129, 10)),
        *watched(3, stack(BURN, 95), mode=Mode.ACTIVE),
    ]
    result = judge(both)
    assert result.verdict.word == "blocked" and "works on a CPU for 19.0 %" in result.verdict.because
    assert "waiting for device sync from copy (/srv/a/engine.py:61)" in result.verdict.because
    assert "Layer 1" in result.verdict.next_step and "--native" not in result.verdict.next_step


def line_advice(of: list[Capture]) -> str:
    (line,) = [f for f in judge(of).findings if f.statement.startswith("/srv/a/engine.py:14")]
    return line.recommendation


def test_what_a_line_can_win_is_of_the_threads_time_and_by_the_upper_end() -> None:
    """290 of 499 looks on a CPU, all at one line: 58.1 % [55.6, 60.6] of the time, not all of it."""
    active = watched(3, stack(BURN, 290), mode=Mode.ACTIVE)
    assert "Without it the thread gets 153.8 % faster at most" in line_advice(active)
    idle = watched(3, stack(BURN, 250), stack(FULL, 249))
    assert line_advice(idle).startswith("Without it the thread gets 111.1 % faster")
    assert line_advice(watched(3, stack(BURN, 499))) == "It may be all that the thread does"


@pytest.mark.parametrize("mode", [Mode.ACTIVE, Mode.UNKNOWN])
def test_what_a_line_can_win_is_not_told_where_nobody_knows_its_share_of_time(mode: Mode) -> None:
    assert line_advice(captures(3, stack(BURN, 300), mode=mode, log=None)) == (
        "how much of the thread's time that is, these captures do not tell"
    )


def test_the_lock_alone_does_not_say_that_a_line_blocks() -> None:
    """NumPy computes without the interpreter's lock."""
    some = [*watched(3, stack(BURN, 499)), *watched(3, stack(FULL, 20), stack(BURN, 5), mode=Mode.GIL)]
    assert "blocks" not in line_advice(some)
    assert line_advice(watched(3, stack(BURN, 400), mode=Mode.GIL)).startswith("it holds the lock there for")


def test_what_a_line_holds_of_the_lock_is_not_called_its_cpu() -> None:
    """As from outside of a PID namespace, where no capture without --idle is made."""
    locked = watched(3, stack(FULL, 20), stack(BURN, 250), mode=Mode.GIL)
    result = judge([*watched(3, stack(BURN, 499)), *locked])
    idle = next(scope for scope in result.sections["scopes"] if scope["mode"] == "idle")
    (burn,) = idle["leaves"]
    assert "on_cpu" not in burn and round(burn["holds_lock"]["share"], 3) == 0.501
    (running,) = [m for m in result.measurements if m.name.startswith("running_share") and "burn" in m.name]
    assert "its ticks with --gil over all looks" in running.method
    with_cpu = judge(
        [*watched(3, stack(BURN, 499)), *locked, *watched(3, stack(BURN, 400), mode=Mode.ACTIVE)]
    )
    (burn,) = next(scope for scope in with_cpu.sections["scopes"] if scope["mode"] == "idle")["leaves"]
    assert "holds_lock" not in burn and round(burn["on_cpu"]["share"], 3) == 0.802


def beside_a_still_pool(main: int) -> list[Stack]:
    """A main thread with so many looks at work, and a pool in `queue.SimpleQueue.get`, which is C."""
    work = [stack("main /srv/a/m.py 1;step /srv/a/m.py 9", main)]
    waits = [stack("main /srv/a/m.py 1;Queue.get queue.py 171", 499 - main)]
    pool = [
        stack("run /srv/a/p.py 7;next_task /srv/a/p.py 9", 499, ThreadName(str(n), f"pool-{n}"))
        for n in range(20, 24)
    ]
    return [*work, *waits, *pool]


def test_a_thread_that_never_moves_is_not_chosen_before_one_that_works() -> None:
    thread = judge(watched(3, *beside_a_still_pool(300))).sections["thread"]
    assert thread["scope"] == "MainThread in main"
    assert thread["why"] == "of 5 threads it has most ticks outside of waits and is not always at one line"
    some = [*watched(3, *beside_a_still_pool(200))]
    assert judge(some).verdict.word == "undecided", "no firm word beside one that may burn"


def test_a_thread_that_was_never_found_on_a_cpu_is_blocked() -> None:
    running = stack("main /srv/a/m.py 1;step /srv/a/m.py 9", 290)
    some = [*watched(3, *beside_a_still_pool(300)), *watched(3, running, mode=Mode.ACTIVE)]
    result = judge(some, choice=Choice(thread="pool-20"))
    assert result.verdict.word == "blocked" and "works on a CPU for 0.0 % [0.0, " in result.verdict.because
    assert judge(some).sections["thread"]["scope"] == "MainThread in main"
    elsewhere = stack("main /srv/a/m.py 1;step /srv/a/m.py 9", 290, ThreadName("99", "MainThread"))
    other = [*watched(3, *beside_a_still_pool(300)), *watched(3, elsewhere, mode=Mode.ACTIVE)]
    assert judge(other, choice=Choice(thread="pool-20")).verdict.word == "undecided", "another process"


def test_a_thread_of_a_process_that_hardly_ran_is_to_be_recorded_under_load_first() -> None:
    """By its CPU time alone: who is to wake it is not the question yet, and its wait rules nothing out."""
    idle = recording(load=LoadEvidence("/proc", None, None, 0.004))
    held = stack(f"{FULL};Condition.wait threading.py 327", 499)
    result = judge(captures(3, held, recording=idle))
    assert (result.verdict.word, result.verdict.exit_code) == ("blocked", Exit.NO_CONCLUSION)
    assert result.verdict.next_step == "record under load first: perfkit layer2 --server URL --load N"
    assert result.verdict.because.endswith("; or it had no work: 0.4 % of a core (/proc)")
    assert {"PK209", "PK210"} <= {g.code for g in result.guards if g.effect is Effect.DIRECTIONAL and g.fired}
    assert not any(finding.negative for finding in result.findings)
    assert {finding.recommendation for finding in result.findings} == {result.verdict.next_step}
    busy = recording(load=LoadEvidence("s", 40, 8.0, 0.9))
    under_load = judge(captures(3, held, recording=busy))
    assert "find who is to notify it" in under_load.verdict.next_step
    assert any(finding.negative for finding in under_load.findings)
