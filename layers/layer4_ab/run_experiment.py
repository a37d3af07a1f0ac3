"""Runs an experiment: for each run a fresh server, the same load, and a look at the machine on both sides.

    for each run of the order that does not stand yet
        before.json                 a snapshot of the machine
        run_sweep                   start the server, warm up, measure, take the server down
        after.json                  a snapshot again

A run that was cut is put aside and begun anew, with a server of its own: the start is the unit, and half of
one is none. Hot, the two runs of a pair share a server, whose settings change between them (hot_server.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from layers.collectors.gpu.inventory import read_inventory
from layers.collectors.load.item import DataSet
from layers.collectors.server_adapters.adapter import ServerInfo
from layers.layer3_sweep.collect import TOLD, Servers, Watcher, run_sweep
from layers.layer3_sweep.protocol import SERVER, SweepPlan
from layers.layer3_sweep.sweep_folder import write_plan
from layers.layer4_ab.experiment import Experiment, RunKey, plan_of_run
from layers.layer4_ab.experiment_folder import AFTER, BEFORE, begin_run, keep_snapshot, left_to_run
from layers.layer4_ab.hot_server import HotServers
from layers.preflight.snapshot import Snapshot, Subject, take_snapshot
from layers.preflight.software import read_software


class Follower(Protocol):
    """Who follows an experiment."""

    def run_begins(self, key: RunKey, total: int) -> Watcher: ...


def run_experiment(
    experiment: Experiment,
    folder: Path,
    data: DataSet,
    follower: Follower,
    headers: Mapping[str, str] | None = None,
    told: Callable[[], bool] = lambda: False,
    look: Callable[[], Snapshot] | None = None,
) -> str:
    """Run, or go on with, the experiment of this folder; why it ended before its last run, empty where it did
    not. `look` takes a snapshot of the machine. Raises what `run_sweep` raises; what was recorded stays."""
    look = look or snapshot_of_machine
    left = left_to_run(folder, experiment)
    with ExitStack() as stack:
        hot = stack.enter_context(HotServers(experiment, headers)) if experiment.hot else None
        for key in left:
            if told():
                return TOLD
            watcher = follower.run_begins(key, len(experiment.order))
            if why := _run(experiment, folder, key, data, watcher, headers, told, look, hot):
                return f"run {key.number} ({key.arm}): {why}"
    return ""


def snapshot_of_machine() -> Snapshot:
    """The machine, its GPUs, packages and environment, without a server: each run starts its own."""
    return take_snapshot(Subject(), read_inventory(), read_software(sys.executable, Path.cwd(), ()))


def _run(
    experiment: Experiment,
    folder: Path,
    key: RunKey,
    data: DataSet,
    watcher: Watcher,
    headers: Mapping[str, str] | None,
    told: Callable[[], bool],
    look: Callable[[], Snapshot],
    hot: HotServers | None,
) -> str:
    place = begin_run(folder, key)
    keep_snapshot(place / BEFORE, look())
    plan = plan_of_run(experiment, key)
    with hot.of_run(key, place) if hot else Servers(plan, place, headers) as servers:
        plan = with_model(plan, servers.at(SERVER, 0).info)
        write_plan(place, plan)
        why = run_sweep(plan, place, data, watcher, headers, told, servers)
    if why or told():
        return why or TOLD
    keep_snapshot(place / AFTER, look())
    return ""


def with_model(plan: SweepPlan, info: ServerInfo | None) -> SweepPlan:
    """The plan that asks for the server's own model, where none was named."""
    if info is None or not info.models or plan.endpoint.model:
        return plan
    return replace(plan, endpoint=replace(plan.endpoint, model=info.models[0]))
