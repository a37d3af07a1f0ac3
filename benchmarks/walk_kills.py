"""Kill -9 at random moments of the walk: it always goes on to its end, and nothing recorded changes.

python -m benchmarks.walk_kills [--kills 20] [--seed 1] [--folder DIR] [-- OPTION …]

One walk through the bundled engine (or what the options behind -- say, which go to perfkit investigate),
killed by SIGKILL, with --resume --yes after each kill, until it is left alone for the last time. The moments
are drawn over the parts in proportion to the time that each takes, and in each at any time after it began, so
that all parts are hit, those of a few seconds seldom. After each kill and at the end the recorded state is
compared with the state before: rows of the database, documents of parts that ended, and record logs
(journals, requests), which may grow and never change. At the end each part must have ended or been left out
once.

Prints a line for each kill and exits 1 where something changed, or the walk did not come to its end.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from layers.evidence.record_log import read_records
from layers.evidence.store import ARTIFACTS, DATABASE
from layers.layer3_sweep.sweep_folder import JOURNAL
from layers.layer4_ab.experiment_folder import CUT
from layers.layer5_regression.collection_folder import CELLS
from parsers.children import child_command
from perfkit.walk.journal import LOG, PREFIX
from perfkit.walk.model import Part
from perfkit.walk.profiles import QUICK
from perfkit.walk.time_left import expected_s

REQUESTS = re.compile(r"requests-\d+\.log")
TABLES = ("runs", "documents", "measurements", "guards", "findings", "artifacts")
LOOK_EVERY_S = 0.1
LATEST_S = 900.0
"""A part that has not begun by then never will."""
THROUGH = (0, 1, 3, 4)


@dataclass(frozen=True, slots=True)
class State:
    """What is recorded: rows by table and id, hashes of documents, lines of record logs."""

    rows: Mapping[tuple[str, int], str] = field(default_factory=dict)
    documents: Mapping[str, str] = field(default_factory=dict)
    logs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def changed_in(self, later: State) -> list[str]:
        """What of this is gone or different later, in words."""
        rows = [
            f"{table} {id}" for (table, id), row in self.rows.items() if later.rows.get((table, id)) != row
        ]
        files = [name for name, sha in self.documents.items() if later.documents.get(name) != sha]
        logs = [name for name, lines in self.logs.items() if not later.holds(name, lines)]
        return [*rows, *files, *logs]

    def holds(self, name: str, lines: tuple[str, ...]) -> bool:
        """Whether a log has these lines still; a run of an A/B that was cut is put aside, and begun anew."""
        aside = (log for path, log in self.logs.items() if f"/{CUT}/" in path)
        return any(log[: len(lines)] == lines for log in (self.logs.get(name, ()), *aside))


def recorded(investigation: Path) -> State:
    """What an investigation holds now."""
    if not (investigation / DATABASE).exists():
        return State()
    return State(_rows(investigation / DATABASE), _documents(investigation), _logs(investigation))


def _rows(database: Path) -> dict[tuple[str, int], str]:
    found: dict[tuple[str, int], str] = {}
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as opened:
        known = {name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in known.intersection(TABLES):
            for id, *row in opened.execute(f"SELECT rowid, * FROM {table}"):
                found[table, id] = repr(row)
    return found


def _documents(investigation: Path) -> dict[str, str]:
    """Of parts that ended, as the journal says."""
    found = {}
    for log in (investigation / ARTIFACTS).glob(f"{PREFIX}*/{LOG}"):
        for _, record in read_records(log, []):
            if "ended" in record:
                path = log.parent / f"{record['ended']}.json"
                found[f"{path}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _logs(investigation: Path) -> dict[str, tuple[str, ...]]:
    """Whole lines of each record log: the journals, and finished requests."""
    found = {}
    for path in (investigation / ARTIFACTS).rglob("*.log"):
        if path.name in (LOG, JOURNAL) or REQUESTS.match(path.name) or path.parent.name == CELLS:
            found[f"{path}"] = tuple(repr(record) for record in read_records(path, []))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None, help="of the investigation; kept")
    parser.add_argument("options", nargs="*", help="of perfkit investigate")
    asked = parser.parse_args()
    folder = asked.folder or Path(mkdtemp(prefix="perfkit-kills-")) / "investigation"
    faults = killed_often(folder, moments(asked.kills, asked.seed), asked.options)
    print(f"{asked.kills} kills, {len(faults)} faults: {'; '.join(faults) or 'none'}; in {folder}")
    return 1 if faults else 0


def moments(kills: int, seed: int) -> list[tuple[Part, float]]:
    """For each kill in order: a part, drawn by the time that it takes, and the share of that time."""
    drawn, parts = random.Random(seed), list(Part)
    weights = [expected_s(part, QUICK) for part in parts]
    chosen = sorted(drawn.choices(parts, weights, k=kills), key=parts.index)
    return [(part, drawn.random()) for part in chosen]


def killed_often(folder: Path, kills: Sequence[tuple[Part, float]], options: Sequence[str]) -> list[str]:
    """Walk, killed at these moments; what went wrong, in words."""
    faults: list[str] = []
    before = State()
    for number, (part, share) in enumerate(kills, start=1):
        hit = walk_and_kill(folder, part, share * expected_s(part, QUICK), options)
        after = recorded(folder)
        changed = before.changed_in(after)
        faults += [f"kill {number}: {what} changed" for what in changed]
        kept = f"{len(after.rows)} rows, {len(after.documents)} parts ended, {len(changed)} changed"
        print(f"kill {number}/{len(kills)} in {part.label}: {hit}; {kept}", flush=True)
        before = after
    code = subprocess.run(command(folder, options), stdin=subprocess.DEVNULL, check=False).returncode
    faults += [f"the end: {what} changed" for what in before.changed_in(recorded(folder))]
    return [*faults, *unfinished(folder, code)]


def command(folder: Path, options: Sequence[str]) -> list[str]:
    """The walk, begun or taken up."""
    begun = any((folder / ARTIFACTS).glob(f"{PREFIX}*/{LOG}"))
    chosen = ["--resume"] if begun else list(options)
    return child_command(
        "perfkit.bootstrap:main", "investigate", "--yes", f"--investigation={folder}", *chosen
    )


def walk_and_kill(folder: Path, part: Part, after_s: float, options: Sequence[str]) -> str:
    """Start the walk, kill it so long after this part began (or anywhere, if it has ended), and say when."""
    walk = subprocess.Popen(
        command(folder, options),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    began_s = time.monotonic()
    seen = begun_times(folder, part)
    while begun_times(folder, part) == seen and walk.poll() is None and part not in behind(folder):
        if time.monotonic() - began_s > LATEST_S:
            break
        time.sleep(LOOK_EVERY_S)
    until_s = time.monotonic() + after_s
    while time.monotonic() < until_s and walk.poll() is None:
        time.sleep(LOOK_EVERY_S)
    came = walk.poll()
    walk.send_signal(signal.SIGKILL)
    walk.wait()
    return f"killed {after_s:.1f} s after it began" if came is None else f"it had ended before, with {came}"


def begun_times(folder: Path, part: Part) -> int:
    """How often a part has begun."""
    return sum(record.get("began") == part for record in journal(folder))


def behind(folder: Path) -> set[str]:
    """Parts that ended or were left out."""
    return {str(record[key]) for record in journal(folder) for key in ("ended", "left_out") if key in record}


def journal(folder: Path) -> list[dict[str, object]]:
    """Everything in the journal of the walk."""
    logs = sorted((folder / ARTIFACTS).glob(f"{PREFIX}*/{LOG}"))
    return [record for log in logs for _, record in read_records(log, [])]


def unfinished(folder: Path, code: int) -> list[str]:
    """What the walk owes at its end."""
    records = journal(folder)
    over = Counter(str(record[key]) for record in records for key in ("ended", "left_out") if key in record)
    faults = [
        f"{part.label} came to an end {over[part.value]} times" for part in Part if over[part.value] != 1
    ]
    faults += [] if any("finished" in record for record in records) else ["the walk did not come to its end"]
    return [*faults, *([] if code in THROUGH else [f"the last resume ended with {code}"])]


if __name__ == "__main__":
    sys.exit(main())
