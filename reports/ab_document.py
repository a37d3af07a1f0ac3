"""Layer 4's part of a run's document, as the report reads it: the primary metric, pairs, runs and gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.measurement import Artifact
from layers.evidence.store_rows import Run
from layers.evidence.verdict import Exit
from parsers.errors import StoreError
from reports.history import verdict_of
from reports.model import Basis, RunVerdict

NEEDED = ("primary", "pairs", "runs", "metrics", "gates", "treatment", "question", "lost")
HOW = "paired log-ratios of server starts; a start is the mean of its runs"

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AbRun:
    """One recorded A/B that counts, the artifacts behind it, and what it found."""

    run: Run
    artifacts: tuple[Artifact, ...]
    findings: tuple[Finding, ...]

    @property
    def primary(self) -> Entry | None:
        """The metric that decides; None where no pair has it."""
        found: Entry | None = self.run.document["primary"]
        return found

    @property
    def study(self) -> Entry | None:
        """The part of a study of switches, where it is one."""
        found: Entry | None = self.run.document.get("study")
        return found

    @property
    def title(self) -> str:
        """What it is about."""
        if self.study is not None:
            return f"the study {self.study['name']}"
        variable = str(self.run.document["question"]["variable"])
        return f"an A/B of {variable}" if variable else "an A/B"

    @property
    def basis(self) -> Basis:
        """What its numbers rest on."""
        pairs = self.primary["n_pairs"] if self.primary else 0
        runs = len(self.run.document["runs"])
        n, unit = (pairs, "pairs of starts") if pairs else (runs, "runs")
        return Basis(n, unit, HOW, self.artifacts)


def read_ab(run: Run, artifacts: Sequence[Artifact], findings: Sequence[Finding]) -> AbRun:
    """The run; StoreError where its document is no A/B."""
    if missing := [name for name in NEEDED if name not in run.document]:
        raise StoreError(f"run {run.id}: its document has no {', '.join(missing)}: compare again")
    return AbRun(run, tuple(artifacts), tuple(findings))


def ab_verdict(r: AbRun) -> RunVerdict:
    """What the run concluded, with the n behind it."""
    verdict, (strength, rule) = verdict_of(r.run), ab_strength(r)
    basis = r.basis if verdict.exit_code is not Exit.INVALID else None
    return RunVerdict(r.run.id, r.title, verdict, "", basis, strength, rule)


def ab_strength(r: AbRun) -> tuple[Strength | None, str]:
    """Of the finding that is the verdict; None where the run is invalid."""
    verdict = next((f for f in r.findings if f.kind is FindingKind.VERDICT), None)
    return (verdict.strength, verdict.rule) if verdict is not None else (None, "")
