"""Symptoms of communication that computation does not hide."""

from dataclasses import replace

from layers.layer1_gpu_busy.symptoms_communication import S5, S6, reduces_and_exchanges
from parsers.chrome_model import Collective
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
    assert "n = 1 kernels (1 a step over 1 step)" in seen.numbers


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


def test_an_all_to_all_that_runs_alone_is_seen() -> None:
    assert look(S6, facts_of(trace_of(communicating(SEND_RECV, 200, 10)))).present


def test_short_or_overlapped_all_to_alls_are_not_seen() -> None:
    assert look(S6, facts_of(trace_of(communicating(SEND_RECV, 100, 0)))).present is False
    assert look(S6, facts_of(trace_of(communicating(SEND_RECV, 200, 20)))).present is False
    assert look(S6, facts_of(trace_of(communicating(ALL_REDUCE, 200, 0)))).present is False


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
