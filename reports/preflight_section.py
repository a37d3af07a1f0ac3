"""Pre-flight as a layer of a report: what its latest run concluded, which checks fired, what it recorded; and
every watch that was kept while something was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.finding import Strength
from layers.evidence.store_rows import Run
from layers.evidence.wording import counted
from layers.preflight.snapshot import from_document
from reports.history import verdict_of
from reports.model import Computed, Layer, Paragraph
from reports.watch_section import HOW as HOW_WATCHED
from reports.watch_section import WatchRun, watch_blocks

HOW = "The machine, its GPUs, packages and processes are listed before anything is measured."
NO_STRENGTH = "none: a record of the environment is no finding"


def preflight_layer(
    title: str, question: str, run: Run | None, watches: Sequence[WatchRun], measured: Sequence[Run]
) -> Layer:
    """The latest pre-flight, where there is one, and the watches; `measured` are runs that may be touched."""
    blocks = [*(_checks(run) if run is not None else ()), *watch_blocks(watches, measured)]
    how = [HOW] * (run is not None) + [HOW_WATCHED] * bool(watches)
    strengths = [NO_STRENGTH] * (run is not None) + [_strength(watch) for watch in watches]
    return Layer(title, question, "", " ".join(how), tuple(blocks), "; ".join(strengths))


def _strength(watch: WatchRun) -> str:
    """The weakest of what the watch found."""
    found: list[dict[str, str]] = watch.run.document["findings"]
    weakest = max(found, key=lambda f: list(Strength).index(Strength(f["strength"])), default=None)
    whose = f"watch, run {watch.run.id}"
    return f"{whose}: {weakest['strength']}: {weakest['rule']}" if weakest else f"{whose}: none"


def _checks(run: Run) -> Iterator[Paragraph]:
    """The verdict of one run with its checks; the document of the run has every fact."""
    verdict = verdict_of(run)
    how = Computed(f"perfkit preflight, run {run.id}; no measurement of the service")
    yield Paragraph(verdict.headline, verdict.because, how)
    if fired := [f"{g['code']} {g['name']}: {g['message']}" for g in run.document["guards"]]:
        yield Paragraph("Checks that fired", "; ".join(fired), how)


def baseline_text(run: Run) -> str:
    """How much of the environment a run recorded."""
    facts = [section.facts for section in from_document(run.document, f"run {run.id}").sections]
    return f"{counted(sum(map(len, facts)), 'fact')} recorded by perfkit preflight (run {run.id})"
