"""What perfkit says on stderr: one line a message, inert, and the log of a fault of its own.

Messages quote file names, options and text out of user files. Whatever stands in them, a terminal shows it
and never obeys it: every character that is not printable is written as its escape, so a message stays one
line, and one that is very long is cut in the middle.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from pathlib import Path

from layers.evidence.secrets import masked_addresses
from layers.evidence.wording import readable
from perfkit import __version__

MAX_QUOTED = 300
"""Characters of a foreign error text that are worth a reader's line; the log has the rest."""


def complain(message: str) -> None:
    """One line on stderr that starts with the program's name; an address in it loses its secrets."""
    print(f"perfkit: {readable(masked_addresses(message))}", file=sys.stderr)


def say(message: str) -> None:
    """One line of progress or advice on stderr, so that stdout holds nothing but the result."""
    print(readable(message), file=sys.stderr)


def report_fault(fault: BaseException) -> None:
    """Log the traceback of a fault of perfkit itself and say in one line where it is."""
    text = "".join(traceback.format_exception(fault))
    what = f"{type(fault).__name__}: {fault}"[:MAX_QUOTED]
    try:
        log = _write_log(f"perfkit {__version__}, Python {sys.version}\n\n{text}")
    except OSError as error:
        complain(f"a fault of perfkit itself, and no log could be written ({error}): {what}")
        sys.stderr.write(text)
        return
    complain(f"a fault of perfkit itself: {what}. The traceback is in {log}; please report it with that file")


def _write_log(text: str) -> Path:
    try:
        return _write_log_in(_cache_dir(), text)
    except OSError:  # no home, or it is read-only: the temporary folder is next best
        return _write_log_in(Path(tempfile.gettempdir()), text)


def _write_log_in(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix="perfkit-fault-", suffix=".log", dir=folder)
    with open(handle, "w", encoding="utf-8", errors="backslashreplace") as log:
        log.write(text)
    return Path(name)


def _cache_dir() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if os.path.isabs(cache) else Path(os.path.expanduser("~")) / ".cache"
    return base / "perfkit"
