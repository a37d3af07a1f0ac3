"""Keep what a command found in the investigation, with the exact command and its times."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from layers.evidence.measurement import Artifact
from layers.evidence.result import Result
from perfkit.cli.messages import say


def record_result(
    folder: Path, result: Result, started: datetime, artifacts: Iterable[Artifact] = ()
) -> None:
    """Append the result to the investigation in `folder` and say on stderr where it went."""
    from layers.evidence.store import Investigation

    with Investigation.open(folder) as investigation:
        run = investigation.record(result, ["perfkit", *sys.argv[1:]], started, datetime.now(UTC), artifacts)
    say(f"recorded as run {run} in {folder} (perfkit report writes it up)")
