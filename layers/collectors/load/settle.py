"""From the wire log of a process to its RequestRecords: once, in one step, also after a kill.

The records appear whole or not at all, so that to settle again changes nothing. A request that was in flight
when its process was killed is in neither file: the flight file names it, and it becomes a record too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from layers.collectors.load.endpoints.endpoint import Endpoint, Reading
from layers.collectors.load.endpoints.registry import endpoint_for
from layers.collectors.load.flight import Flight
from layers.collectors.load.folder import flight_path, processes_in, records_path, wire_path
from layers.collectors.load.outcomes import error_text, outcome_of_status, refuses
from layers.collectors.load.plan import LoadPlan
from layers.collectors.load.records import Outcome, Phase, RequestRecord
from layers.collectors.load.wire_log import Recorded, read_wire
from layers.evidence.record_log import RecordLog, read_records
from parsers.loss import Loss

KILLED = "in flight when the load process was killed"
NO_READING = Reading(Outcome.OK)


@dataclass(frozen=True, slots=True)
class Settled:
    """How many records there are now, and what of the wire log was damaged."""

    records: int
    losses: tuple[Loss, ...]


def settle(plan: LoadPlan, process: int) -> Settled:
    """Write the records of one process where they are not written yet; the wire log goes unless it is to
    stay.

    Raises UnreadableInput or StoreError.
    """
    path, losses = records_path(plan.folder, process), list[Loss]()
    if path.exists():
        return Settled(sum(1 for _ in read_records(path, losses)), tuple(losses))
    unfinished = path.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    count = 0
    with RecordLog(unfinished) as log:
        for record in _records(plan, process, losses):
            log.append(msgspec.to_builtins(record))
            count += 1
    os.rename(unfinished, path)
    if not plan.keep_wire and not losses:
        wire_path(plan.folder, process).unlink(missing_ok=True)
    return Settled(count, tuple(losses))


def read_run(folder: Path, losses: list[Loss]) -> list[RequestRecord]:
    """All records of a settled run, by intended start."""
    records = [
        msgspec.convert(record, RequestRecord)
        for process in processes_in(folder)
        for _, record in read_records(records_path(folder, process), losses)
    ]
    return sorted(records, key=lambda record: record.intended_ns)


def _records(plan: LoadPlan, process: int, losses: list[Loss]) -> Iterator[RequestRecord]:
    endpoint = endpoint_for(plan.endpoint)
    seen = set[tuple[Phase, int, int]]()
    wire = wire_path(plan.folder, process)
    for recorded in read_wire(wire, losses) if wire.exists() else ():
        seen.add((recorded.head.phase, recorded.head.sequence, recorded.head.attempt))
        yield record_of(recorded, endpoint)
    yield from _killed(plan.folder, process, seen)


def _killed(folder: Path, process: int, seen: set[tuple[Phase, int, int]]) -> Iterator[RequestRecord]:
    with Flight(flight_path(folder, process)) as flight:
        for left in flight.in_flight():
            if (left.phase, left.sequence, left.attempt) not in seen:
                yield RequestRecord(
                    sequence=left.sequence,
                    attempt=left.attempt,
                    item="",
                    phase=left.phase,
                    process=process,
                    outcome=Outcome.UNFINISHED,
                    error=KILLED,
                    status=None,
                    intended_ns=left.intended_ns,
                    sent_ns=None,
                    connected_ns=None,
                    first_byte_ns=None,
                    end_ns=None,
                    request_bytes=0,
                    response_bytes=0,
                    reads=0,
                )


def record_of(recorded: Recorded, endpoint: Endpoint) -> RequestRecord:
    """What one exchange comes to. Of an answer that was cut off, what came is read all the same."""
    head = recorded.head
    success = 200 <= head.status < 300
    reading = endpoint.read(recorded.answer) if success and recorded.pieces else NO_READING
    outcome, error = _outcome(recorded, reading)
    return RequestRecord(
        sequence=head.sequence,
        attempt=head.attempt,
        item=head.item,
        phase=head.phase,
        process=head.process,
        outcome=outcome,
        error=error,
        status=head.status or None,
        intended_ns=head.intended_ns,
        sent_ns=head.sent_ns or None,
        connected_ns=head.connected_ns or None,
        first_byte_ns=head.first_byte_ns or None,
        end_ns=head.end_ns or None,
        request_bytes=head.request_bytes,
        response_bytes=head.response_bytes,
        reads=head.reads,
        event_ns=reading.event_ns,
        event_tokens=reading.event_tokens,
        usage=reading.usage,
        finish_reason=reading.finish_reason,
        text=reading.text,
        audio=reading.audio,
        server_id=reading.server_id or dict(head.headers).get("x-request-id", ""),
    )


def _outcome(recorded: Recorded, reading: Reading) -> tuple[Outcome, str]:
    """How the transport ended goes before what the status says, that before what the body says."""
    head = recorded.head
    if head.ending is not Outcome.OK:
        return head.ending, head.error
    of_status = outcome_of_status(head.status, recorded.answer.body)
    if of_status is not Outcome.OK:
        return of_status, f"{head.status}: {error_text(recorded.answer.body)}"
    if not recorded.pieces:
        return Outcome.EMPTY, "an answer without a body"
    if reading.outcome is Outcome.SERVER_ERROR and refuses(reading.error):
        return Outcome.SHED, reading.error
    return reading.outcome, reading.error
