"""The engine: one device, one pipeline, and every request in it, by id.

What comes in are requests, cancellations and a few commands; what goes out are pieces and endings, through
one function. Each request gets exactly one ending, also when a thread or the device is lost: then all that
are on their way fail, and so do later ones, with the reason.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from sample_engine.config.resolve import Resolved, bundles, flat, restart_reasons, with_source
from sample_engine.config.settings import Settings
from sample_engine.config.switches import refusals
from sample_engine.device import Device
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.observe.device_gauges import show_device
from sample_engine.observe.events import EventLog
from sample_engine.observe.metrics import Metrics
from sample_engine.open_device import open_device
from sample_engine.scheduling.pipeline import OnFailure, Pipeline
from sample_engine.scheduling.request import Ending, Flight, Piece, Request

log = logging.getLogger(__name__)
Say = Callable[[Piece | Ending], None]
MakePipeline = Callable[[Device, Settings, Metrics, EventLog, OnFailure], Pipeline]

SETTLE_S = 2.0
"""For the stages to close their slots after the last ending."""
NAP_S = 1e-3


class Refused(RuntimeError):
    """What was asked cannot be done now; says why."""


class Engine:
    """`say` gets pieces and endings, from any thread, and must not block for long."""

    def __init__(self, resolved: Resolved, metrics: Metrics, say: Say, make_pipeline: MakePipeline) -> None:
        settings = resolved.settings
        self.resolved = resolved
        self.metrics = metrics
        self.events = EventLog("preprocess")
        self.failure = ""
        self._say = say
        self._lock = threading.Lock()
        self._gate = threading.Lock()
        self._flights: dict[str, Flight] = {}
        self.device = open_device(
            settings.device, settings.budget_bytes, settings.watchdog_s, settings.graph_trace
        )
        self._pipeline = make_pipeline(self.device, resolved.settings, metrics, self.events, self.fail)
        metrics.set("engine_up", 1)

    def submit(self, request: Request) -> None:
        """Take a request; its ending comes, whatever happens."""
        flight = Flight(request, self._emit)
        with self._lock:
            self._flights[request.request_id] = flight
        with self._gate:
            if self.failure:
                flight.end("failed", self.failure)
            elif request.kind not in self._pipeline.kinds:
                pipeline = self.resolved.settings.pipeline
                flight.end("rejected", f"the {pipeline} pipeline has no {request.kind}")
            else:
                self._pipeline.submit(flight)

    def cancel(self, request_id: str) -> None:
        """End a request, if it has not ended; the stages find out by themselves."""
        with self._lock:
            flight = self._flights.get(request_id)
        if flight is not None:
            flight.end("cancelled")

    def fail(self, where: str, error: Exception) -> None:
        """Something that all requests need is gone."""
        log.error("%s: %s", where, error)
        self._end_all(f"the engine cannot go on: {where}: {error}")

    @property
    def in_flight(self) -> int:
        return len(self._flights)

    @property
    def is_idle(self) -> bool:
        """Nothing is on its way, and all slots are free."""
        return not self._flights and self._pipeline.is_idle

    def configure(self, changes: Mapping[str, object]) -> dict[str, object]:
        """Become other settings while nothing runs. Raises SettingsError, and Refused when requests are on
        their way or a setting needs a restart.
        """
        with self._gate:
            wanted = with_source(self.resolved, changes, "configure")
            self._check_change(wanted)
            if wanted.settings != self.resolved.settings:
                self._pipeline = self._pipeline.renewed(wanted.settings)
            self.resolved = wanted
        return self.info()

    def info(self) -> dict[str, object]:
        """The settings, where they came from, and what stands in each other's way."""
        return {
            "device": self.device.name,
            "device_core": self._device_core(),
            "settings": flat(self.resolved.settings),
            "bundles": bundles(),
            "sources": dict(self.resolved.sources),
            "refusals": refusals(self.resolved.settings.switches),
            "stages": self._pipeline.describe(),
            "in_flight": self.in_flight,
            "failure": self.failure,
            "processes": self._processes(),
        }

    def start_profile(self) -> None:
        self.device.start_profile()

    def stop_profile(self, path: Path) -> None:
        """Write the trace of what happened since; waits for the device."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.device.stop_profile(path)

    def show(self) -> None:
        """Bring the gauges of the device up to date."""
        if not self.failure:
            show_device(self.device, self.metrics)

    def close(self) -> None:
        """End threads and device; requests on their way fail."""
        self._end_all("the engine is shutting down")
        self._pipeline.stop()
        self.device.close()

    def _end_all(self, reason: str) -> None:
        """Whatever is on its way fails, and whatever comes later; the first reason stays."""
        self.failure = self.failure or reason
        self.metrics.set("engine_up", 0)
        with self._lock:
            flights = list(self._flights.values())
        for one in flights:
            one.end("failed", self.failure)

    def _device_core(self) -> int | None:
        """The one that its process has to itself, if any."""
        return self.device.claimed_core if isinstance(self.device, EmulatedDevice) else None

    def _processes(self) -> dict[str, int]:
        engine = {"engine": os.getpid()}
        if isinstance(self.device, EmulatedDevice):
            engine["device"] = self.device.process_id
        return engine

    def _check_change(self, wanted: Resolved) -> None:
        if self.failure:
            raise Refused(self.failure)
        if reasons := restart_reasons(self.resolved.settings, wanted.settings):
            text = "; ".join(f"{name}: {why}" for name, why in reasons.items())
            raise Refused(f"a restart is needed ({text})")
        if not self._settles():
            raise Refused(f"{self.in_flight} requests are on their way: try again when there are none")

    def _settles(self) -> bool:
        """Whether nothing runs, now or (slots are closed a little later than requests end) very soon."""
        deadline_s = time.monotonic() + SETTLE_S
        while not self.is_idle:
            if self._flights or time.monotonic() > deadline_s:
                return False
            time.sleep(NAP_S)
        return True

    def _emit(self, message: Piece | Ending) -> None:
        if isinstance(message, Ending):
            with self._lock:
                del self._flights[message.request_id]
            self.metrics.add("engine_requests_total", value=message.end)
        self._say(message)
