"""A wait for work inside an annotation or an operator is a wait: an idle service is not host-bound by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.thresholds import Thresholds, Word
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from tests.layer1_traces import analysed, checks
from tests.writers.chrome import TraceBuilder

BURST_NS, OPERATIONS = 10_000_000, 20
WAIT = "queue.py(154): get"
UVLOOP = "<built-in method run_until_complete of uvloop.Loop object at 0x7f>"


def served(
    folder: Path, around: str = "", name: str = "", wait: str = WAIT, inside: str = ""
) -> TraceAnalysis:
    """Bursts of work, between them a wait in a span of category `around`, or around one of `inside`."""
    trace = TraceBuilder()
    trace.python_function("worker.py(10): run", 0, 20 * BURST_NS)
    for burst in range(20):
        at_ns = burst * BURST_NS
        for i in range(OPERATIONS):
            start_ns = at_ns + 10_000 + i * 20_000
            trace.launch("k", call_ns=at_ns + i * 5_000, call_dur_ns=3_000, start_ns=start_ns, dur_ns=19_000)
        trace.python_function(wait, at_ns + 450_000, 9_500_000)
        for category, by_ns in ((around, 10_000), (inside, -10_000)):
            if category:
                trace.complete(category, name, at_ns + 450_000 - by_ns, 9_500_000 + 2 * by_ns)
    return analysed(trace, folder)


@pytest.mark.parametrize(
    ("around", "name"),
    [
        ("", ""),
        ("user_annotation", "get_batch"),
        ("user_annotation", "recv_requests"),
        ("user_annotation", "recv[batch=8]"),
        ("user_annotation", "enumerate(DataLoader)#_SingleProcess.__next__"),
        ("cpu_op", "mylib::fetch"),
    ],
)
def test_a_wait_wins_over_the_span_around_it(around: str, name: str, tmp_path: Path) -> None:
    analysis = served(tmp_path, around, name)
    assert checks(analysis)["PK138"].fired
    verdict = judge_traces([analysis], Thresholds()).verdict
    assert (verdict.word, verdict.directional) == (Word.HOST_BOUND, True)


@pytest.mark.parametrize("inside", ["user_annotation", "cpu_op", "python_function"])
def test_a_span_inside_an_event_loop_is_work(inside: str, tmp_path: Path) -> None:
    analysis = served(tmp_path, name="tokenize", wait=UVLOOP, inside=inside)
    idle = analysis.devices[0].idle
    assert idle is not None and max(idle.by_cause_ns, key=lambda c: idle.by_cause_ns[c]) is Cause.HOST_WORK
    assert not checks(analysis)["PK138"].fired
