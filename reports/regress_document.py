"""Layer 5's part of a run's document, as the report reads it: cells, samples, and properties of keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.measurement import Artifact
from layers.evidence.store_rows import Run
from layers.evidence.verdict import Exit
from layers.layer5_regression.key_judge import METHOD as OF_KEYS
from layers.layer5_regression.measurements import BYTES
from parsers.errors import StoreError
from reports.history import verdict_of
from reports.model import Basis, RunVerdict

NEEDED = ("samples", "first_divergence")
OF_OUTPUTS = ("cells", "control", "accuracy", "arms", "compared", "lost")

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RegressRun:
    """One recorded comparison that counts, the artifacts behind it, and what it found."""

    run: Run
    artifacts: tuple[Artifact, ...]
    findings: tuple[Finding, ...]

    @property
    def keys(self) -> Entry | None:
        """The properties of a key function; None where outputs were compared."""
        found: Entry | None = self.run.document.get("key_layer")
        return found

    @property
    def different(self) -> list[Entry]:
        """The samples that differ."""
        return [one for one in self.run.document["samples"] if not one["same"]]

    @property
    def title(self) -> str:
        """What it is about."""
        return "keys of a cache" if self.keys is not None else "outputs before and after"

    @property
    def basis(self) -> Basis:
        """What its numbers rest on."""
        if self.keys is not None:
            return Basis(self.keys["rows"], "rows", OF_KEYS, self.artifacts)
        return Basis(self.run.document["compared"], "samples", BYTES, self.artifacts)


def read_regress(run: Run, artifacts: Sequence[Artifact], findings: Sequence[Finding]) -> RegressRun:
    """The run; StoreError where its document is none of Layer 5, or leads to no file."""
    needed = NEEDED if "key_layer" in run.document else (*NEEDED, *OF_OUTPUTS)
    if missing := [name for name in needed if name not in run.document]:
        raise StoreError(f"run {run.id}: its document has no {', '.join(missing)}: compare again")
    if not artifacts:
        raise StoreError(f"run {run.id}: it recorded no hash of the outputs behind it: compare again")
    return RegressRun(run, tuple(artifacts), tuple(findings))


def regress_verdict(r: RegressRun) -> RunVerdict:
    """What the run concluded, with the n behind it."""
    verdict, (strength, rule) = verdict_of(r.run), regress_strength(r)
    basis = r.basis if verdict.exit_code is not Exit.INVALID else None
    return RunVerdict(r.run.id, r.title, verdict, "", basis, strength, rule)


def regress_strength(r: RegressRun) -> tuple[Strength | None, str]:
    """Of the finding that is the verdict; None where the run is invalid."""
    verdict = next((f for f in r.findings if f.kind is FindingKind.VERDICT), None)
    return (verdict.strength, verdict.rule) if verdict is not None else (None, "")
