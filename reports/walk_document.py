"""A walk's document, as the report reads it: what parts said, what followed, what was tried and ruled out.

The walk measured nothing: its numbers are those of its parts, whose documents are its artifacts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layers.evidence.finding import Finding, Strength
from layers.evidence.measurement import Artifact
from layers.evidence.store_rows import Run
from parsers.errors import StoreError
from reports.history import WALK, verdict_of
from reports.model import Basis, RunVerdict

COMMAND = WALK
WHAT = "the walk"
"""What its verdict is of."""
NEEDED = ("walk", "folder", "profile", "subject", "candidates", "ruled_out", "strength", "rule", "files")
HOW = "each part is a command of its own, recorded by itself; the walk reads what it printed and decides"

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WalkRun:
    """One recorded walk that counts, and the documents of its parts."""

    run: Run
    artifacts: tuple[Artifact, ...]

    @property
    def rows(self) -> Sequence[Entry]:
        """Every part in order."""
        found: Sequence[Entry] = self.run.document["walk"]
        return found

    @property
    def done(self) -> int:
        """Parts that ended."""
        return sum("word" in row for row in self.rows)

    @property
    def title(self) -> str:
        """Who was investigated."""
        return str(self.run.document["subject"])

    @property
    def basis(self) -> Basis:
        """What its sentences rest on."""
        return Basis(self.done, "parts", HOW, self.artifacts)


def read_walk(run: Run, artifacts: Sequence[Artifact], findings: Sequence[Finding]) -> WalkRun:
    """The run; StoreError where its document is no walk, or no part of it has ended."""
    if missing := [name for name in NEEDED if name not in run.document]:
        raise StoreError(f"run {run.id}: its document has no {', '.join(missing)}: walk again")
    read = WalkRun(run, tuple(artifacts))
    if not read.done:
        raise StoreError(f"run {run.id}: no part of this walk ended")
    return read


def walk_verdict(r: WalkRun) -> RunVerdict:
    """What the walk came to."""
    document = r.run.document
    strength = Strength(document["strength"])
    return RunVerdict(r.run.id, WHAT, verdict_of(r.run), "", r.basis, strength, str(document["rule"]))
