"""The guards on a set of files: files that could not be read, ranks that were not given, copies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from layers.evidence.guard import Checked, Effect
from layers.layer1_gpu_busy.guards_run import check_files
from layers.layer1_gpu_busy.runs import group_runs
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis, Unread
from tests.layer1_traces import FIRST_NS, analysed, steady
from tests.writers.chrome import TraceBuilder

Analyse = Callable[..., TraceAnalysis]


@pytest.fixture
def analyse(tmp_path: Path) -> Analyse:
    """Analyses a small trace of one rank; `start_ns` makes its bytes differ."""

    def make(rank: int = -1, world_size: int = -1, start_ns: int = FIRST_NS) -> TraceAnalysis:
        trace = steady(operations=2, start_ns=start_ns)
        if rank >= 0:
            trace.distributed(rank, world_size)
        return analysed(trace, tmp_path, f"{rank}-{world_size}-{start_ns}.json")

    return make


def checked(traces: list[TraceAnalysis], unread: list[Unread] | None = None) -> list[Checked]:
    return check_files(traces, unread or [], group_runs(traces))


def checks(traces: list[TraceAnalysis], unread: list[Unread] | None = None) -> dict[str, Checked]:
    """By code; of several runs the last one's."""
    return {one.code: one for one in checked(traces, unread)}


def test_pk130_fires_on_any_file_that_could_not_be_read(analyse: Analyse) -> None:
    bad = [Unread("a.json", "a.json: no chrome trace"), Unread("b.json", "b.json: empty")]
    one, two = checks([analyse()], bad[:1])["PK130"], checks([analyse()], bad)["PK130"]
    assert (one.fired, one.effect) == (True, Effect.DIRECTIONAL)
    assert one.message == "1 of 2 files could not be read: a.json: no chrome trace"
    assert two.message == "2 of 3 files could not be read: a.json: no chrome trace; and 1 more"


def test_pk130_is_clear_where_all_were_read(analyse: Analyse) -> None:
    found = checks([analyse()])["PK130"]
    assert (found.fired, found.message) == (False, "1 file, all read")


def test_pk131_fires_while_ranks_of_the_run_are_missing(analyse: Analyse) -> None:
    some = checks([analyse(0, 3), analyse(2, 3)])["PK131"]
    assert (some.fired, some.effect, some.scope) == (True, Effect.NOTE, "")
    assert some.message == "2 of the 3 ranks given"


def test_pk131_counts_the_ranks_of_each_run_by_itself(analyse: Analyse) -> None:
    runs = [analyse(0, 2), analyse(0, 128), analyse(1, 2), analyse(1, 128)]
    found = [(c.scope, c.fired, c.message) for c in checked(runs) if c.code == "PK131"]
    assert found == [
        ("run A", False, "2 of the 2 ranks given"),
        ("run B", True, "2 of the 128 ranks given"),
    ]


def test_pk131_is_clear_with_all_ranks(analyse: Analyse) -> None:
    assert not checks([analyse(1, 2), analyse(0, 2)])["PK131"].fired


def test_pk131_is_not_asked_where_no_file_names_ranks_or_there_is_but_one(analyse: Analyse) -> None:
    assert "PK131" not in checks([analyse()]) and "PK131" not in checks([analyse(0, 1)])


def test_pk132_fires_on_a_copy_and_counts_the_surplus(analyse: Analyse) -> None:
    first, other = analyse(), analyse(start_ns=2 * FIRST_NS)
    found = checks([first, first, other, first])["PK132"]
    assert (found.fired, found.effect) == (True, Effect.NOTE)
    assert found.message == "2 of 4 files hold the same events as another"


def test_pk132_knows_a_copy_that_is_packed_otherwise(tmp_path: Path) -> None:
    names = ("a.json", "a.json.gz", "other.json")
    starts = (FIRST_NS, FIRST_NS, 2 * FIRST_NS)
    files = [analysed(steady(start_ns=at), tmp_path, name) for name, at in zip(names, starts, strict=True)]
    assert len({file.artifact.sha256 for file in files}) == 3
    found = checks(files)["PK132"]
    assert (found.fired, found.message) == (True, "1 of 3 files hold the same events as another")


