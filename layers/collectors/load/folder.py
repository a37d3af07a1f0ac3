"""The files of one load run, by their names."""

from __future__ import annotations

import re
from pathlib import Path

PLAN = "plan.json"


def flight_path(folder: Path, process: int) -> Path:
    return folder / f"flight-{process}"


def wire_path(folder: Path, process: int) -> Path:
    return folder / f"wire-{process}"


def pulse_path(folder: Path, process: int) -> Path:
    return folder / f"pulse-{process}.log"


def records_path(folder: Path, process: int) -> Path:
    return folder / f"requests-{process}.log"


def is_records(path: Path) -> bool:
    """Whether it has the name of a file of records."""
    return re.fullmatch(r"requests-\d+\.log", path.name) is not None


def processes_in(folder: Path) -> list[int]:
    """The processes that have run in this folder."""
    names = (re.fullmatch(r"flight-(\d+)", path.name) for path in folder.iterdir())
    return sorted(int(name[1]) for name in names if name)
