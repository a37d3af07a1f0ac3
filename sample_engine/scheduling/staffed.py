"""What both pipelines are around their stages: build workers in front, and threads that take turns."""

from __future__ import annotations

from sample_engine.observe.events import EventLog
from sample_engine.scheduling.admission import Admission
from sample_engine.scheduling.request import Flight
from sample_engine.scheduling.runner import Runner


class Staffed:
    """A pipeline makes its three parts and says what a turn is."""

    _admission: Admission
    _runners: list[Runner]
    _events: EventLog

    def submit(self, flight: Flight) -> None:
        request_id = flight.request.request_id
        self._events.record(request_id, "preprocess", "stage_input_received", from_stage="coordinator")
        self._admission.submit(flight)

    def stop(self) -> None:
        self._admission.stop()
        for one in self._runners:
            one.stop()
