"""Facts for checks of the symptom catalogue: what is measured from a tiny trace, and what a test just
says."""

from __future__ import annotations

from collections.abc import Mapping

from layers.evidence.symptom import Seen, SymptomRule
from layers.layer1_gpu_busy.busy import measure_busy
from layers.layer1_gpu_busy.copies import copy_table
from layers.layer1_gpu_busy.idle_model import Cause, IdleAnatomy, Place
from layers.layer1_gpu_busy.model import LaunchStats, Step, Steps
from layers.layer1_gpu_busy.replays import check_replays
from layers.layer1_gpu_busy.runtime_calls import launched_by
from layers.layer1_gpu_busy.steps import step_of_operations
from layers.layer1_gpu_busy.symptoms.facts import SymptomFacts
from parsers.trace_model import DeviceTrace
from tests.builders import ops_of

NO_STEPS = Steps("", (), "none in this test")


def facts_of(
    trace: DeviceTrace,
    *,
    steps: Steps = NO_STEPS,
    idle: IdleAnatomy | None = None,
    launches: LaunchStats | None = None,
) -> SymptomFacts:
    """Facts of device 0: busy time, replays and copies are measured, the rest is as given."""
    ops = ops_of(trace)
    return SymptomFacts(
        trace=trace,
        ops=ops,
        launched=launched_by(trace, ops),
        busy=measure_busy(trace, ops),
        replays=check_replays(trace, ops),
        steps=steps,
        step_of=step_of_operations(trace, ops, steps),
        idle=idle,
        launches=launches,
        copies=copy_table(trace, ops),
    )


def look(rule: SymptomRule[SymptomFacts], facts: SymptomFacts) -> Seen:
    """What the rule's check sees; every answer comes with numbers."""
    seen = rule.check(facts)
    assert any(character.isdigit() for character in seen.numbers)
    return seen


def step(
    start_ns: int,
    end_ns: int,
    kind: str = "step",
    *,
    name: str = "",
    batch_size: int | None = None,
    tokens: int | None = None,
    operations: int = 1,
) -> Step:
    """A step whose time on the host is its time on the device."""
    return Step(name or kind, kind, start_ns, end_ns, start_ns, end_ns, operations, batch_size, tokens)


def steps_of(*steps: Step) -> Steps:
    return Steps("test annotations on the host", steps, on_host=True)


def idle_of(
    idle_ns: int,
    causes: Mapping[Cause, int] | None = None,
    places: Mapping[Place, int] | None = None,
    *,
    median_gap_ns: float = 1.0,
) -> IdleAnatomy:
    """Idle time split as given; what a split leaves out is in no cause and no place."""
    return IdleAnatomy(idle_ns, 10, median_gap_ns, dict(causes or {}), dict(places or {}), ())


def launches_of(
    launches: int = 1_000,
    *,
    correlated: int = 1_000,
    p50_ns: float = 5_000,
    p99_ns: float = 10_000,
    queue_depth: int = 3,
) -> LaunchStats:
    """Launch statistics of which a test says what it is about."""
    return LaunchStats(
        launches=launches,
        correlated_ops=correlated,
        uncorrelated_ops=0,
        rate_per_s=None,
        delay_p50_ns=None,
        delay_p90_ns=None,
        call_p50_ns=p50_ns,
        call_p99_ns=p99_ns,
        queue_depth_p50=1.0,
        queue_depth_max=queue_depth,
        empty_queue_share=None,
        shorter_than_call_share=None,
    )
