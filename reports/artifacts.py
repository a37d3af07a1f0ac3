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
from layers.evidence.store_rows import Run, StoredMeasurement


@dataclass(frozen=True, slots=True)
class ArtifactFinder:
    """Finds the artifact of a path in one run's document; the run's artifacts in their order are `all`."""

    by_path: dict[str, Artifact]
    all: tuple[Artifact, ...]

    def __call__(self, path: str) -> Artifact:
        return self.by_path[path]


def artifacts_of(run: Run, measurements: Sequence[StoredMeasurement]) -> ArtifactFinder:
    """The artifacts of a run: those of its measurements, and the traces that gave none."""
    stored = dict.fromkeys(
        m.measurement.artifact for m in measurements if m.run_id == run.id and m.measurement.artifact
    )
    entries: list[dict[str, Any]] = run.document.get("traces", [])
    by_path = {entry["path"]: _match(entry, run, list(stored)) for entry in entries}
    return ArtifactFinder(by_path, tuple(dict.fromkeys([*stored, *by_path.values()])))


def _match(entry: dict[str, Any], run: Run, stored: Sequence[Artifact]) -> Artifact:
    """The stored artifact of a trace: that of the same bytes and name, else the path as the run saw it."""
    path = os.path.normpath(os.path.join(run.call.working_folder, entry["path"]))
    same = [a for a in stored if a.sha256 == entry["sha256"] and path.endswith(os.path.normpath(a.path))]
    return same[0] if same else Artifact(path, entry["sha256"], entry["size_bytes"])
