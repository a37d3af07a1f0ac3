"""Pages with places for what a program measures, from `<!-- NAME: … -->` to `<!-- end of NAME -->`."""

from __future__ import annotations

import os
import platform
import re
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def place(page: Path, name: str, text: str) -> None:
    """Put the text into the place of that name, in place of what is there."""
    found = re.compile(
        rf"(<!-- {re.escape(name)}: .*? -->\n).*?(<!-- end of {re.escape(name)} -->)", re.DOTALL
    )
    before = page.read_text("utf-8")
    if not found.search(before):
        sys.exit(f"{page} has no place for {name}")
    page.write_text(found.sub(lambda one: one[1] + text + one[2], before), encoding="utf-8")


def described() -> str:
    """The machine, its software, and how busy it was before."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0))
    software = f"Python {platform.python_version()}, torch {version('torch')}"
    busy = f"load average of the minute before: {os.getloadavg()[0]:.1f}"
    when = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return f"{next(iter(names), platform.machine())}, {cores} cores, {software}; {busy}; {when}."