def test_pk175_fires_on_a_rank_that_its_world_does_not_have(analyse: Analyse) -> None:
    found = checks([analyse(5, 2), analyse(1, 2), analyse(2, 2)])["PK175"]
    assert (found.fired, found.effect) == (True, Effect.NOTE)
    assert found.message == (
        "no run has such a rank: 5-2-1000000.json says rank 5 of 2; 2-2-1000000.json says rank 2 of 2"
    )


def test_pk131_does_not_count_ranks_that_no_run_has(analyse: Analyse) -> None:
    assert checks([analyse(5, 2), analyse(1, 2)])["PK131"].message == "1 of the 2 ranks given"


def test_pk175_fires_on_files_that_all_claim_one_rank_at_one_time(analyse: Analyse) -> None:
    found = checks([analyse(0, 4, FIRST_NS + late) for late in (0, 10, 20, 30)])["PK175"]
    assert found.fired and found.message == (
        "one rank several times, at the same time: 0-4-1000000.json says rank 0 of 4; "
        "0-4-1000010.json says rank 0 of 4; 0-4-1000020.json says rank 0 of 4; and 1 more"
    )


def test_pk175_is_clear_on_captures_of_one_rank_one_after_another(analyse: Analyse) -> None:
    found = checks([analyse(0, 4), analyse(0, 4, 1_000 * FIRST_NS)])["PK175"]
    assert (found.fired, found.message) == (False, "2 files whose ranks fit together")


def test_pk175_leaves_whole_runs_at_one_time_to_pk133(analyse: Analyse) -> None:
    runs = [analyse(rank, 2, FIRST_NS + late) for late in (0, 10) for rank in (0, 1)]
    found = checks(runs)
    assert (found["PK175"].fired, found["PK133"].fired) == (False, True)


def test_pk175_is_not_asked_where_no_file_names_its_rank(analyse: Analyse) -> None:
    assert "PK175" not in checks([analyse()])


def test_pk132_is_clear_on_files_that_differ(analyse: Analyse) -> None:
    assert not checks([analyse(), analyse(start_ns=2 * FIRST_NS)])["PK132"].fired


def test_pk132_is_not_asked_of_one_file(analyse: Analyse) -> None:
    assert "PK132" not in checks([analyse()])


def test_pk133_fires_on_the_files_of_several_runs_and_names_them(analyse: Analyse) -> None:
    found = checks([analyse(0, 2), analyse(0, 128), analyse(1, 2), analyse(-1)])["PK133"]
    assert (found.fired, found.effect) == (True, Effect.NOTE)
    assert found.message == (
        "4 files of 3 runs (run A of 2 ranks: 0-2-1000000.json and 1 more; run B of 128 ranks: "
        "0-128-1000000.json; run C: -1--1-1000000.json)"
    )


def test_pk133_names_three_runs_and_counts_the_rest(analyse: Analyse) -> None:
    worlds = [analyse(rank, size) for size in (2, 3, 4, 5, 6) for rank in (0, 1)]
    assert checks(worlds)["PK133"].message.endswith("; and 2 more)")


def test_pk133_fires_on_captures_of_unrelated_workloads(analyse: Analyse, tmp_path: Path) -> None:
    other = TraceBuilder()
    other.kernel("another_kernel", FIRST_NS, 100)
    found = checks([analyse(), analysed(other, tmp_path, "other.json")])["PK133"]
    assert (found.fired, found.message) == (
        True,
        "2 files of 2 workloads, told apart by card, world size and kernel names",
    )


def test_pk133_is_clear_on_captures_of_one_workload_and_on_one_run(analyse: Analyse) -> None:
    captures = checks([analyse(), analyse(start_ns=2 * FIRST_NS)])["PK133"]
    ranks = checks([analyse(0, 2), analyse(1, 2)])["PK133"]
    assert (captures.fired, ranks.fired) == (False, False)


def test_pk133_fires_on_ranks_of_one_world_that_were_not_recorded_together(analyse: Analyse) -> None:
    years_later = FIRST_NS + 10**17
    apart = checks([analyse(0, 2), analyse(1, 2, years_later)])["PK133"]
    one_rank_twice = checks([analyse(0, 2), analyse(0, 2, years_later)])["PK133"]
    assert (apart.fired, one_rank_twice.fired) == (True, False)
    assert apart.message.startswith("2 files of 2 runs (run A")


def test_pk133_is_not_asked_of_one_file(analyse: Analyse) -> None:
    assert "PK133" not in checks([analyse()])
