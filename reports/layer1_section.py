"""Layer 1 as a section of a report: one part a run, the anatomy of its least busy device in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layers.evidence.finding import Finding, Strength
from layers.evidence.store_rows import Run
from layers.evidence.verdict import Exit
from layers.evidence.wording import counted
from reports.artifacts import ArtifactFinder
from reports.history import verdict_of
from reports.layer1_anatomy import anatomy_blocks
from reports.layer1_busy import METHOD, least_busy, ratio_blocks
from reports.layer1_document import Layer1Document
from reports.layer1_extras import comparison_blocks, roofline_blocks
from reports.layer1_subject import Subject
from reports.layer1_tables import table_blocks
from reports.model import Basis, Block, Heading, Paragraph

HOW = (
    "Each trace is read whole. A device is busy while a kernel, copy or set runs on any of its streams: the "
    "union of their intervals, in exact nanoseconds, never the sum of their durations. The ratio is taken "
    "over the time from the first to the last of them; other windows stand beside it. Idle time is put down "
    "to what the thread that launched next was doing meanwhile."
)

HOW_SAMPLED = "A sampled series gives the mean of each metric over the time in which anything ran."


@dataclass(frozen=True, slots=True)
class Layer1Run:
    """One run that counts, its document, and where its artifacts lie."""

    run: Run
    document: Layer1Document
    find: ArtifactFinder
    findings: tuple[Finding, ...]

    @property
    def void(self) -> bool:
        """Whether the run has no result."""
        return verdict_of(self.run).exit_code is Exit.INVALID


def layer1_method(runs: Sequence[Layer1Run]) -> str:
    """How it was measured, with the thresholds of every run."""
    how = [HOW] if any(r.document.traces for r in runs) else []
    if any(r.document.sampled for r in runs):
        how.append(HOW_SAMPLED)
    thresholds = dict.fromkeys(str(r.document.thresholds) for r in runs)
    return f"{' '.join(how)} Verdicts: {'; '.join(thresholds)}."


def layer1_blocks(runs: Sequence[Layer1Run]) -> tuple[Block, ...]:
    """All runs one after the other."""
    return tuple(block for run in runs for block in _run_blocks(run))


def _run_blocks(r: Layer1Run) -> Iterator[Block]:
    yield Heading(f"Run {r.run.id}: {title_of(r)}")
    yield from ratio_blocks(r.document, r.find, r.run.id)
    device = least_busy(r.document)
    if device is not None:
        about = Subject(device, r.find(device.source), r.run.id)
        yield from _anatomy(r.document, about)
        if r.document.comparison:
            yield from comparison_blocks(about, r.document.comparison)
    if r.document.roofline:
        yield from roofline_blocks(r.document.roofline)


def _anatomy(document: Layer1Document, about: Subject) -> Iterator[Block]:
    anatomy = next((a for a in document.anatomy if a.scope == about.device.scope), None)
    if anatomy is None:
        yield Paragraph("No anatomy", "the run asked for ratios alone (--busy-only)")
        return
    others = "" if len(document.traced) == 1 else ", the least busy one"
    yield Heading(f"Inside {about.device.scope}{others}")
    yield from anatomy_blocks(about, anatomy)
    yield from table_blocks(about, anatomy)


def title_of(r: Layer1Run) -> str:
    """What a run is about: its file, or how many there are."""
    traces, sampled = r.document.traces, r.document.sampled
    files = list(dict.fromkeys([*(trace.path for trace in traces), *(device.source for device in sampled)]))
    if len(files) == 1:
        return files[0].rsplit("/", 1)[-1]
    return counted(len(files), "file" if sampled else "trace")


def verdict_basis(r: Layer1Run) -> Basis | None:
    """The n behind a verdict, that of the first finding where no trace was read; None where it is void."""
    measured = r.document.measured
    if not measured:
        rests_on = [m for finding in r.findings for m in finding.measurements if m.artifact]
        return next((Basis(m.n, m.n_unit, m.method, (m.artifact,)) for m in rests_on if m.artifact), None)
    files = tuple(dict.fromkeys(r.find(d.source) for d in measured))
    if len(measured) == 1:
        return Basis(measured[0].events, "device operations", METHOD, files)
    return Basis(len(measured), "devices", METHOD, files)


def verdict_strength(r: Layer1Run) -> tuple[Strength | None, str]:
    """The weakest of the devices' verdicts, and its rule; each device's first finding is its verdict."""
    first: dict[str, Finding] = {}
    for finding in r.findings:
        first.setdefault(next((m.scope for m in finding.measurements), ""), finding)
    if not first:
        return None, ""
    weakest = max(first.values(), key=lambda f: list(Strength).index(f.strength))
    of_many = f"the weakest of {len(first)} devices: " if len(first) > 1 else ""
    return weakest.strength, of_many + weakest.rule
