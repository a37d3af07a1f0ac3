"""Which file a path in a run's document stands for, and which files a run rests on.

A document names files as the command line did. The store knows the same files where they lie (relative
paths start at the investigation); the sha256 ties the two together.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from layers.evidence.measurement import Artifact
from layers.evidence.store_rows import Run, StoredFinding, StoredMeasurement
from parsers.errors import StoreError


@dataclass(frozen=True, slots=True)
class ArtifactFinder:
    """Finds the artifact of a path in one run's document; the run's artifacts in their order are `all`."""

    run: Run
    by_path: dict[str, Artifact]
    all: tuple[Artifact, ...]

    def __call__(self, path: str) -> Artifact:
        """StoreError where the run recorded no such file."""
        found = self.by_path.get(path) or _stored(path, self.run, self.all)
        if found is None:
            raise StoreError(f"run {self.run.id}: it recorded no hash of {path}: measure again")
        return found


def artifacts_of(
    run: Run, measurements: Sequence[StoredMeasurement], findings: Sequence[StoredFinding] = ()
) -> ArtifactFinder:
    """The artifacts of a run: those of its measurements and findings, and the files that gave none."""
    measured = (m.measurement.artifact for m in measurements if m.run_id == run.id and m.measurement.artifact)
    found = (a for f in findings if f.run_id == run.id for a in f.finding.artifacts)
    stored = tuple(dict.fromkeys([*measured, *found]))
    entries: list[dict[str, Any]] = [*run.document.get("traces", []), *run.document.get("files", [])]
    by_path = {entry["path"]: _match(entry, run, stored) for entry in entries}
    return ArtifactFinder(run, by_path, tuple(dict.fromkeys([*stored, *by_path.values()])))


def _match(entry: dict[str, Any], run: Run, stored: Sequence[Artifact]) -> Artifact:
    """The stored artifact of a trace: that of the same name and bytes, else the path as the run saw it."""
    found = _stored(entry["path"], run, [a for a in stored if a.sha256 == entry["sha256"]])
    return found or Artifact(_absolute(entry["path"], run), entry["sha256"], entry["size_bytes"])


def _stored(path: str, run: Run, stored: Sequence[Artifact]) -> Artifact | None:
    """Stored paths are absolute, or relative to an investigation that may have moved since."""
    absolute = _absolute(path, run)
    return next((a for a in stored if absolute.endswith(os.path.normpath(a.path))), None)


def _absolute(path: str, run: Run) -> str:
    return os.path.normpath(os.path.join(run.call.working_folder, path))
