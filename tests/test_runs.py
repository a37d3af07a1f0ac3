"""Which files belong together: ranks of one run, captures of one workload, and files that are neither."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from layers.layer1_gpu_busy.runs import CLOCKS_APART_NS, Run, group_runs, rank_tables, same_work
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from tests.layer1_traces import FIRST_NS, add_steady, analysed, host_only
from tests.writers.chrome import TraceBuilder

EPOCH_NS = 1_700_000_000_000_000_000
Analyse = Callable[..., TraceAnalysis]


@pytest.fixture
def analyse(tmp_path: Path) -> Analyse:
    """Analyses a small trace of one rank, by default one without a clock; `name` is its file. No two of them
    hold the same events."""
    lengths_ns = count(10)

    def make(
        name: str,
        rank: int = -1,
        world_size: int = -1,
        *,
        at_ns: int = FIRST_NS,
        collectives: Sequence[str] = (),
        busy_only: bool = False,
    ) -> TraceAnalysis:
        trace = TraceBuilder()
        add_steady(trace, operations=3, start_ns=at_ns)
        trace.kernel("kernel_0", at_ns, next(lengths_ns))
        for n, collective in enumerate(collectives):
            trace.kernel(f"ncclDevKernel_{collective}", at_ns + n * 100, 50)
        if rank >= 0:
            trace.distributed(rank, world_size)
        (tmp_path / name).parent.mkdir(exist_ok=True)
        return analysed(trace, tmp_path, name, busy_only=busy_only)

    return make


def files(runs: Sequence[Run]) -> list[list[str]]:
    return [[Path(trace.artifact.path).name for trace in run.traces] for run in runs]


def test_ranks_of_one_world_are_one_run_and_need_no_name(analyse: Analyse) -> None:
    [run] = group_runs([analyse("a", 0, 4), analyse("b", 3, 4)])
    assert (run.name, run.world_size, run.ranks) == ("", 4, frozenset({0, 3}))


def test_runs_of_different_worlds_are_apart_and_named(analyse: Analyse) -> None:
    runs = group_runs([analyse("a", 0, 8), analyse("b", 0, 128), analyse("c", 1, 8), analyse("d", 1, 128)])
    assert files(runs) == [["a", "c"], ["b", "d"]]
    assert [run.name for run in runs] == ["run A", "run B"]


def test_a_rank_that_is_there_already_begins_another_run(analyse: Analyse) -> None:
    runs = group_runs([analyse("a", 0, 2), analyse("b", 1, 2), analyse("c", 0, 2), analyse("d", 1, 2)])
    assert files(runs) == [["a", "b"], ["c", "d"]]


def test_clocks_tell_two_runs_of_the_same_ranks_apart_in_any_order(analyse: Analyse) -> None:
    later_ns = EPOCH_NS + 2 * CLOCKS_APART_NS
    runs = group_runs(
        [
            analyse("first-0", 0, 2, at_ns=EPOCH_NS),
            analyse("second-1", 1, 2, at_ns=later_ns),
            analyse("second-0", 0, 2, at_ns=later_ns),
            analyse("first-1", 1, 2, at_ns=EPOCH_NS),
        ]
    )
    assert files(runs) == [["first-0", "first-1"], ["second-1", "second-0"]]


def test_of_two_runs_close_in_time_the_nearer_one_gets_the_file(analyse: Analyse) -> None:
    second_ns = EPOCH_NS + CLOCKS_APART_NS // 2
    runs = group_runs(
        [
            analyse("first-0", 0, 2, at_ns=EPOCH_NS),
            analyse("second-0", 0, 2, at_ns=second_ns),
            analyse("second-1", 1, 2, at_ns=second_ns),
            analyse("first-1", 1, 2, at_ns=EPOCH_NS),
        ]
    )
    assert files(runs) == [["first-0", "first-1"], ["second-0", "second-1"]]


def test_hosts_whose_clocks_differ_a_little_are_one_run(analyse: Analyse) -> None:
    ranks = [analyse(f"{n}", n, 2, at_ns=EPOCH_NS + n * CLOCKS_APART_NS // 2) for n in (0, 1)]
    assert files(group_runs(ranks)) == [["0", "1"]]


def test_without_clocks_the_sequence_of_collectives_decides(analyse: Analyse) -> None:
    runs = group_runs(
        [
            analyse("a", 0, 2, collectives=["AllReduce"]),
            analyse("b", 0, 2, collectives=["AllGather", "AllReduce"]),
            analyse("c", 1, 2, collectives=["AllGather", "AllReduce"]),
            analyse("d", 1, 2, collectives=["AllReduce"]),
        ]
    )
    assert files(runs) == [["a", "d"], ["b", "c"]]


def test_without_either_files_of_one_folder_belong_together(analyse: Analyse) -> None:
    runs = group_runs(
        [analyse("x/a", 0, 2), analyse("y/b", 0, 2), analyse("y/c", 1, 2), analyse("x/d", 1, 2)]
    )
    assert files(runs) == [["a", "d"], ["b", "c"]]


def test_a_file_that_names_no_rank_is_a_run_of_its_own(analyse: Analyse) -> None:
    runs = group_runs([analyse("a"), analyse("b"), analyse("c", 0, 1)])
    assert files(runs) == [["a"], ["b"], ["c"]]


def test_a_copy_is_no_rank_of_its_own(analyse: Analyse) -> None:
    first = analyse("a", 0, 2)
    copy = replace(first, artifact=replace(first.artifact, path="copy"))
    assert files(group_runs([first, copy])) == [["a"]]


def test_runs_beyond_the_alphabet_are_numbered(analyse: Analyse) -> None:
    one = analyse("a")
    many = [replace(one, recorded_ns=(0, n)) for n in range(27)]
    assert [run.name for run in group_runs(many)][-2:] == ["run Z", "run 27"]


def test_each_run_of_several_ranks_gets_its_table(analyse: Analyse) -> None:
    traces = [analyse("a", 0, 2), analyse("b", 0, 9), analyse("c", 1, 2), analyse("d", 1, 9), analyse("e")]
    tables = rank_tables(group_runs(traces))
    assert [(t.name, t.world_size, t.missing) for t in tables] == [("run A", 2, 0), ("run B", 9, 7)]
    assert [[Path(row.source).name for row in t.rows] for t in tables] == [["a", "c"], ["b", "d"]]


def test_files_read_for_ratios_alone_have_no_table_of_ranks(analyse: Analyse) -> None:
    runs = group_runs([analyse(f"{n}", n, 2, busy_only=True) for n in (0, 1)])
    assert len(runs) == 1 and rank_tables(runs) == ()


# Workloads


def with_kernels(analysis: TraceAnalysis, *names: str, card: str = "") -> TraceAnalysis:
    [device] = analysis.devices
    rows = tuple(replace(device.kernels[0], name=name, group="gemm") for name in names)
    changed = replace(device, kernels=rows, busy=replace(device.busy, device_name=card))
    return replace(analysis, devices=(changed,))


def works(*traces: TraceAnalysis) -> list[int | None]:
    return [run.work for run in group_runs(traces)]


def test_captures_that_share_most_kernel_names_are_of_one_workload(analyse: Analyse) -> None:
    a = with_kernels(analyse("a"), "p", "q")
    b = with_kernels(analyse("b"), "q", "r", "s", "t")
    c = with_kernels(analyse("c"), "r", "s", "t", "u", "v")
    assert works(a, b, c) == [0, 0, 1]


def test_another_card_or_world_size_is_another_workload(analyse: Analyse) -> None:
    a = with_kernels(analyse("a", 0, 1), "p", card="H100")
    b = with_kernels(analyse("b", 0, 1), "p", card="H200")
    c = with_kernels(analyse("c", 0, 8), "p", card="H100")
    unnamed = with_kernels(analyse("d", 0, 1), "p")
    assert works(a, b, c, unnamed) == [0, 1, 2, 0]


def test_copies_and_sets_are_what_every_workload_has(analyse: Analyse) -> None:
    a, b = with_kernels(analyse("a"), "p", "Memcpy"), with_kernels(analyse("b"), "q", "Memcpy")
    [device] = b.devices
    copies = replace(device.kernels[1], group="memcpy")
    b = replace(b, devices=(replace(device, kernels=(device.kernels[0], copies)),))
    assert works(a, b) == [0, 1]


def test_where_no_kernel_was_looked_at_nothing_tells_captures_apart(analyse: Analyse) -> None:
    assert works(analyse("a", busy_only=True), analyse("b", busy_only=True)) == [0, 0]
    assert same_work([], ["p"])


def test_a_trace_without_device_work_is_of_no_workload(analyse: Analyse, tmp_path: Path) -> None:
    assert works(analyse("a"), analysed(host_only(), tmp_path, "b")) == [0, None]
