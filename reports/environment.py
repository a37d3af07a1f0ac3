"""What the runs that count know of where they ran, and of where their traces were recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.store_rows import Run
from layers.evidence.wording import counted
from layers.layer1_gpu_busy.document_entries import TraceEntry
from parsers.chrome_categories import Role
from reports.layer1_section import Layer1Run
from reports.model import EnvironmentFact
from reports.preflight_section import baseline_text


def environment(
    runs: Sequence[Layer1Run], others: Sequence[Run], preflight: Run | None
) -> tuple[EnvironmentFact, ...]:
    """Facts that are the same in several runs stand once, with the runs that know them. `others` are runs of
    other layers, of which the host is known.
    """
    known: dict[tuple[str, str], list[int]] = {}
    if preflight is not None:
        known["baseline", baseline_text(preflight)] = [preflight.id]
    for traced in runs:
        for fact in dict.fromkeys(_facts(traced)):
            known.setdefault(fact, []).append(traced.run.id)
    for run in others:
        known.setdefault(("perfkit ran on host", run.call.host), []).append(run.id)
    names = list(dict.fromkeys(name for name, _ in known))
    facts = [EnvironmentFact(name, value, tuple(ids)) for (name, value), ids in known.items()]
    return tuple(sorted(facts, key=lambda fact: names.index(fact.name)))


def _facts(run: Layer1Run) -> Iterator[tuple[str, str]]:
    yield "analysed on host", run.run.call.host
    for device in run.document.traced:
        yield "device", device.device_name or "not named by the trace"
    for trace in run.document.traces:
        yield from _trace_facts(trace)


def _trace_facts(trace: TraceEntry) -> Iterator[tuple[str, str]]:
    meta = trace.meta
    yield "recorded by", meta.producer
    yield from sorted(meta.versions.items())
    if meta.world_size > 0:
        yield "ranks in the run", str(meta.world_size)
    yield "time resolution", "1 ns" if meta.nanosecond_resolution else "1 µs"
    frames = python_frames(trace)
    yield "Python stacks", f"recorded ({counted(frames, 'frame')})" if frames else "not recorded"


def python_frames(trace: TraceEntry) -> int:
    """How many Python frames a trace holds."""
    return sum(c.events for c in trace.inventory if c.role == Role.PYTHON)
