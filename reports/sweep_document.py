"""Layer 3's part of a run's document, as the report reads it: points and curves by name.

It reads what `perfkit sweep` and `perfkit import` recorded, and asks nothing of how they came to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.measurement import Artifact
from layers.evidence.store_rows import Run
from layers.evidence.verdict import Exit
from parsers.errors import StoreError
from reports.file_names import files_name
from reports.history import verdict_of
from reports.model import Basis, RunVerdict

COMMANDS = ("sweep", "import")
CONTROL = "control"
NEEDED = ("points", "curve", "curves", "not_run", "lost", "regime")
HOW = {
    "sweep": "closed or open loop at every load, repeats interleaved; all times from the intended start",
    "import": "as the tool reported it, by its own definitions",
}

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run that counts, the artifacts behind it, and what it found."""

    run: Run
    artifacts: tuple[Artifact, ...]
    findings: tuple[Finding, ...]

    @property
    def curve(self) -> Entry | None:
        """The curve of the verdict; None where no pass stands."""
        found: Entry | None = self.run.document["curve"]
        return found

    @property
    def command(self) -> str:
        """`sweep` or `import`."""
        return str(self.run.document["command"])

    def pooled(self, curve: Entry, arm: str | None = None) -> list[Entry]:
        """All repeats together at each load of a curve, or of another arm with its settings."""
        return [p for p in self._points(curve, arm) if p["repeat"] is None]

    def void(self, curve: Entry) -> list[Entry]:
        """The repeats of a curve that checks took out."""
        return [p for p in self._points(curve, None) if p["repeat"] is not None and p["void"]]

    def _points(self, curve: Entry, arm: str | None) -> list[Entry]:
        wanted = (curve["arm"] if arm is None else arm, curve["settings"])
        return [p for p in self.run.document["points"] if (p["arm"], p["settings"]) == wanted]

    @property
    def study(self) -> Entry | None:
        """The part of a ready study, where it is one."""
        found: Entry | None = self.run.document.get("study")
        return found

    def all_pooled(self) -> list[Entry]:
        """All repeats together at each load of every curve, where any stands."""
        return [p for p in self.run.document["points"] if p["repeat"] is None and not p["void"]]

    @property
    def title(self) -> str:
        """What it is about."""
        if self.command == "sweep":
            return f"the study {self.study['name']}" if self.study else "a sweep"
        return f"results in {files_name([artifact.path for artifact in self.artifacts], 'file')}"

    def basis(self, points: Sequence[Entry]) -> Basis:
        """What numbers of these points rest on; without counts, their number."""
        requests = sum(p.get("ok", 0) + p.get("shed", 0) + p.get("errors", 0) for p in points)
        n, unit = (requests, "requests") if requests else (len(points), "loads")
        return Basis(n, unit, HOW[self.command], self.artifacts)


def read_sweep(run: Run, artifacts: Sequence[Artifact], findings: Sequence[Finding]) -> SweepRun:
    """The run; StoreError where its document is not one of Layer 3."""
    if missing := [name for name in NEEDED if name not in run.document]:
        raise StoreError(f"run {run.id}: its document has no {', '.join(missing)}: measure again")
    if run.document["curve"] is not None and not artifacts:
        raise StoreError(f"run {run.id}: it recorded no hash of the files behind its points: measure again")
    return SweepRun(run, tuple(artifacts), tuple(findings))


def sweep_verdict(r: SweepRun) -> RunVerdict:
    """What the run concluded, with the n behind it."""
    verdict = verdict_of(r.run)
    strength, rule = sweep_strength(r)
    basis = None
    if verdict.exit_code is not Exit.INVALID:
        basis = r.basis(r.all_pooled() if r.curve is None else r.pooled(r.curve))
    return RunVerdict(r.run.id, r.title, verdict, "", basis, strength, rule)


def sweep_strength(r: SweepRun) -> tuple[Strength | None, str]:
    """Of the finding that is the verdict; `perfkit` computed it."""
    verdict = next((f for f in r.findings if f.kind is FindingKind.VERDICT), None)
    if verdict is not None:
        return verdict.strength, verdict.rule
    if verdict_of(r.run).exit_code is Exit.INVALID:
        return None, ""
    return Strength.WEAK, "no clear direction: nothing was concluded"
