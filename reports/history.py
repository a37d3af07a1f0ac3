"""Which recorded runs count: the latest of each command on the same artifacts; nothing is ever averaged.

Runs on different artifacts all count and stand beside each other. A run without artifacts is the same as an
earlier one when its arguments are. What does not count is listed with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from layers.evidence.store_rows import Run
from layers.evidence.verdict import Exit, Verdict
from reports.artifacts import ArtifactFinder
from reports.model import RunRow

Key = tuple[str, frozenset[str]]
WALK = "investigate"
GOES_ON = {WALK: None, "sweep": "sweep", "ab": "experiment"}
"""Commands that go on in a folder of theirs (--resume), and the section of the document that names it."""


def verdict_of(run: Run) -> Verdict:
    """The verdict that a run's document holds."""
    said = run.document["verdict"]
    exit_code = Exit(said["exit_code"])
    return Verdict(said["word"], said["directional"], said["because"], exit_code, said.get("next_step", ""))


def history(
    runs: Sequence[Run], artifacts: Mapping[int, ArtifactFinder], unreadable: Mapping[int, str]
) -> tuple[RunRow, ...]:
    """Every run in the order of recording; `unreadable` says of which runs the document cannot be used."""
    latest = {_key(run, artifacts[run.id]): run.id for run in runs if run.id not in unreadable}
    return tuple(
        RunRow(
            id=run.id,
            call=run.call,
            headline=verdict_of(run).headline,
            dropped=unreadable.get(run.id) or _superseded(run, latest[_key(run, artifacts[run.id])]),
            artifacts=artifacts[run.id].all,
        )
        for run in runs
    )


def _key(run: Run, artifacts: ArtifactFinder) -> Key:
    """The folder that a run went on in, else the bytes that it read, else what it was told."""
    command, folder = run.document["command"], _folder(run)
    if folder:
        return command, frozenset({folder})
    hashes = frozenset(artifact.sha256 for artifact in artifacts.all)
    return command, hashes or frozenset(run.call.arguments)


def _folder(run: Run) -> str:
    """Where a command that can go on did; empty for any other."""
    command = run.document["command"]
    if command not in GOES_ON:
        return ""
    section = GOES_ON[command]
    named = run.document if section is None else run.document.get(section) or {}
    return os.path.basename(str(named.get("folder", "")))


def _superseded(run: Run, latest: int) -> str:
    if run.id == latest:
        return ""
    if _folder(run):
        return f"run {latest} went on with it"
    return f"run {latest} is the same command on the same files, and later"
