"""The guards on a set of files: files that could not be read, ranks that were not given, copies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from layers.evidence.guard import Checked, Effect, apply_guards
from layers.layer1_gpu_busy.collect import Unread
from layers.layer1_gpu_busy.guards_run import RUN_GUARDS, RunFacts
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from tests.layer1_traces import FIRST_NS, analysed, steady

Analyse = Callable[..., TraceAnalysis]


@pytest.fixture
def analyse(tmp_path: Path) -> Analyse:
    """Analyses a small trace of one rank; `start_ns` makes its bytes differ."""

    def make(rank: int = -1, world_size: int = -1, start_ns: int = FIRST_NS) -> TraceAnalysis:
        trace = steady(operations=2, start_ns=start_ns)
        if rank >= 0:
            trace.distributed(rank, world_size)
        return analysed(trace, tmp_path, f"{rank}-{start_ns}.json")

    return make


def checks(traces: list[TraceAnalysis], unread: list[Unread] | None = None) -> dict[str, Checked]:
    facts = RunFacts(traces, unread or [])
    return {checked.code: checked for checked in apply_guards(RUN_GUARDS, facts)}


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
    some = checks([analyse(0, 3), analyse(2, 3), analyse(2, 3, start_ns=2 * FIRST_NS)])["PK131"]
    assert (some.fired, some.effect) == (True, Effect.NOTE)
    assert some.message == "2 of the 3 ranks of the run given"


def test_pk131_is_clear_with_all_ranks(analyse: Analyse) -> None:
    assert not checks([analyse(1, 2), analyse(0, 2)])["PK131"].fired


def test_pk131_is_not_asked_where_no_file_names_ranks_or_there_is_but_one(analyse: Analyse) -> None:
    assert "PK131" not in checks([analyse()]) and "PK131" not in checks([analyse(0, 1)])


def test_pk132_fires_on_a_copy_and_counts_the_surplus(analyse: Analyse) -> None:
    first, other = analyse(), analyse(start_ns=2 * FIRST_NS)
    found = checks([first, first, other, first])["PK132"]
    assert (found.fired, found.effect) == (True, Effect.NOTE)
    assert found.message == "2 of 4 files repeat another byte for byte"


def test_pk132_is_clear_on_files_that_differ(analyse: Analyse) -> None:
    assert not checks([analyse(), analyse(start_ns=2 * FIRST_NS)])["PK132"].fired


def test_pk132_is_not_asked_of_one_file(analyse: Analyse) -> None:
    assert "PK132" not in checks([analyse()])
