"""The kernel table: one row a name, sums and medians of plain durations."""

from collections import defaultdict
from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.kernels import kernel_table
from parsers.trace_model import MEMCPY
from tests.builders import Op, kernel, ops_of, trace_of

ROWS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 40), st.sampled_from("abcd")), max_size=40)


@given(ROWS)
def test_rows_agree_with_a_plain_count(rows: list[tuple[int, int, str]]) -> None:
    durations = defaultdict(list)
    for _, length, name in rows:
        durations[name].append(length)
    trace = trace_of([kernel(start, start + length, name) for start, length, name in rows])
    table = kernel_table(trace, ops_of(trace), busy_ns=100, top=None)
    assert {r.name: (r.n, r.total_ns, r.max_ns, r.median_ns, r.share) for r in table} == {
        name: (len(d), sum(d), max(d), median(d), sum(d) / 100) for name, d in durations.items()
    }
    assert [r.total_ns for r in table] == sorted((r.total_ns for r in table), reverse=True)


def test_only_the_longest_names_are_kept_when_a_limit_is_given() -> None:
    trace = trace_of([kernel(0, 10, "short"), kernel(10, 40, "long"), kernel(40, 60, "middle")])
    assert [r.name for r in kernel_table(trace, ops_of(trace), busy_ns=60, top=2)] == ["long", "middle"]


def test_copies_stand_in_the_table_with_their_own_group() -> None:
    trace = trace_of(
        [Op(0, 10, "Memcpy DtoD (Device -> Device)", MEMCPY), kernel(10, 12, "ampere_sgemm_128x64_nn")]
    )
    assert [r.group for r in kernel_table(trace, ops_of(trace), busy_ns=12)] == ["memcpy", "gemm"]


def test_shares_are_of_the_busy_time_and_pass_one_where_streams_overlap() -> None:
    trace = trace_of([kernel(0, 10, "a", stream=1), kernel(0, 10, "b", stream=2)])
    assert sum(r.share for r in kernel_table(trace, ops_of(trace), busy_ns=10)) == 2.0


def test_a_device_without_operations_has_an_empty_table() -> None:
    trace = trace_of()
    assert kernel_table(trace, ops_of(trace), busy_ns=0) == ()
