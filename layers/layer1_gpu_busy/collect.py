"""Read and analyse traces and nsys exports: names to paths, paths to analyses, several files in several
processes. What a file is, its content tells.

Work on one file is a pure function of its path. A single large file is split among the cores by its reader;
several are shared out among as many processes as there are cores. A file that cannot be read does not cost
the others.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from layers.collectors.named_files import find_files
from layers.evidence.wording import first_few
from layers.layer1_gpu_busy.analyse import analyse_trace
from layers.layer1_gpu_busy.nsys_analysis import analyse_export
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis, Unread
from parsers.child_team import Answer, ask_children
from parsers.children import child_command
from parsers.chrome_trace import read_chrome_trace
from parsers.errors import UnreadableInput
from parsers.nsys_file import looks_like_nsys
from parsers.nsys_sqlite import read_nsys_export

TRACE_PATTERNS = ("*.json", "*.json.gz", "*.sqlite")
OUT_OF_MEMORY = "where memory ran out, give fewer files or --busy-only"
CRASHED = "a fault of perfkit or of a library that it uses; the other files are judged without it"
SIGKILL = 9
"""What the kernel sends where memory runs out; the signal module lacks it on Windows."""
IN_PROCESS_BELOW_BYTES = 8 << 20
"""Files that together are smaller, as they lie on the disk, are read faster than processes start."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What came of one file or more, in the order of their names."""

    traces: tuple[TraceAnalysis, ...]
    unread: tuple[Unread, ...]


def find_trace_files(names: Sequence[str]) -> list[str]:
    """Files, folders (what in them matches TRACE_PATTERNS) and glob patterns as paths in the order of the
    names, each file once, sorted within a name. Links to nowhere and pipes are among them: who reads them
    says that they cannot be read.

    Raises UnreadableInput for a name that stands for no file at all.
    """
    return find_files(names, _traces_below, f"no {' or '.join(TRACE_PATTERNS)} in this folder")


def _traces_below(folder: str) -> list[str]:
    return [str(p) for pattern in TRACE_PATTERNS for p in Path(folder).rglob(pattern) if not p.is_dir()]


def collect_traces(
    paths: Sequence[str], busy_only: bool = False, step: Callable[[], None] = lambda: None, gpu: str = ""
) -> Collected:
    """Analyse every file; `step` is called after each. `gpu` names the card where a trace does so otherwise
    than the roofline's table. Raises UnreadableInput when none could be read."""
    outcomes: dict[int, Collected] = {}
    with closing(_analyse_all(paths, busy_only, gpu)) as finished:
        for place, outcome in finished:
            outcomes[place] = outcome
            step()
    in_order = [outcomes[place] for place in range(len(paths))]
    traces = tuple(trace for outcome in in_order for trace in outcome.traces)
    unread = tuple(one for outcome in in_order for one in outcome.unread)
    if not traces:
        raise UnreadableInput(first_few(u.why for u in unread))
    return Collected(traces, unread)


Outcomes = Generator[tuple[int, Collected], None, None]
"""What came of each file, with its place among the paths, in any order."""


def _analyse_all(paths: Sequence[str], busy_only: bool, gpu: str) -> Outcomes:
    sizes = [os.path.getsize(path) if os.path.isfile(path) else 0 for path in paths]
    cores = _free_cores()
    if len(paths) == 1 or cores == 1 or sum(sizes) < IN_PROCESS_BELOW_BYTES:
        return ((place, _analyse_here(path, busy_only, gpu)) for place, path in enumerate(paths))
    return _analyse_in_children(paths, sizes, busy_only, gpu, cores)


def _analyse_in_children(
    paths: Sequence[str], sizes: Sequence[int], busy_only: bool, gpu: str, children: int
) -> Outcomes:
    """Large files first, lest one that comes last leave the other cores idle."""
    places = sorted(range(len(paths)), key=lambda place: -sizes[place])
    command = child_command("layers.layer1_gpu_busy.collect:work", str(int(busy_only)), gpu)
    questions = [json.dumps(paths[place]) for place in places]
    for answer in ask_children(command, questions, children):
        place = places[answer.number]
        yield place, _answered(paths[place], answer)


def _free_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _analyse_here(path: str, busy_only: bool, gpu: str, workers: int | None = None) -> Collected:
    try:
        if looks_like_nsys(path):
            analysis = analyse_export(read_nsys_export(path, busy_only=busy_only), gpu)
        else:
            analysis = analyse_trace(read_chrome_trace(path, busy_only=busy_only, workers=workers), gpu)
    except UnreadableInput as error:
        return Collected((), (Unread(path, str(error)),))
    return Collected((analysis,), ())


def _answered(path: str, answer: Answer) -> Collected:
    if answer.killed_by is not None:
        advice = OUT_OF_MEMORY if answer.killed_by == SIGKILL else CRASHED
        why = f"{path}: the process that read it was killed by signal {answer.killed_by}: {advice}"
        return Collected((), (Unread(path, why),))
    return msgspec.convert(json.loads(answer.line), Collected, str_keys=True)


def work() -> int:
    """The child process: analyse each file that is named on stdin and write the outcome to stdout.

    Written by the json module, since msgspec refuses what a file name may hold: text that is no Unicode.
    """
    for line in sys.stdin:
        collected = _analyse_here(json.loads(line), sys.argv[1] == "1", sys.argv[2], workers=0)
        print(json.dumps(msgspec.to_builtins(collected, str_keys=True)), flush=True)
    return 0
