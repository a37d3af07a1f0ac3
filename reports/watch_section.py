"""Watches of pre-flight (`perfkit preflight --watch`) as a part of its section: who else used the machine,
when, and which of the recorded runs that touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.store_rows import Run
from layers.evidence.wording import counted, first_few, pct
from layers.preflight.watch import Stretch, touching
from layers.preflight.watch_guards import clock_text
from parsers.series_model import NO_DEVICE
from reports.history import verdict_of
from reports.model import Basis, Block, Column, Heading, Paragraph, Table

HOW = (
    "A watch looks at every card twice a second and at the host's CPUs once, by samplers of its own. What is "
    "not of the processes that were named as ours counts as others'."
)
METHOD = "looks of the watch's samplers"
STRETCHES_SHOWN = 20
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class WatchRun:
    """One recorded watch, and the files that its samplers wrote."""

    run: Run
    measurements: tuple[Measurement, ...]
    artifacts: tuple[Artifact, ...]

    @property
    def basis(self) -> Basis:
        looks = max((m.n for m in self.measurements), default=1)
        return Basis(looks, "looks", METHOD, self.artifacts)

    @property
    def stretches(self) -> list[Stretch]:
        """What others touched, as it was recorded."""
        return [
            Stretch(one["device"], one["begin_ns"], one["end_ns"], tuple(one["why"]))
            for one in self.run.document["contended"]
        ]


def watch_blocks(watches: Sequence[WatchRun], runs: Sequence[Run]) -> Iterator[Block]:
    """Every watch; `runs` are those that may have been touched."""
    for watch in watches:
        verdict = verdict_of(watch.run)
        yield Heading(f"Watch, run {watch.run.id}")
        yield Paragraph(verdict.headline, verdict.because, watch.basis)
        if watch.measurements:
            yield _looks(watch)
        if stretches := watch.stretches:
            yield _touched(watch, stretches, runs)
        else:
            yield Paragraph("Touched", "nothing: no stretch of the watch has to be left out", watch.basis)
        if came := watch.run.document["arrivals"]:
            yield Paragraph("Came", first_few(map(_arrival, came)), watch.basis)
        yield Paragraph("Cost", _cost(watch.run.document["sampling"]["samplers"]), watch.basis)


def _looks(watch: WatchRun) -> Table:
    columns = (Column("where"), Column("what"), Column("value", numeric=True), Column("n", "looks", True))
    rows = tuple((m.scope, m.name, _value(m), f"{m.n:,}") for m in watch.measurements)
    return Table(f"What was looked at in run {watch.run.id}", columns, rows, watch.basis)


def _value(m: Measurement) -> str:
    return f"{m.value:.1f} %" if m.unit == "%" else pct(m.value)


def _touched(watch: WatchRun, stretches: Sequence[Stretch], runs: Sequence[Run]) -> Table:
    """Leave out what was measured in these stretches, or keep it for qualitative conclusions."""
    columns = (
        *(Column("where"), Column("from")),
        Column("for", numeric=True),
        *(Column("why"), Column("touches")),
    )
    rows = tuple(
        (s.where, clock_text(s.begin_ns), f"{s.seconds:.1f} s", first_few(s.why), _runs(s, runs))
        for s in stretches[:STRETCHES_SHOWN]
    )
    title = f"Touched by others in run {watch.run.id}"
    if len(stretches) > STRETCHES_SHOWN:
        title = f"{title}, the first {STRETCHES_SHOWN} of {counted(len(stretches), 'stretch')}"
    return Table(title, columns, rows, watch.basis)


def _runs(stretch: Stretch, runs: Sequence[Run]) -> str:
    """The runs that measured meanwhile: those of the host, or of a card that is touched."""
    met = [run.id for run in runs if touching([stretch], *_span_ns(run), _cards(run))]
    return ", ".join(f"run {run}" for run in met) or "no recorded run"


def _span_ns(run: Run) -> tuple[int, int]:
    return int(run.call.started.timestamp() * NS_PER_S), int(run.call.ended.timestamp() * NS_PER_S)


def _cards(run: Run) -> set[int]:
    devices = {device.get("device") for device in run.document.get("devices", ())}
    return {device for device in devices if device is not None} or {NO_DEVICE}


def _arrival(one: dict[str, Any]) -> str:
    return f"process {one['pid']} came to gpu {one['device']} at {clock_text(one['at_ns'])}"


def _cost(samplers: Sequence[dict[str, Any]]) -> str:
    """What the watch itself took of the machine."""
    shares = {one["source"]: one["cpu_share"] for one in samplers if one["cpu_share"] is not None}
    said = ", ".join(f"{source} {pct(share)}" for source, share in shares.items())
    return f"{said} of one core" if said else "not measured: no sampler said what it used"
