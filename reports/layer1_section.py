"""Layer 1 as a section of a report: the latest run with all that was found, earlier ones in short.

Of a run with several devices the anatomy is that of the least busy one, since that is where most can be won.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.store_rows import Run
from layers.evidence.verdict import Exit
from layers.layer1_gpu_busy.document_entries import Anatomy
from reports.artifacts import ArtifactFinder
from reports.file_names import files_name
from reports.history import verdict_of
from reports.layer1_anatomy import anatomy_blocks, short_anatomy_blocks
from reports.layer1_busy import least_busy, ratio_blocks
from reports.layer1_comparison import comparison_blocks, not_compared_block
from reports.layer1_document import Layer1Document
from reports.layer1_roofline import roofline_blocks
from reports.layer1_subject import Subject, devices_basis
from reports.layer1_symptoms import symptom_blocks
from reports.model import Basis, Block, Folded, Heading, Paragraph

HOW = (
    "Each trace is read whole. A device is busy while a kernel, copy or set runs on any of its streams: the "
    "union of their intervals, in exact nanoseconds, never the sum of their durations. The ratio is taken "
    "over the time from the first to the last of them. Idle time is put down to what the thread that "
    "launched next was doing meanwhile."
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

    @property
    def subject(self) -> Subject | None:
        """The device whose anatomy is shown; None where none has a ratio, or the run is void."""
        device = None if self.void else least_busy(self.document)
        return Subject(device, self.find(device.source), self.run.id) if device is not None else None


def layer1_method(runs: Sequence[Layer1Run]) -> str:
    """How it was measured, with the thresholds of every run."""
    how = [HOW] if any(r.document.traces for r in runs) else []
    if any(r.document.sampled for r in runs):
        how.append(HOW_SAMPLED)
    thresholds = dict.fromkeys(str(r.document.thresholds) for r in runs)
    return f"{' '.join(how)} Verdicts: {'; '.join(thresholds)}."


def layer1_blocks(runs: Sequence[Layer1Run]) -> tuple[Block, ...]:
    """The latest run first and whole, then the earlier ones in short."""
    *earlier, latest = runs
    blocks = list(_whole(latest))
    for run in reversed(earlier):
        blocks += _short(run)
    return tuple(blocks)


def _whole(r: Layer1Run) -> Iterator[Block]:
    about, one = r.subject, len(r.document.traced) == 1
    yield Heading(f"Run {r.run.id}: {_named(r, about) if about is not None and one else title_of(r)}")
    yield from ratio_blocks(r.document, r.find, r.run.id)
    if about is not None:
        if not one:
            yield Heading(f"Inside {about.device.scope}, the least busy one")
        yield from _anatomy(r.document, about)
        if r.document.comparison:
            yield from comparison_blocks(about, r.document.comparison)
        if r.document.not_compared:
            yield not_compared_block(about, r.document.not_compared)
    if r.document.roofline:
        yield from roofline_blocks(r.document.roofline)


def _named(r: Layer1Run, about: Subject) -> str:
    """The file and its only device, which may be named for the file."""
    title, scope = title_of(r), about.device.scope
    return scope if scope.startswith(title) else f"{title}, {scope}"


def _short(r: Layer1Run) -> Iterator[Block]:
    """Ratios in sight, the least busy device folded away, and where the rest is."""
    yield Heading(f"Run {r.run.id}: {title_of(r)}")
    yield from ratio_blocks(r.document, r.find, r.run.id, with_figure=False)
    about = r.subject
    found = anatomy_of(r.document, about) if about is not None else None
    if about is not None and found is not None:
        rest = Paragraph("Everything else", "in a report of this run alone", command=_alone(r))
        yield Folded(f"Inside {about.device.scope}", (*short_anatomy_blocks(about, found), rest))


def _alone(r: Layer1Run) -> str:
    return f"perfkit report --run {r.run.id} --output run{r.run.id}.md"


def _anatomy(document: Layer1Document, about: Subject) -> Iterator[Block]:
    anatomy = anatomy_of(document, about)
    if anatomy is None:
        yield Paragraph("No anatomy", "the run asked for ratios alone (--busy-only)")
        return
    yield from anatomy_blocks(about, anatomy)
    yield from symptom_blocks(about, anatomy, document)


def anatomy_of(document: Layer1Document, about: Subject) -> Anatomy | None:
    """What was found inside the device; None where only ratios were asked for."""
    return next((a for a in document.anatomy if a.scope == about.device.scope), None)


def title_of(r: Layer1Run) -> str:
    """What a run is about: the names of its files."""
    traces, sampled = r.document.traces, r.document.sampled
    paths = [*(trace.path for trace in traces), *(device.source for device in sampled)]
    return files_name(paths, "file" if sampled else "trace")


def verdict_basis(r: Layer1Run) -> Basis | None:
    """The n behind a verdict, that of its first card where no trace was read; None where it is void."""
    measured = r.document.measured
    if not measured:
        verdicts = (finding for finding in r.findings if finding.kind is FindingKind.VERDICT)
        rests_on = (m for finding in verdicts for m in finding.measurements)
        return next((Basis(m.n, m.n_unit, m.method, (m.artifact,)) for m in rests_on if m.artifact), None)
    return devices_basis(measured, r.find)


def verdict_strength(r: Layer1Run) -> tuple[Strength | None, str]:
    """The weakest of the devices' verdicts, and its rule."""
    verdicts = [finding for finding in r.findings if finding.kind is FindingKind.VERDICT]
    if not verdicts:
        return None, ""
    weakest = max(verdicts, key=lambda f: list(Strength).index(f.strength))
    of_many = f"the weakest of {len(verdicts)} devices: " if len(verdicts) > 1 else ""
    return weakest.strength, of_many + weakest.rule
