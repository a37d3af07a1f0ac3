"""Look at the machine once: sample its GPUs for a few seconds, and meanwhile ask for everything else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep, time_ns

from layers.collectors.gpu.inventory import read_inventory
from layers.collectors.gpu.inventory_model import Inventory
from layers.collectors.gpu.live import LiveSampling
from layers.collectors.processes import Process, gpu_files, scan
from layers.preflight.gpu_choice import GpuState, gpu_states, recommend
from layers.preflight.machine import sees_host_pids
from layers.preflight.model import PreflightFacts
from layers.preflight.process_tree import Family, families, server_family, unattributable
from layers.preflight.snapshot import Subject, take_snapshot
from layers.preflight.software import read_software
from parsers.errors import UsageError

DEFAULT_SECONDS = 3.0
"""Thirty samples at 100 ms, and longer than any driver's sample period."""
MAX_SECONDS = 3600
STEP_S = 0.1
"""How often the progress moves."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to look at: `python` is the service's interpreter, `pin_files` replace those found in `folder`."""

    python: str
    folder: Path
    samples_folder: Path
    subject: Subject = field(default_factory=Subject)
    pin_files: Sequence[Path] = ()
    gpu_index: int | None = None
    seconds: float = DEFAULT_SECONDS


def collect(request: Request, step: Callable[[], None] = lambda: None) -> PreflightFacts:
    """Everything at once; without a GPU, or with a driver that hangs, the rest is still there."""
    inventory = read_inventory()
    _check_index(request.gpu_index, inventory)
    with LiveSampling(request.samples_folder) as live:
        until = monotonic() + (request.seconds if live.sampling else 0.0)
        software = read_software(request.python, request.folder, request.pin_files)
        snapshot = take_snapshot(request.subject, inventory, software)
        _wait(until, step)
        ended_ns = time_ns()
    processes = scan()
    gpus = tuple(gpu_states(inventory.gpus, live.recordings))
    host_pids = sees_host_pids()
    return PreflightFacts(
        inventory=inventory,
        recordings=live.recordings,
        problems=tuple(live.problems),
        gpus=gpus,
        wanted=request.gpu_index,
        chosen=_chosen(gpus, request.gpu_index),
        families=(*_server(request.subject.server, processes, inventory), *_families(processes, inventory)),
        strangers=tuple(unattributable(inventory.gpus, processes, holds_gpu, host_pids)),
        software=software,
        snapshot=snapshot,
        host_pids=host_pids,
        asked_s=request.seconds,
        ended_ns=ended_ns,
    )


def checked_seconds(seconds: float) -> float:
    """The same, if it is a time to look for; else UsageError."""
    if not 0 < seconds <= MAX_SECONDS:
        raise UsageError(f"--seconds {seconds:g}: give a time above 0 and up to {MAX_SECONDS} s")
    return seconds


def find_families(inventory: Inventory) -> list[Family]:
    """The families of processes that were left behind, or that run, without looking at anything else."""
    return _families(scan(), inventory)


def _families(processes: Mapping[int, Process], inventory: Inventory) -> list[Family]:
    return families(processes, os.getpid(), holds_gpu, inventory.gpus)


def _server(url: str | None, processes: Mapping[int, Process], inventory: Inventory) -> Iterator[Family]:
    if url is not None:
        yield server_family(url, processes, holds_gpu, inventory.gpus)


def holds_gpu(pid: int) -> bool | None:
    """Whether a process has a GPU open; None where that may not be looked at."""
    files = gpu_files(pid)
    return None if files is None else bool(files)


def _chosen(gpus: Sequence[GpuState], wanted: int | None) -> GpuState | None:
    return recommend([state for state in gpus if wanted is None or state.gpu.index == wanted])


def _check_index(wanted: int | None, inventory: Inventory) -> None:
    indexes = [gpu.index for gpu in inventory.gpus]
    if wanted is not None and wanted not in indexes:
        there = f"there are {indexes}" if indexes else f"there is none ({inventory.problem})"
        raise UsageError(f"--gpu-index {wanted}: no such GPU; {there}")


def _wait(until: float, step: Callable[[], None]) -> None:
    while (left_s := until - monotonic()) > 0:
        sleep(min(STEP_S, left_s))
        step()
