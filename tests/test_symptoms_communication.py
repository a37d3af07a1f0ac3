"""Symptoms of communication that computation does not hide."""

from dataclasses import replace

import pytest

from layers.layer1_gpu_busy.symptoms.communication import PER_LAYER_FROM, S5, S6, reduces_and_exchanges
from parsers.trace_model import Collective
from tests.builders import Op, kernel, trace_of
from tests.symptom_builders import facts_of, look, step, steps_of

ALL_REDUCE = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)"
SEND_RECV = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)"


def communicating(name: str, length_ns: int, hidden_ns: int) -> list[Op]:
    """A window of 1,000 ns that begins with the communication, `hidden_ns` of it beside computation."""
    return [
        kernel(0, length_ns, name, stream=1),
        kernel(length_ns - hidden_ns, length_ns, "gemm", stream=2),
        kernel(length_ns, 1_000, "gemm", stream=2),
    ]


def test_an_all_reduce_that_nothing_hides_is_seen() -> None:
    seen = look(S5, facts_of(trace_of(communicating(ALL_REDUCE, 100, 0)), steps=steps_of(step(0, 1_000))))
    assert seen.present
    assert "exposed 10.0 %" in seen.numbers
    assert "n = 1 kernel (1 per step over 1 step)" in seen.numbers


def test_counts_per_step_are_of_steps_with_device_work() -> None:
    steps = steps_of(step(0, 1_000), *(step(1_000 * i, 1_000 * i, operations=0) for i in range(1, 6)))
    seen = look(S6, facts_of(trace_of(communicating(SEND_RECV, 280, 0)), steps=steps))
    assert "n = 1 kernel (1 per step over 1 of 6 steps with device work)" in seen.numbers


def test_short_or_hidden_all_reduces_are_not_seen() -> None:
    assert look(S5, facts_of(trace_of(communicating(ALL_REDUCE, 50, 0)))).present is False
    assert look(S5, facts_of(trace_of(communicating(ALL_REDUCE, 300, 220)))).present is False
    assert look(S5, facts_of(trace_of(communicating(SEND_RECV, 300, 0)))).present is False


def test_message_sizes_are_told_where_the_trace_records_them() -> None:
    trace = trace_of(communicating(ALL_REDUCE, 100, 0))
    of_another_device = Collective(0, 1, "allreduce", 9, 9, "BFloat16", 8)
    unsized = Collective(0, 0, "barrier", -1, -1, "", 8)
    mine = Collective(0, 0, "allreduce", 4_096, 4_096, "BFloat16", 8)
    sized = replace(trace, collectives=[of_another_device, unsized, mine])
    assert "median message 4,096 elements (n = 1)" in look(S5, facts_of(sized)).numbers
    assert "message sizes not recorded" in look(S5, facts_of(trace)).numbers


@pytest.mark.parametrize("hidden_ns", [0, 100], ids=["alone", "a third of it hidden"])
def test_an_exchange_that_takes_time_of_the_window_is_seen(hidden_ns: int) -> None:
    seen = look(S6, facts_of(trace_of(communicating(SEND_RECV, 280, hidden_ns))))
    assert seen.present
    assert f"exposed {(280 - hidden_ns) / 10:.1f} %" in seen.numbers


def test_short_or_hidden_exchanges_are_not_seen() -> None:
    assert look(S6, facts_of(trace_of(communicating(SEND_RECV, 50, 0)))).present is False
    assert look(S6, facts_of(trace_of(communicating(SEND_RECV, 300, 220)))).present is False
    assert look(S6, facts_of(trace_of(communicating(ALL_REDUCE, 200, 0)))).present is False


def test_an_exchange_hides_no_reduction() -> None:
    ops = [
        kernel(0, 200, ALL_REDUCE, stream=1),
        kernel(0, 200, SEND_RECV, stream=2),
        kernel(200, 1_000, "gemm"),
    ]
    facts = facts_of(trace_of(ops))
    assert look(S5, facts).present and look(S6, facts).present


@pytest.mark.parametrize(
    ("length_ns", "hidden_ns", "close"),
    [
        (46, 0, "exposed 4.6 % against 5.0 %"),
        (44, 0, ""),
        (300, 220, "hidden 73.3 % against 70.0 %"),
        (300, 240, ""),
        (160, 114, "exposed 4.6 % against 5.0 %, hidden 71.2 % against 70.0 %"),
    ],
)
def test_what_just_misses_its_threshold_is_close(length_ns: int, hidden_ns: int, close: str) -> None:
    seen = look(S6, facts_of(trace_of(communicating(SEND_RECV, length_ns, hidden_ns))))
    assert (seen.present, seen.close) == (False, close)


@pytest.mark.parametrize(
    ("kind", "n", "layers"),
    [("decode", PER_LAYER_FROM, True), ("decode", PER_LAYER_FROM - 1, False), ("step", 64, False)],
)
def test_only_as_many_a_step_as_layers_make_are_put_down_to_layers(kind: str, n: int, layers: bool) -> None:
    ops = [kernel(10 * t, 10 * t + 5, ALL_REDUCE) for t in range(n)]
    seen = look(S5, facts_of(trace_of(ops), steps=steps_of(step(0, 10 * n, kind))))
    assert ("as many as layers make" in seen.numbers) is layers
    assert "layer" not in S5.title.lower()


def test_every_communication_kernel_is_either_a_reduction_or_an_exchange() -> None:
    names = [
        ALL_REDUCE,
        SEND_RECV,
        "void deep_ep::intranode::combine<4>(int*)",
        "gemm",
        "ncclDevKernel_AllGather_RING_LL",
    ]
    facts = facts_of(trace_of([kernel(t, t + 1, name) for t, name in enumerate(names)]))
    reduces, exchanges = reduces_and_exchanges(facts)
    assert reduces.tolist() == [True, False, False, False, True]
    assert exchanges.tolist() == [False, True, True, False, False]
