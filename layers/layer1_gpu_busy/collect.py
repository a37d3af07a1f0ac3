"""Read and analyse traces and nsys exports: names to paths, paths to analyses, several files in several
processes. What a file is, its content tells.

Work on one file is a pure function of its path. A single large file is split among the cores by its reader;
several files share the cores one file per process. A file that cannot be read does not cost the others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

import msgspec

from layers.evidence.wording import first_few
from layers.layer1_gpu_busy.analyse import analyse_trace
from layers.layer1_gpu_busy.nsys_analysis import analyse_export
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis, Unread
from parsers.children import child_command, child_environment
from parsers.chrome_trace import read_chrome_trace
from parsers.errors import UnreadableInput
from parsers.nsys_file import looks_like_nsys
from parsers.nsys_sqlite import read_nsys_export

TRACE_PATTERNS = ("*.json", "*.json.gz", "*.sqlite")
IN_PROCESS_BELOW_BYTES = 8 << 20
"""Files that together are smaller, as they lie on the disk, are read faster than processes start."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What came of one file or more, in the order of their names."""

    traces: tuple[TraceAnalysis, ...]
    unread: tuple[Unread, ...]


def find_trace_files(names: Sequence[str]) -> list[str]:
    """Files, folders (what in them matches TRACE_PATTERNS) and glob patterns as paths in the order of the
    names, each file once, sorted within a name.

    Raises UnreadableInput for a name that stands for no file at all.
    """
    first_path_of: dict[str, str] = {}
    for name in names:
        for path in _files_of(name):
            first_path_of.setdefault(os.path.realpath(path), path)
    return list(first_path_of.values())


def _files_of(name: str) -> list[str]:
    if os.path.isdir(name):
        found = [str(p) for pattern in TRACE_PATTERNS for p in Path(name).rglob(pattern) if p.is_file()]
        missing = f"no {' or '.join(TRACE_PATTERNS)} in this folder"
    elif os.path.exists(name) or not has_magic(name):
        return [name]
    else:
        found, missing = glob(name, recursive=True), "no file matches this pattern"
    if not found:
        raise UnreadableInput(f"{name}: {missing}")
    return sorted(found)


def collect_traces(
    paths: Sequence[str], busy_only: bool = False, step: Callable[[], None] = lambda: None
) -> Collected:
    """Analyse every file; `step` is called after each. Raises UnreadableInput when none could be read."""
    traces: tuple[TraceAnalysis, ...] = ()
    unread: tuple[Unread, ...] = ()
    for one in _analyse_all(paths, busy_only):
        traces, unread = traces + one.traces, unread + one.unread
        step()
    if not traces:
        raise UnreadableInput(first_few(u.why for u in unread))
    return Collected(traces, unread)


def _analyse_all(paths: Sequence[str], busy_only: bool) -> Iterator[Collected]:
    sizes = [os.path.getsize(path) for path in paths if os.path.isfile(path)]
    cores = _free_cores()
    if len(paths) == 1 or cores == 1 or sum(sizes) < IN_PROCESS_BELOW_BYTES:
        return (_analyse_here(path, busy_only) for path in paths)
    return _analyse_in_children(paths, busy_only, cores)


def _analyse_in_children(paths: Sequence[str], busy_only: bool, cores: int) -> Iterator[Collected]:
    with ThreadPoolExecutor(min(cores, len(paths))) as waiting:
        yield from waiting.map(lambda path: _analyse_in_child(path, busy_only), paths)


def _free_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _analyse_here(path: str, busy_only: bool, workers: int | None = None) -> Collected:
    try:
        if looks_like_nsys(path):
            analysis = analyse_export(read_nsys_export(path, busy_only=busy_only))
        else:
            analysis = analyse_trace(read_chrome_trace(path, busy_only=busy_only, workers=workers))
    except UnreadableInput as error:
        return Collected((), (Unread(path, str(error)),))
    return Collected((analysis,), ())


def _analyse_in_child(path: str, busy_only: bool) -> Collected:
    command = child_command("layers.layer1_gpu_busy.collect:work", path, str(int(busy_only)))
    done = subprocess.run(
        command, capture_output=True, stdin=subprocess.DEVNULL, check=False, env=child_environment()
    )
    if done.returncode < 0:
        advice = "where memory ran out, give fewer files or --busy-only"
        why = f"{path}: the process that read it was killed by signal {-done.returncode}: {advice}"
        return Collected((), (Unread(path, why),))
    if done.returncode > 0:
        raise RuntimeError(f"reading {path}: {done.stderr.decode(errors='replace')}")
    return msgspec.convert(json.loads(done.stdout), Collected, str_keys=True)


def work() -> int:
    """The child process: analyse the file named on the command line and write the outcome to stdout.

    Written by the json module, since msgspec refuses what a file name may hold: text that is no Unicode.
    """
    collected = _analyse_here(sys.argv[1], sys.argv[2] == "1", workers=0)
    sys.stdout.write(json.dumps(msgspec.to_builtins(collected, str_keys=True)))
    return 0
