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
    from layers.evidence.secrets import masked_arguments
    from layers.evidence.store import Investigation

    arguments = ("perfkit", *sys.argv[1:])
    masked = masked_arguments(arguments)
    with Investigation.open(folder) as investigation:
        run = investigation.record(result, masked, started, datetime.now(UTC), artifacts)
    without = "" if masked == arguments else ", the command without what looks like a secret"
    say(f"recorded as run {run} in {folder}{without} (perfkit report writes it up)")
