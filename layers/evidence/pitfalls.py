"""Pitfalls: traps that people met and wrote down, which become part of the methodology document.

They are general, of no single investigation, so they stand in a file of their own: a record log
(record_log.py), to which several people may append at once and which a kill at any moment does not damage.
A pitfall that a guard checks names it; one that nothing checks yet is for people to watch for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import msgspec

from layers.evidence.record_log import RecordLog, read_records
from parsers.errors import StoreError
from parsers.loss import Loss

FILE_NAME = "pitfalls.log"


@dataclass(frozen=True, slots=True)
class Pitfall:
    """What one sees, what happened, how to detect it, who says so; `guard`: the code that checks it, or ``.

    `added` is the day on which it was written down.
    """

    sees: str
    happened: str
    detection: str
    source: str
    guard: str
    added: date


def default_file() -> Path:
    """Where pitfalls of this user are kept: $XDG_DATA_HOME/perfkit/pitfalls.log."""
    data = os.environ.get("XDG_DATA_HOME", "")
    home = Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share"
    return home / "perfkit" / FILE_NAME


def add(file: Path, pitfall: Pitfall) -> None:
    """Append it; StoreError where the file cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{file.parent}: {error.strerror}: name another place with --file") from error
    with RecordLog(file) as log:
        log.append(msgspec.to_builtins(pitfall))


def read(file: Path, losses: list[Loss]) -> tuple[Pitfall, ...]:
    """All that the file holds, oldest first; none where there is no file. Damaged lines go to `losses`."""
    if not file.exists():
        return ()
    found = []
    for line, record in read_records(file, losses):
        try:
            found.append(msgspec.convert(record, Pitfall))
        except msgspec.ValidationError as error:
            losses.append(Loss(f"line {line} is no pitfall: {error}", -1, 0, 1, may_hide_device_work=False))
    return tuple(found)
