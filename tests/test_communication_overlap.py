"""How much of the communication computation hides."""

from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.overlap import communication_overlap
from tests.builders import copy_to_host, kernel, ops_of, trace_of

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=12)


@given(SPANS, SPANS)
def test_overlap_agrees_with_a_count_of_nanoseconds(
    collectives: list[tuple[int, int]], kernels: list[tuple[int, int]]
) -> None:
    trace = trace_of(
        [kernel(start, start + length, "ncclKernel_AllReduce") for start, length in collectives]
        + [kernel(start, start + length, "gemm") for start, length in kernels]
    )
    talking = {t for start, length in collectives for t in range(start, start + length)}
    computing = {t for start, length in kernels for t in range(start, start + length)}
    overlap = communication_overlap(trace, ops_of(trace))
    assert overlap is not None
    assert overlap.communication_ns == len(talking)
    assert overlap.computation_ns == len(computing)
    assert overlap.both_ns == len(talking & computing)
    assert overlap.exposed_communication_ns == len(talking - computing)
    assert overlap.communication_ops == len(collectives)


def test_a_copy_hides_no_communication() -> None:
    trace = trace_of([kernel(0, 10, "ncclKernel_AllReduce"), copy_to_host(0, 10)])
    overlap = communication_overlap(trace, ops_of(trace))
    assert overlap is not None
    assert (overlap.computation_ns, overlap.exposed_communication_ns) == (0, 10)


def test_without_communication_kernels_there_is_nothing_to_say() -> None:
    trace = trace_of([kernel(0, 10, "gemm")])
    assert communication_overlap(trace, ops_of(trace)) is None
