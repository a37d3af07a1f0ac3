"""Which two events bound which interval: SGLang-Omni's names in both of its vocabularies, and plain ones.

Since its PR #1340 an SGLang-Omni build tells when prefill ends; before, the first output ends the first
forward. The bundled engine has the newer names, with decoding as a stage of its own. Plain logs say enter,
start and end, or NAME_start and NAME_end. Which rules hold in a stage is told by the events that it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass

from layers.stages.model import Kind

ADMITTED, ANSWERED = "request_admission", "terminal_response"
RECEIVED, COMPLETE, SENT = "stage_input_received", "stage_complete", "stage_hop_sent"
CHUNK_SENT, CHUNK_RECEIVED = "stage_stream_chunk_sent", "stage_stream_chunk_received"
BUILD_START, BUILD_END = "scheduler_request_build_start", "scheduler_request_build_end"
QUEUED = "scheduler_queue_enter"
PREFILL_START, PREFILL_END = "scheduler_prefill_start", "scheduler_prefill_end"
FIRST_EMIT = "scheduler_first_emit"
READY = "stage_aggregate_ready"
VOCODER_START, VOCODER_END = "code2wav_decode_start", "code2wav_decode_end"
VOCODER_BATCH = ("code2wav_batch_start", "code2wav_batch_end")

ENTER, START, END, SHED = "enter", "start", "end", "shed"
PLAIN = {
    **dict.fromkeys(("enter", "entered", "enqueue", "enqueued", "queued", "queue_enter"), ENTER),
    **dict.fromkeys(("arrive", "arrived", "arrival", "received", "submitted"), ENTER),
    **dict.fromkeys(("start", "started", "begin", "begun", "dequeue", "dequeued"), START),
    **dict.fromkeys(("end", "ended", "finish", "finished", "done", "complete", "completed", "exit"), END),
    **dict.fromkeys(("shed", "rejected", "refused", "dropped"), SHED),
}
"""Words that anybody may log, and what they mean here."""

ADMISSION, WORKERS, BATCH = "admission", "build workers", ""
HAND_OVER, AGGREGATE = "build to queue", "other inputs"
PIECE, PAYLOAD = "stream_chunk", "payload"
MARKERS = frozenset(
    {
        *(ADMITTED, ANSWERED, SENT, CHUNK_SENT, CHUNK_RECEIVED, FIRST_EMIT, READY, "stage_dispatch"),
        *("coordinator_stream_received", "stage_first_stream_chunk_sent", "code2wav_decode_launched"),
        *("code2wav_first_audio", "model_path_start", "model_path_end", SHED, *VOCODER_BATCH),
    }
)
"""Events that are known and need not bound an interval."""
OWN = re.compile(r"(?P<what>.+)_(?:start|begin)")
KINDS = (
    (("queue", "wait", "pending", "admission"), Kind.QUEUE),
    (("build",), Kind.BUILD),
    (("first_forward", "prefill"), Kind.FIRST_FORWARD),
    (("decode",), Kind.DECODE),
    (("hop", "transfer", "send"), Kind.HOP),
)
"""Words in names of one's own, and the kind of interval that they mean; any other is service."""
COORDINATOR = "coordinator"


@dataclass(frozen=True, slots=True)
class Rule:
    """From one event to the next `end`; a `broken_by` between them means that the request was elsewhere."""

    start: str
    end: str
    kind: Kind
    part: str = ""
    broken_by: str = ""


def plain(name: str) -> str:
    """An event's name as this module calls it."""
    return PLAIN.get(name.lower(), name)


def rules_for(names: Set[str], decodes: bool) -> list[Rule]:
    """The rules of a stage that has events of these names. `decodes`: what comes after its first forward is
    decoding, since no other stage does that."""
    return [rule for rule in _all(names, decodes) if rule.start in names and rule.end in names]


def _all(names: Set[str], decodes: bool) -> Iterator[Rule]:
    yield from _scheduler(names, decodes)
    yield Rule(RECEIVED, READY, Kind.HOP, AGGREGATE)
    yield from _workers(names)
    yield from _vocoder(names)
    yield Rule(ENTER, START, Kind.QUEUE, BATCH)
    yield Rule(START, END, Kind.SERVICE)
    if START not in names:
        yield Rule(ENTER, END, Kind.SERVICE)
    own = list(_own(names))
    yield from own
    if not own and names.isdisjoint(FINER):
        yield Rule(RECEIVED, COMPLETE, Kind.DECODE if FIRST_EMIT in names else Kind.SERVICE)


def _scheduler(names: Set[str], decodes: bool) -> Iterator[Rule]:
    yield Rule(RECEIVED, BUILD_START, Kind.QUEUE, WORKERS)
    yield Rule(BUILD_START, BUILD_END, Kind.BUILD)
    yield Rule(BUILD_END, QUEUED, Kind.HOP, HAND_OVER, broken_by=RECEIVED)
    yield Rule(QUEUED, PREFILL_START, Kind.QUEUE, ADMISSION)
    first = next((end for end in (PREFILL_END, FIRST_EMIT) if end in names), "")
    if not first:
        yield Rule(PREFILL_START, COMPLETE, Kind.SERVICE)
    elif PREFILL_START in names:
        yield Rule(PREFILL_START, first, Kind.FIRST_FORWARD)
        if decodes:
            yield Rule(first, COMPLETE, Kind.DECODE)


def _workers(names: Set[str]) -> Iterator[Rule]:
    """A stage waits for the first work that it does; inside a scheduler's stage that is its own business."""
    works = [what for what in ("preprocess", "encoder") if f"{what}_start" in names]
    if works and BUILD_START not in names and PREFILL_START not in names:
        yield Rule(RECEIVED, f"{works[0]}_start", Kind.QUEUE, BATCH)
    for what in works:
        yield Rule(f"{what}_start", f"{what}_end", Kind.SERVICE, what)


def _vocoder(names: Set[str]) -> Iterator[Rule]:
    start, end = (VOCODER_START, VOCODER_END) if VOCODER_END in names else VOCODER_BATCH
    yield Rule(CHUNK_RECEIVED if CHUNK_RECEIVED in names else RECEIVED, start, Kind.QUEUE, BATCH)
    yield Rule(start, end, Kind.SERVICE, "code2wav")


def _own(names: Set[str]) -> Iterator[Rule]:
    """NAME_start and NAME_end that are nobody's we know."""
    for name in sorted(names):
        match = OWN.fullmatch(name)
        if match is None or name in KNOWN:
            continue
        what = match["what"]
        end = next((e for e in (f"{what}_end", f"{what}_finish", f"{what}_done") if e in names), "")
        yield Rule(name, end, kind_of(what), what)


def kind_of(words: str) -> Kind:
    """What an interval of this name is."""
    lower = words.lower().replace(" ", "_")
    return next((kind for parts, kind in KINDS if any(part in lower for part in parts)), Kind.SERVICE)


FINER = frozenset(
    {BUILD_START, PREFILL_START, "preprocess_start", "encoder_start", VOCODER_START, VOCODER_BATCH[0]}
)
"""Events by which a stage tells more than when it was entered and left."""
KNOWN = FINER | MARKERS | {RECEIVED, COMPLETE, BUILD_END, QUEUED, PREFILL_END, START, END, ENTER}
