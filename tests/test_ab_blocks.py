"""What blocks inside a step, from a trace of each arm: its own cost, and apart from it what it prevents."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.evidence.finding import Strength
from layers.layer1_gpu_busy.analyse import analyse_trace
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from layers.layer4_ab.analyse import Beside
from layers.layer4_ab.blocks import Blocks, blocks_of, words
from layers.layer4_ab.judge import judge
from parsers.trace_model import PYTHON_FRAME_FLOOR_NS
from tests.ab_builders import analysed
from tests.builders import Op, Span, annotation, call, copy_to_host, frame, kernel, trace_of
from tests.command_runs import document, run
from tests.test_ab_command import both
from tests.writers.chrome import TraceBuilder

STEPS, STEP = 6, 400 * PYTHON_FRAME_FLOOR_NS
KERNEL, BACK, WORK, LAUNCHING = (part * PYTHON_FRAME_FLOOR_NS for part in (100, 40, 100, 60))
"""Of a step that blocks: what its kernel takes, how long the copy holds the host after it ended, what the
host computes then, and how long it launches the next one."""


def blocking() -> TraceAnalysis:
    """Each step: a kernel, a copy to the host that the host waits for, host work, a slow launch."""
    ops, host = list[Op](), list[Span]()
    for n in range(STEPS):
        at, ids = n * STEP, (2 * n + 1, 2 * n + 2)
        done = at + KERNEL + 10
        ops += [
            kernel(at, at + KERNEL, correlation=ids[0]),
            copy_to_host(at + KERNEL, done, correlation=ids[1]),
        ]
        after = done + BACK + WORK
        host += [
            annotation(at - LAUNCHING, after, f"ProfilerStep#{n}"),
            call(at - LAUNCHING, at, correlation=ids[0]),
            call(at + 1, done + BACK, "cudaMemcpyAsync", correlation=ids[1]),
            frame(done + BACK, after, "sampler.py(3): pick"),
        ]
    return analyse_trace(trace_of(ops, host))


def ahead() -> TraceAnalysis:
    """The same kernels, launched while the one before runs."""
    ops = [kernel(n * KERNEL, (n + 1) * KERNEL, correlation=n + 1) for n in range(STEPS)]
    host = [call((n - 1) * KERNEL + 5, (n - 1) * KERNEL + 9, correlation=n + 1) for n in range(STEPS)]
    marks = [annotation((n - 1) * KERNEL, n * KERNEL - 1, f"ProfilerStep#{n}") for n in range(STEPS)]
    return analyse_trace(trace_of(ops, [*host, *marks]))


def told(trace: TraceAnalysis, arm: str = "a") -> Blocks:
    found = blocks_of(arm, [trace])
    assert found is not None
    return found


def test_own_cost_and_what_is_prevented_are_two_numbers() -> None:
    found, gaps = told(blocking()), STEPS - 1
    assert found.steps == STEPS
    assert found.own_ms["copy to the host"] == pytest.approx(gaps * BACK / STEPS / 1e6)
    assert found.own_ms["host computation"] == pytest.approx(gaps * WORK / STEPS / 1e6)
    assert found.own_ms["synchronise"] == 0.0
    assert found.prevented_ms == pytest.approx(gaps * LAUNCHING / STEPS / 1e6)
    assert (found.copies_to_host, found.graph_launches) == (1.0, 0.0)
    assert found.gain_own is not None and found.gain_all is not None and found.gain_all > found.gain_own > 0


def test_the_gain_is_bounded_by_the_idle_time_that_would_go() -> None:
    found = told(blocking())
    idle = found.all_own_ms
    assert found.gain_own == pytest.approx(found.step_ms / (found.step_ms - idle) - 1)


def test_an_arm_that_runs_ahead_is_blocked_by_nothing() -> None:
    found = told(ahead(), "b")
    assert found.all_own_ms == found.prevented_ms == 0.0 and found.gain_all == 0.0
    assert "the device stands still for nothing itself" in words(found)
    assert found.empty_share is not None and found.empty_share < 0.5


def test_a_synchronise_that_outlasts_the_device_is_its_own_cost() -> None:
    ops, host = list[Op](), list[Span]()
    for n in range(STEPS):
        at = n * STEP
        ops.append(kernel(at, at + KERNEL, correlation=n + 1))
        host += [
            annotation(at - 20, at + KERNEL + BACK, f"ProfilerStep#{n}"),
            call(at - 20, at - 10, correlation=n + 1),
            call(at, at + KERNEL + BACK, "cudaStreamSynchronize"),
        ]
    found = told(analyse_trace(trace_of(ops, host)))
    assert found.own_ms["synchronise"] == pytest.approx((STEPS - 1) * BACK / STEPS / 1e6)
    assert found.own_ms["copy to the host"] == 0.0


def test_a_trace_without_steps_says_nothing_of_them() -> None:
    assert blocks_of("a", [analyse_trace(trace_of([kernel(0, 10)], []))]) is None


def test_both_arms_are_findings_of_their_own() -> None:
    beside = Beside(blocks=(told(blocking()), told(ahead(), "b")))
    result = judge(analysed(beside=beside))
    found = [one for one in result.findings if one.statement.startswith("what blocks inside a step")]
    assert [one.strength for one in found] == [Strength.MEDIUM, Strength.MEDIUM]
    a, b = result.sections["blocks"]
    assert a["gain_with_prevented"] > a["gain_own"] > b["gain_own"] == 0.0


def stepped(path: Path) -> str:
    """A trace file of steps with a kernel each."""
    made = TraceBuilder()
    for n in range(STEPS):
        at = 1_000_000 + n * STEP
        made.launch("k", call_ns=at - 500, call_dur_ns=200, start_ns=at, dur_ns=KERNEL)
        made.annotation(f"ProfilerStep#{n}", at - 1000, STEP - 10)
    return str(made.write(path))


def test_the_command_reads_a_trace_of_each_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = [f"--trace-{arm}={stepped(tmp_path / f'{arm}.json')}" for arm in ("a", "b")]
    made_of = document(capsys, "ab", *both(tmp_path, 1.05), *traces, "--no-record")
    assert [one["arm"] for one in made_of["blocks"]] == ["a", "b"]
    assert made_of["blocks"][0]["steps"] == STEPS


def test_a_trace_without_steps_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = TraceBuilder()
    made.launch("k", call_ns=1000, call_dur_ns=200, start_ns=1500, dur_ns=300)
    path = str(made.write(tmp_path / "t.json"))
    code, _, err = run(capsys, "ab", *both(tmp_path, 1.05), "--trace-a", path, "--no-record")
    assert code == 2 and "no steps in it" in err
