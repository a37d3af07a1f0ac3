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
    folder: Path,
    result: Result,
    started: datetime,
    artifacts: Iterable[Artifact] = (),
    logs: Iterable[Path] = (),
) -> None:
    """Append the result to the investigation in `folder` and say on stderr where it went. `logs` are records
    of requests, of which those become rows that are none yet."""
    from layers.evidence.secrets import masked_arguments
    from layers.evidence.store import Investigation
    from layers.evidence.wording import counted

    arguments = ("perfkit", *sys.argv[1:])
    masked = masked_arguments(arguments)
    with Investigation.open(folder) as investigation:
        run = investigation.record(result, masked, started, datetime.now(UTC), artifacts)
        taken = [investigation.ingest(log) for log in logs]
    without = "" if masked == arguments else ", the command without what looks like a secret"
    say(f"recorded as run {run} in {folder}{without} (perfkit report writes it up)")
    if added := sum(one.added for one in taken):
        say(f"{counted(added, 'attempt')} of requests as rows of request_records there")
