"""The load process: builds, connects, waits for the word, runs, and reads what it recorded.

    python …/bootstrap.py layers.collectors.load.process:main NUMBER

Its stdin: the plan as a line of JSON (header values are secrets, and a command line is public), then `start
T` with a moment of CLOCK_MONOTONIC. It stops when its stdin closes, so that it never outlives who started it.
Its stdout: `Ready`, then `Ended`, a line of JSON each; `{"fault": …}` in their place where it cannot go on.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys

import msgspec
import uvloop

from layers.collectors.load.driver import Driver, Why
from layers.collectors.load.endpoints.registry import endpoint_for
from layers.collectors.load.flight import Flight
from layers.collectors.load.folder import flight_path, pulse_path, wire_path
from layers.collectors.load.in_time import in_time
from layers.collectors.load.item import read_items
from layers.collectors.load.loops import driver_for, slots_of
from layers.collectors.load.plan import LoadPlan
from layers.collectors.load.plan_json import decode_plan
from layers.collectors.load.pulse import Pulse
from layers.collectors.load.records import Phase
from layers.collectors.load.settle import settle
from layers.collectors.load.stock import Stock
from layers.collectors.load.wire_log import WireLog
from parsers.errors import PerfkitError

STDIN = 0
OPENED_AHEAD = 64
"""Connections that an open loop opens before it begins; a closed one opens all."""


class Ready(msgspec.Struct):
    """Said before the run. `problem`: why a connection could not be opened, else empty."""

    connections: int
    problem: str


class Ended(msgspec.Struct):
    """Said after it, when the records are written."""

    why: str
    error: str
    records: int
    lost: int


def main() -> int:
    """The child process."""
    process = int(sys.argv[1])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        plan = decode_plan(sys.stdin.readline())
        loop = uvloop.new_event_loop()
        with Flight(flight_path(plan.folder, process), slots_of(plan, process)) as flight:
            ended = loop.run_until_complete(_run(loop, plan, process, flight))
        _say(ended)
    except PerfkitError as error:
        _say({"fault": str(error)})
        return error.exit_code
    return 0


async def _run(loop: asyncio.AbstractEventLoop, plan: LoadPlan, process: int, flight: Flight) -> Ended:
    stocks = _stocks(plan, process)
    log = WireLog(wire_path(plan.folder, process), process)
    driver = driver_for(plan)(loop, plan, process, stocks, log, flight)
    pulse = Pulse(loop, pulse_path(plan.folder, process), lambda: driver.reads)
    count = slots_of(plan, process) if plan.load.concurrency else min(OPENED_AHEAD, slots_of(plan, process))
    problem = await driver.connections.open(count)
    _say(Ready(driver.connections.opened, problem))
    begin_ns = _awaited_start()
    if begin_ns is None:
        why = Why.STOPPED
        pulse.start({"process": process})
    else:
        loop.add_reader(STDIN, _stop_with_stdin, loop, driver)
        why = await _drive(driver, pulse, process, plan.processes, begin_ns)
    pulse.end(why, driver.error)
    log.close()
    settled = settle(plan, process)
    return Ended(why, driver.error, settled.records, len(settled.losses))


async def _drive(driver: Driver, pulse: Pulse, process: int, processes: int, begin_ns: int) -> Why:
    """With the collector of garbage off: nothing on the way makes cycles that would have to be found."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        with in_time(processes) as ahead:
            pulse.start({"process": process, "connections": driver.connections.opened, "real_time": ahead})
            return await driver.run(begin_ns)
    finally:
        gc.enable()
        gc.unfreeze()


def _stocks(plan: LoadPlan, process: int) -> dict[Phase, Stock]:
    endpoint = endpoint_for(plan.endpoint)
    stocks = {}
    for phase, path in ((Phase.WARMUP, plan.warmup_items), (Phase.MEASURED, plan.items)):
        if path is not None:
            items = read_items(path)
            endpoint.check(items)
            stocks[phase] = Stock(endpoint, plan.target, items, phase, plan.nonce)
            known = plan.extent.requests if phase is Phase.MEASURED else plan.extent.warmup_requests
            stocks[phase].prepare(range(process, known or len(items), plan.processes))
    return stocks


def _awaited_start() -> int | None:
    """When to begin; None where stdin closes instead."""
    words = sys.stdin.readline().split()
    return int(words[1]) if len(words) == 2 else None


def _stop_with_stdin(loop: asyncio.AbstractEventLoop, driver: Driver) -> None:
    if not os.read(STDIN, 1):
        loop.remove_reader(STDIN)
        driver.stop()


def _say(what: Ready | Ended | dict[str, str]) -> None:
    print(msgspec.json.encode(what).decode(), flush=True)
