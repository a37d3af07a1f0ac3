"""The guards on the time that a live sampling was asked for, over recordings that are built here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from layers.collectors.gpu.fields import CPU_BUSY, CPU_CORES, CPU_OURS
from layers.collectors.gpu.readings import Recording
from layers.collectors.watching import Watched
from layers.evidence.guard import Checked, Effect, apply_guards
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.layer1_gpu_busy.guards_live import GPU_LOST, LIVE_GUARDS
from layers.layer1_gpu_busy.guards_live_run import HOST_SHARED, TIME_NOT_COVERED
from layers.layer1_gpu_busy.judge_live import with_live_checks
from layers.layer1_gpu_busy.live_facts import Asked, LiveFacts
from layers.preflight.watch_judge import read_watch
from parsers.series_model import NO_DEVICE, Failure, FailureKind, Metric, Series
from tests.gpu_builders import PERIOD_NS, recording, series

ASKED_S = 6
CORES = 8.0


def facts(*cards: int, cut_short: bool = False) -> LiveFacts:
    """A sampling of 6 s in which each card gave so many samples, one a period from its begin."""
    all_series = [series(number, Metric.NVML_UTIL_PCT, [30.0] * n) for number, n in enumerate(cards)]
    asked = Asked(ASKED_S, 0, ASKED_S * 10**9, cut_short)
    return LiveFacts([recording(*all_series)], asked=asked)


def fired(facts: LiveFacts, name: str) -> Checked | None:
    return next((c for c in apply_guards(LIVE_GUARDS, facts) if c.name == name and c.fired), None)


def test_a_sampler_that_stops_half_way_leaves_time_uncovered_and_only_hints() -> None:
    checked = fired(facts(26), "time-not-covered")
    assert checked is not None and checked.effect is Effect.DIRECTIONAL
    assert checked.message == "gpu 0 was sampled for 2.6 s of the 6 s asked for"


def test_the_time_is_asked_of_every_card() -> None:
    checked = fired(facts(60, 26), "time-not-covered")
    assert checked is not None and checked.message.startswith("gpu 1 was sampled for 2.6 s")


@pytest.mark.parametrize(("samples", "short"), [(47, True), (49, False), (60, False)])
def test_four_fifths_of_the_time_must_be_sampled(samples: int, short: bool) -> None:
    assert (TIME_NOT_COVERED.fired_in(apply_guards(LIVE_GUARDS, facts(samples))) is not None) is short


def test_a_card_that_gave_no_sample_is_no_matter_of_time() -> None:
    assert fired(facts(60, 0), "time-not-covered") is None


def test_an_interrupted_sampling_says_so_and_exits_130() -> None:
    checked = apply_guards(LIVE_GUARDS, facts(60, cut_short=True))
    found = TIME_NOT_COVERED.fired_in(checked)
    assert found is not None and found.message.startswith("stopped early, after 6.0 s of the 6 s")
    result = Result("layer1", Verdict("host-bound", False, "idle", Exit.OK))
    verdict = with_live_checks(result, checked, cut_short=True).verdict
    assert (verdict.exit_code, verdict.directional) == (Exit.INTERRUPTED, True)


def test_a_sampler_that_prints_that_a_gpu_is_lost_is_believed() -> None:
    said = "Unable to determine the device handle for GPU 0000:00:00.0: GPU is lost"
    lost = recording(series(0, Metric.NVML_UTIL_PCT, [30.0] * 60))
    failure = Failure(FailureKind.GPU_LOST, said)
    lost = replace(lost, file=replace(lost.file, failures=(failure,)))
    found = GPU_LOST.fired_in(apply_guards(LIVE_GUARDS, LiveFacts([lost])))
    assert found is not None and found.message == said


def host(busy: Sequence[float], ours: Sequence[float]) -> Recording:
    """Looks at the host, one a second: cores that were busy, and those that ours kept busy."""
    columns = {CPU_BUSY: busy, CPU_OURS: ours, CPU_CORES: [CORES] * len(busy)}
    at_ns = np.arange(len(busy), dtype=np.int64) * 10 * PERIOD_NS
    return recording(
        *(
            Series(Metric.OTHER, field, "host", NO_DEVICE, at_ns, np.array(values, np.float64), 0)
            for field, values in columns.items()
        )
    )


def beside(busy: Sequence[float], ours: Sequence[float], *, named: bool) -> LiveFacts:
    watch = read_watch(Watched((host(busy, ours),), ()), None, (0,), True)
    return replace(facts(60), watch=watch, named=named)


def test_cpus_that_others_keep_busy_make_a_named_service_a_hint() -> None:
    checked = fired(beside([7.9, 7.9], [0.1, 0.1], named=True), "host-shared")
    assert checked is not None and checked.effect is Effect.DIRECTIONAL
    assert "others kept up to 98 % of the cores busy" in checked.message


def test_without_a_named_service_busy_cpus_are_a_note() -> None:
    checked = fired(beside([7.9, 7.9], [0.1, 0.1], named=False), "host-shared")
    assert checked is not None and checked.effect is Effect.NOTE and "--pid" in checked.message


def test_cpus_that_the_service_itself_keeps_busy_are_none_of_others() -> None:
    checked = apply_guards([HOST_SHARED], beside([7.9, 7.9], [7.8, 7.8], named=True))
    assert [c.fired for c in checked] == [False]
