"""The stage ledger's part of a run's document, as the report reads it: runs and their rows by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.measurement import Artifact
from layers.evidence.store_rows import Run
from layers.evidence.verdict import Exit
from layers.stages.measurements import PAIRED, PUBLISHED
from parsers.errors import StoreError
from reports.file_names import files_name
from reports.history import verdict_of
from reports.model import Basis, RunVerdict

NEEDED = ("stages", "runs", "run", "lost")

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StageRun:
    """One recorded ledger that counts, the artifacts behind it, and what it found."""

    run: Run
    artifacts: tuple[Artifact, ...]
    findings: tuple[Finding, ...]

    @property
    def ledgers(self) -> list[Entry]:
        """Those of all runs in the files, by load."""
        return list(self.run.document["runs"])

    @property
    def chosen(self) -> Entry | None:
        """The ledger of the verdict; None where no request is complete."""
        return next((one for one in self.ledgers if one["run"] == self.run.document["run"]), None)

    @property
    def title(self) -> str:
        """What it is about."""
        return f"stages in {files_name([artifact.path for artifact in self.artifacts], 'file')}"

    def basis(self, ledgers: Sequence[Entry]) -> Basis:
        """What numbers of these ledgers rest on; of published means, their number."""
        complete = sum(one["requests"]["complete"] for one in ledgers)
        if complete:
            return Basis(complete, "complete requests", PAIRED, self.artifacts)
        return Basis(sum(len(one["stages"]) for one in ledgers), "published means", PUBLISHED, self.artifacts)


def read_stages(run: Run, artifacts: Sequence[Artifact], findings: Sequence[Finding]) -> StageRun:
    """The run; StoreError where its document is no ledger."""
    if missing := [name for name in NEEDED if name not in run.document]:
        raise StoreError(f"run {run.id}: its document has no {', '.join(missing)}: measure again")
    return StageRun(run, tuple(artifacts), tuple(findings))


def stages_verdict(r: StageRun) -> RunVerdict:
    """What the run concluded, with the n behind it."""
    verdict, (strength, rule) = verdict_of(r.run), stages_strength(r)
    basis = r.basis([r.chosen]) if r.chosen is not None and verdict.exit_code is not Exit.INVALID else None
    return RunVerdict(r.run.id, r.title, verdict, "", basis, strength, rule)


def stages_strength(r: StageRun) -> tuple[Strength | None, str]:
    """Of the finding that is the verdict; None where the run is void."""
    verdict = next((f for f in r.findings if f.kind is FindingKind.VERDICT), None)
    return (verdict.strength, verdict.rule) if verdict is not None else (None, "")
