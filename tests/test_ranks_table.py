"""Ranks of one run in one table: ratios merged, who is suspected, and when the straggler is proven."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from layers.layer1_gpu_busy.busy import measure_busy
from layers.layer1_gpu_busy.ranks import RankTable, RankTrace, rank_table, rank_trace, straggler_text
from parsers.errors import UsageError
from parsers.trace_model import Collective, DeviceTrace
from tests.builders import kernel, ops_of, trace_of

COLLECTIVE = "ncclKernel_AllReduce"


def rank(number: int, lengths: Sequence[int], *, world_size: int = 3, name: str = COLLECTIVE) -> RankTrace:
    """One rank that runs a kernel of 10 ns before each collective; windows are 1,000 ns."""
    return traced(collectives(lengths, name), number, world_size)


def collectives(lengths: Sequence[int], name: str) -> DeviceTrace:
    ops = [kernel(990, 1_000, "gemm")]
    for i, length in enumerate(lengths):
        ops += [kernel(200 * i, 200 * i + 10, "gemm"), kernel(200 * i + 10, 200 * i + 10 + length, name)]
    return trace_of(ops)


def traced(trace: DeviceTrace, number: int, world_size: int) -> RankTrace:
    meta = replace(trace.meta, rank=number, world_size=world_size)
    ops = ops_of(trace)
    return rank_trace(replace(trace, meta=meta, path=f"rank{number}.json"), ops, measure_busy(trace, ops))


def test_the_rank_whose_collectives_are_shortest_kept_the_others_waiting() -> None:
    table = rank_table([rank(0, [90, 80, 70]), rank(2, [80, 80, 70]), rank(1, [10, 10, 10])])
    assert table.straggler is not None and table.straggler == table.suspect
    assert table.straggler.rank == 1
    assert straggler_text(table).startswith(
        "rank 1: last to arrive at 3 of 3 collectives and blamed for 100.0 % of the waiting, 100.0 % without "
        "the longest one (mean wait 205 ns of a median window of 1 µs, 3 ranks, 3 collectives)"
    )
    assert [row.rank for row in table.rows] == [0, 1, 2]
    assert [row.wait_ns for row in table.rows] == [210, 0, 200]
    assert [row.last_arrivals for row in table.rows] == [0, 3, 0]
    assert [row.caused_wait_ns for row in table.rows] == [0.0, 205.0, 0.0]
    assert (table.world_size, table.missing, table.collectives) == (3, 0, 3)


def test_ratios_are_merged_as_minimum_median_maximum_and_spread() -> None:
    table = rank_table([rank(0, [100]), rank(1, [200]), rank(2, [400])])
    assert (table.min_ratio, table.median_ratio, table.max_ratio) == (0.12, 0.22, 0.42)
    assert table.spread == pytest.approx(0.3)


def test_communication_and_the_rest_are_told_per_rank() -> None:
    row = rank_table([rank(0, [90, 80]), rank(1, [90, 80])]).rows[0]
    assert (row.communication_ns, row.computation_ns, row.window_ns, row.events) == (170, 30, 1_000, 5)


def test_one_long_wait_alone_makes_a_suspect_and_proves_nothing() -> None:
    table = rank_table([rank(0, [290, 10, 90]), rank(1, [10, 90, 10]), rank(2, [290, 90, 90])])
    assert table.straggler is None and table.suspect is not None
    assert straggler_text(table).startswith("most likely rank 1: last to arrive at 2 of 3 collectives")
    assert "50.0 % without the longest one" in table.because
    assert "Not proven, because it takes more than 50.0 % both" in table.because


def test_the_suspect_is_who_most_waiting_is_put_down_to() -> None:
    """Rank 0 has most of the waiting by one long wait; rank 1 is steady, and blamed for less."""
    table = rank_table([rank(0, [10, 60, 60, 60]), rank(1, [400, 10, 10, 10]), rank(2, [400, 60, 60, 60])])
    assert table.suspect is not None and table.suspect.rank == 0
    assert table.straggler is None


def test_waiting_spread_over_ranks_names_nobody() -> None:
    table = rank_table([rank(0, [10, 90, 90]), rank(1, [90, 10, 90]), rank(2, [90, 90, 10])])
    assert table.straggler is None and table.suspect is None
    assert straggler_text(table).startswith("none named: no one rank holds up the others; the most is rank 0")


def test_waiting_too_small_to_matter_names_nobody() -> None:
    table = rank_table([rank(0, [30, 30]), rank(1, [10, 10]), rank(2, [30, 30])])
    assert table.straggler is None and table.suspect is None
    assert "5.0 % of the window" in table.because


def test_ranks_that_never_wait_have_no_last_to_arrive() -> None:
    table = rank_table([rank(0, [50, 50]), rank(1, [50, 50]), rank(2, [50, 50])])
    assert [row.last_arrivals for row in table.rows] == [0, 0, 0]
    assert table.straggler is None


def test_a_part_of_the_ranks_is_called_a_part_and_proves_nothing() -> None:
    table = rank_table([rank(0, [90, 90], world_size=128), rank(1, [10, 10], world_size=128)])
    assert table.missing == 126
    assert table.straggler is None
    assert "126 ranks of the run are not given" in table.because
    assert straggler_text(table).startswith("most likely rank 1: ")


def test_the_number_of_ranks_may_be_unknown() -> None:
    table = rank_table([rank(0, [90, 90, 90], world_size=-1), rank(1, [10, 10, 10], world_size=-1)])
    assert (table.world_size, table.missing) == (None, 0)
    assert table.straggler is not None


@pytest.mark.parametrize("numbers", [(1, 1), (-1, 0)])
def test_files_that_name_no_distinct_ranks_name_no_straggler(numbers: tuple[int, int]) -> None:
    table = rank_table(
        [rank(n, length, world_size=2) for n, length in zip(numbers, ([90] * 3, [10] * 3), strict=True)]
    )
    assert table.straggler is None
    assert "distinct ranks" in table.because


def grouped(*groups: Collective) -> RankTable:
    """Three ranks, of which rank 0 arrives last and records these groups."""
    late = replace(collectives([10, 10, 10], COLLECTIVE), collectives=list(groups))
    return rank_table([traced(late, 0, 3), rank(1, [90, 90, 90]), rank(2, [90, 90, 90])])


def test_collectives_of_smaller_groups_name_no_straggler() -> None:
    table = grouped(Collective(0, 0, "allreduce", 1, 1, "", 2))
    assert table.straggler is None
    assert "only 2 ranks" in table.because


def test_groups_of_all_ranks_unknown_size_or_another_device_do_not_forbid_a_name() -> None:
    table = grouped(
        Collective(0, 0, "allreduce", 1, 1, "", 3),
        Collective(0, 0, "allreduce", 1, 1, "", -1),
        Collective(0, 1, "allreduce", 1, 1, "", 2),
    )
    assert table.straggler is not None


@pytest.mark.parametrize("other", [rank(1, [10, 10]), rank(1, [10, 10, 10], name="ncclKernel_SendRecv")])
def test_ranks_with_other_collectives_are_not_matched(other: RankTrace) -> None:
    table = rank_table([rank(0, [90, 90, 90]), other])
    assert table.collectives is None
    assert table.straggler is None
    assert all(row.wait_ns is None for row in table.rows)


def test_ranks_without_communication_are_merged_all_the_same() -> None:
    table = rank_table([rank(0, []), rank(1, [])])
    assert table.rows[0].communication_ns == 0
    assert table.rows[0].computation_ns == 10
    assert "no rank recorded a communication kernel" in table.because


def test_one_rank_makes_no_table() -> None:
    with pytest.raises(UsageError, match="two traces or more"):
        rank_table([rank(0, [10])])
