"""Which stretches others touched: rules on series built in code, joining against a twin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.gpu.fields import CPU_BUSY, CPU_CORES, CPU_OURS, PROCESS_LISTED, PROCESSES
from layers.collectors.watching import Watched
from layers.evidence.guard import Effect
from layers.evidence.verdict import Exit
from layers.preflight.watch import (
    LOOKS_BACK_NS,
    Arrival,
    Stretch,
    Window,
    arrivals,
    contended,
    touched_samples,
    touching,
)
from layers.preflight.watch_guards import WatchFacts
from layers.preflight.watch_judge import judge_watch, read_watch
from parsers.errors import InvalidMeasurement
from parsers.series_model import NO_DEVICE, Metric, Series
from tests.gpu_builders import GIB, recording, series

S = 1_000_000_000
LOOKS = 12
OURS, THEIRS = 10, 20


def at_seconds(made: Series, seconds: Sequence[int], **facts: object) -> Series:
    return replace(made, at_ns=np.array(seconds, np.int64) * S, **facts)  # type: ignore[arg-type]


def look(device: int = 0) -> Series:
    """A card whose processes are listed once a second."""
    made = series(device, Metric.OTHER, [1.0] * LOOKS)
    return at_seconds(made, range(LOOKS), field=PROCESSES)


def listed(pid: int, seconds: Sequence[int], device: int = 0) -> Series:
    made = series(device, Metric.OTHER, [1.0] * len(seconds))
    return at_seconds(made, seconds, field=PROCESS_LISTED, pid=pid)


def of_process(pid: int, metric: Metric, values: Sequence[float], device: int = 0) -> Series:
    return at_seconds(series(device, metric, values), range(len(values)), pid=pid)


def of_card(metric: Metric, values: Sequence[float], device: int = 0) -> Series:
    return at_seconds(series(device, metric, values), range(len(values)))


def host(busy: Sequence[float], ours: Sequence[float], cores: int = 10) -> list[Series]:
    columns = {CPU_BUSY: busy, CPU_OURS: ours, CPU_CORES: [cores] * len(busy)}
    made = [(field, series(NO_DEVICE, Metric.OTHER, values)) for field, values in columns.items()]
    return [at_seconds(one, range(len(busy)), field=field, entity="host") for field, one in made]


def spans(stretches: Sequence[Stretch]) -> list[tuple[int, float, float]]:
    return [(one.device, one.begin_ns / S, one.end_ns / S) for one in stretches]


def test_a_foreign_burst_marks_from_the_look_before_to_the_look_after() -> None:
    burst = of_process(THEIRS, Metric.PROCESS_UTIL_PCT, [0, 0, 0, 40, 0, 0])
    (one,) = contended([look(), listed(THEIRS, range(LOOKS)), burst], {OURS}, None)
    assert spans([one]) == [(0, 2, 4)] and one.why == ("process 20 computed (40 %)",)


def test_what_our_own_processes_do_marks_nothing() -> None:
    ours = [
        of_process(OURS, Metric.PROCESS_UTIL_PCT, [99.0] * LOOKS),
        of_process(OURS, Metric.PROCESS_MEMORY_BYTES, [0, 80 * GIB]),
        listed(OURS, range(3, 6)),
    ]
    assert contended([look(), *ours], {OURS}, None) == ()


def test_an_idle_process_that_was_there_before_marks_nothing() -> None:
    idle = [listed(THEIRS, range(LOOKS)), of_process(THEIRS, Metric.PROCESS_MEMORY_BYTES, [GIB] * LOOKS)]
    assert contended([look(), *idle], {OURS}, None) == ()


def test_memory_that_a_foreign_process_moves_is_marked() -> None:
    moved = of_process(THEIRS, Metric.PROCESS_MEMORY_BYTES, [GIB, GIB, 3 * GIB, GIB])
    (one,) = contended([look(), listed(THEIRS, range(LOOKS)), moved], {OURS}, None)
    assert spans([one]) == [(0, 1, 3)] and one.why == ("process 20 moved 2.0 GiB",)


def test_one_that_comes_is_marked_while_it_is_there_and_one_that_leaves_when_it_leaves() -> None:
    came, left = listed(THEIRS, [4, 5, 6]), listed(30, [0, 1], device=1)
    found = contended([look(0), look(1), came, left], {OURS}, None)
    assert spans(found) == [(0, 3, 7), (1, 0, 2)]
    assert arrivals([look(0), look(1), came, left], {OURS}) == [Arrival(0, THEIRS, 4 * S)]


def test_without_ids_to_tell_apart_processes_mark_nothing_but_arrivals_are_named() -> None:
    came = listed(THEIRS, [4, 5, 6])
    assert contended([look(), came], None, None) == ()
    assert arrivals([look(), came], None) == [Arrival(0, THEIRS, 4 * S)]


def test_any_use_outside_our_windows_is_somebody_elses() -> None:
    util = of_card(Metric.NVML_UTIL_PCT, [0, 90, 90, 90, 0, 0, 0, 0, 90, 0])
    window = Window(1 * S, 3 * S - LOOKS_BACK_NS // 2)
    assert spans(contended([util], None, [window])) == [(0, 7, 9)]
    assert spans(contended([util], None, ())) == [(0, 0, 4), (0, 7, 9)]
    assert contended([util], None, None) == ()


def test_memory_filled_while_nothing_of_ours_ran_is_somebody_elses() -> None:
    memory = of_card(Metric.MEMORY_USED_BYTES, [0, 0, 20 * GIB, 20 * GIB, 0])
    assert spans(contended([memory], None, ())) == [(0, 1, 4)]
    assert contended([memory], None, [Window(0, 9 * S)]) == ()


def test_the_host_is_marked_where_others_keep_a_tenth_of_its_cores_busy() -> None:
    found = contended(host(busy=[9, 9, 9, 9, 9], ours=[9, 9, 7.9, 9, 9]), {OURS}, None)
    assert spans(found) == [(NO_DEVICE, 1, 3)] and "up to 11 %" in found[0].why[0]
    assert contended(host(busy=[9, 9, 9], ours=[9, 8.5, 9]), {OURS}, None) == ()


def test_a_run_is_touched_on_its_card_and_through_the_host_alone() -> None:
    mine, neighbours, hosts = (Stretch(device, 5 * S, 8 * S, ("",)) for device in (0, 1, NO_DEVICE))
    assert touching([mine, neighbours, hosts], 0, 6 * S, {0}) == [mine, hosts]
    assert touching([mine, hosts], 9 * S, 10 * S, {0}) == []


BUSY = st.lists(st.booleans(), min_size=2, max_size=30)


@given(first=BUSY, second=BUSY)
def test_stretches_are_disjoint_and_cover_just_the_looks_around_each_use(
    first: list[bool], second: list[bool]
) -> None:
    """Twin: second by second, whether a look at it or next to it saw somebody."""
    looks = max(len(first), len(second))
    listing = at_seconds(series(0, Metric.OTHER, [1.0] * looks), range(looks), field=PROCESSES)
    users = [
        of_process(pid, Metric.PROCESS_UTIL_PCT, [50.0 * busy for busy in flags])
        for pid, flags in ((20, first), (30, second))
    ]
    found = contended([listing, *users], {OURS}, None)
    half_ns = np.arange(2 * looks - 1) * (S // 2)
    used = {i for flags in (first, second) for i, busy in enumerate(flags) if busy}
    twin = [any(i - 1 <= half / 2 <= i + 1 for i in used) for half in range(2 * looks - 1)]
    assert touched_samples(half_ns, found).tolist() == twin
    assert all(a.end_ns < b.begin_ns for a, b in pairwise(found))


def facts(*of_gpus: Series, family: frozenset[int] = frozenset({OURS}), host_pids: bool = True) -> WatchFacts:
    recordings = (recording(*host([1.0] * LOOKS, [1.0] * LOOKS)), recording(*of_gpus))
    return read_watch(Watched(recordings, (), family), None, [], host_pids)


def fired(made: WatchFacts) -> dict[str, Effect]:
    return {c.code: c.effect for c in judge_watch(made).guards if c.fired}


def test_others_on_our_card_void_and_on_a_neighbours_are_a_note() -> None:
    burst = of_process(THEIRS, Metric.PROCESS_UTIL_PCT, [50.0] * LOOKS, device=1)
    quiet = [look(0), look(1), listed(THEIRS, range(LOOKS), device=1)]
    neighbour = facts(*quiet, listed(OURS, range(LOOKS), device=0), burst)
    assert neighbour.cards == (0,) and fired(neighbour) == {"PK021": Effect.NOTE}
    assert judge_watch(neighbour).verdict.exit_code is Exit.OK
    ours = facts(*quiet, listed(OURS, range(LOOKS), device=1), burst)
    assert ours.cards == (1,) and fired(ours) == {"PK021": Effect.VOID}
    assert judge_watch(ours).verdict.exit_code is Exit.INVALID


def test_a_busy_host_is_contended_PK022() -> None:
    watched = Watched((recording(*host([9.0] * LOOKS, [1.0] * LOOKS)),), ("gpu-watch: no driver",))
    result = judge_watch(read_watch(watched, None, [], True))
    assert result.verdict.word == "contended" and "PK022" in {c.code for c in result.guards if c.fired}
    assert "no GPU was watched (gpu-watch: no driver), only the CPUs of the host" in result.verdict.because


def test_one_that_comes_is_named_PK023() -> None:
    assert fired(facts(look(0), listed(THEIRS, [4, 5])))["PK023"] is Effect.NOTE


def test_a_watch_that_cannot_tell_whose_is_directional_PK024() -> None:
    untold = facts(look(0), host_pids=False)
    assert fired(untold) == {"PK024": Effect.DIRECTIONAL}
    assert judge_watch(untold).verdict.headline == "QUIET?"


def test_a_handful_of_looks_is_directional_PK025() -> None:
    short = Watched((recording(*host([1.0] * 3, [1.0] * 3)),), ())
    result = judge_watch(read_watch(short, None, [], True))
    assert [c.code for c in result.guards if c.fired] == ["PK025"]
    assert result.verdict.exit_code is Exit.NO_CONCLUSION


@pytest.mark.parametrize(("asked_s", "fires"), [(12, False), (16, False), (17, True), (60, True)])
def test_a_watch_whose_sampler_ended_before_it_only_hints_PK027(asked_s: int, fires: bool) -> None:
    """Twelve looks, one a second, reach over 13 s with a look's own time at both ends."""
    watched = Watched((recording(*host([1.0] * LOOKS, [1.0] * LOOKS)),), (), end_ns=asked_s * S)
    result = judge_watch(read_watch(watched, None, [], True))
    fired = [(c.code, c.message) for c in result.guards if c.fired]
    assert fired == ([("PK027", f"the host was watched for 13.0 s of {asked_s}.0 s")] if fires else [])
    assert result.verdict.exit_code == (Exit.NO_CONCLUSION if fires else Exit.OK)


def test_one_that_was_cut_short_exits_130_with_its_word() -> None:
    verdict = judge_watch(facts(look(0)), cut_short=True).verdict
    assert (verdict.word, verdict.exit_code) == ("quiet", Exit.INTERRUPTED)


def test_a_watch_of_nothing_is_invalid() -> None:
    with pytest.raises(InvalidMeasurement, match="nothing could be watched: no /proc/stat"):
        read_watch(Watched((), ("no /proc/stat",)), None, [], True)
