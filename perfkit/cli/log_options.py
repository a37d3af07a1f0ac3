"""Options that name logs of samplers, and how their clock was set."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from parsers.errors import UsageError

Dcgm = Annotated[
    list[str] | None,
    typer.Option("--dcgm", metavar="FILE", help="Output of dcgmi dmon or dcgm-exporter; may be repeated."),
]
Smi = Annotated[
    list[str] | None,
    typer.Option("--smi", metavar="FILE", help="Output of nvidia-smi: csv, dmon, pmon; may be repeated."),
]
UtcOffset = Annotated[
    str,
    typer.Option(
        "--utc-offset", metavar="+HH:MM", help="How far the clock of logs without time zone was ahead of UTC."
    ),
]

OFFSET = re.compile(r"([+-]?)(\d\d?)(?::?(\d\d))?")
NS_PER_MINUTE = 60_000_000_000
MAX_OFFSET_MINUTES = 14 * 60
"""Of any time zone (Kiribati)."""


def offset_ns(text: str) -> int:
    """`+02:00`, `-0530` or `2` in nanoseconds; UsageError for anything else."""
    found = OFFSET.fullmatch(text.strip())
    minutes = 60 * int(found[2]) + int(found[3] or 0) if found else MAX_OFFSET_MINUTES + 1
    if found is None or minutes > MAX_OFFSET_MINUTES:
        raise UsageError(f"--utc-offset {text}: give it as +HH:MM, such as +02:00 or -05:30")
    return (-1 if found[1] == "-" else 1) * minutes * NS_PER_MINUTE
