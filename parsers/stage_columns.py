"""Which column of a log of stage events is which, by its name, and how its times are read.

Idea: every form (JSON lines, CSV, SGLang-Omni's with its nested `metadata`) becomes a row of names and
values; the first row that has a request, a stage, an event and a time fixes which names those are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from parsers.stage_model import StageEvent

REQUEST = ("request_id", "request", "req_id", "rid", "req", "trace_id", "id")
STAGE = ("stage", "stage_name", "component", "step")
EVENT = ("event_name", "event", "name", "type")
RUN = ("run_id", "run")
PID = ("pid", "process_id")
PEER = ("to_stage", "from_stage", "next")
CHUNK = ("chunk_id", "chunk")
BATCH = ("batch_size", "batch")
STATUS, ERROR = ("status", "status_code", "http_status"), ("error", "exception")
TOKENS, SECONDS, FRAMES, CHARACTERS = "tokens", "s of audio", "frames", "characters"
LENGTHS = {
    **dict.fromkeys(("input_tokens", "prompt_tokens", "num_prompt_tokens"), TOKENS),
    **dict.fromkeys(("input_length", "input_len", "seq_len", "sequence_length"), TOKENS),
    **dict.fromkeys(("audio_seconds", "audio_duration_s", "audio_duration", "audio_s"), SECONDS),
    **dict.fromkeys(("num_frames", "frames", "input_frames"), FRAMES),
    **dict.fromkeys(("text_length", "text_len", "num_chars", "characters"), CHARACTERS),
}
"""Names that say how long an input is, and in what; the first one that an event has counts."""
TIMES = ("timestamp", "ts", "time", "at", "t")
UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
SECOND_NS = UNITS_NS["s"]
LARGEST_NS = 2**63 - 1
BAD_STATUS = re.compile(
    r"[45]\d\d|(.*[^a-z])?(fail|error|abort|cancel|time.?out|reject|refus|overload|drop|(shed|full)(?![a-z])).*",
    re.IGNORECASE,
)
"""Of a status: HTTP codes from 400 on, and words; any other (running, finished, length) is no failure."""
NO_ERROR = frozenset({"none", "null", "false", "0", "ok"})
MAX_FAILURE_CHARACTERS = 200
MAX_BATCH = 1_000_000
EPOCH_SIZES = ((10**17, "ns"), (10**14, "us"), (10**11, "ms"))
"""From where on a time since 1970 can only be in this unit (10**17 ns is 1973, 10**17 us the year 5138)."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of one log's columns; `unit_ns` of its times, 0 for text such as 2026-08-05T10:00:00Z."""

    request: str
    stage: str
    event: str
    time: str
    unit_ns: int


def find_columns(row: Mapping[str, Any]) -> Columns | None:
    """The columns of a log by one row of it; None where one of the four is missing."""
    names = {name.strip().lower(): name for name in reversed(list(row))}
    found = [_first(names, wanted) for wanted in (REQUEST, STAGE, EVENT)]
    time = _first(names, [f"{base}_{unit}" for base in TIMES for unit in UNITS_NS] + [*TIMES])
    if time is None or None in found:
        return None
    request, stage, event = (name or "" for name in found)
    return Columns(request, stage, event, time, _unit_ns(time, row[time]))


def _first(names: Mapping[str, str], wanted: Iterable[str]) -> str | None:
    return next((names[name] for name in wanted if name in names), None)


def _unit_ns(name: str, value: Any) -> int:
    """By the end of the name, else by the size of the value; a small one counts as seconds."""
    suffix = name.strip().lower().rpartition("_")[2]
    if "_" in name and suffix in UNITS_NS:
        return UNITS_NS[suffix]
    number = _number(value)
    if number is None:
        return 0
    return UNITS_NS[next((unit for size, unit in EPOCH_SIZES if number >= size), "s")]


def _number(value: Any) -> Decimal | None:
    """The value as an exact number; None for what is none, infinite, or no plain number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and number.adjusted() < len(str(LARGEST_NS)) else None


def at_ns(value: Any, unit_ns: int) -> int | None:
    """A time in nanoseconds; None for what is no time, lies before the clock's zero or beyond any clock."""
    if isinstance(value, int) and not isinstance(value, bool):
        at = value * (unit_ns or SECOND_NS)
    elif unit_ns == 0 and isinstance(value, str):
        return _of_iso(value)
    elif (number := _number(value)) is not None:
        at = int(number * (unit_ns or SECOND_NS))
    else:
        return None
    return at if 0 <= at <= LARGEST_NS else None


def _of_iso(text: str) -> int | None:
    """Text without a zone is taken for UTC; only differences count."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    at = (since.days * 86_400 + since.seconds) * SECOND_NS + since.microseconds * UNITS_NS["us"]
    return at if at >= 0 else None


class Reader:
    """Makes events of rows whose columns are known. A text that repeats is kept once."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._kept: dict[str, str] = {}

    def event(self, row: Mapping[str, Any]) -> StageEvent | str:
        """The event of a row, or what is wrong with the row."""
        columns = self._columns
        named = (columns.request, columns.stage, columns.event)
        request, stage, name = (self._text(row.get(column)) for column in named)
        if not (request and stage and name):
            return "no request, stage or event name"
        at = at_ns(row.get(columns.time), columns.unit_ns)
        if at is None:
            return "no time that can be read"
        nested = row.get("metadata")
        beside = {**row, **nested} if isinstance(nested, dict) else row
        return StageEvent(
            *(request, stage, name, at),
            run=self._any(beside, RUN),
            pid=_whole(beside, PID),
            peer=self._any(beside, PEER),
            chunk=self._any(beside, CHUNK),
            batch=min(_whole(beside, BATCH), MAX_BATCH),
            failure=self._failure(beside),
            terminal=beside.get("terminal") is True,
            **_length(beside),
        )

    def _any(self, row: Mapping[str, Any], names: Iterable[str]) -> str:
        return next((self._text(row[name]) for name in names if name in row), "")

    def _text(self, value: Any) -> str:
        if value is None or isinstance(value, dict | list):
            return ""
        text = str(value).strip()
        return self._kept.setdefault(text, text)

    def _failure(self, row: Mapping[str, Any]) -> str:
        """Every status that is bad and every error, in one text."""
        status, errors = ([self._text(row.get(name)) for name in names] for names in (STATUS, ERROR))
        bad = [text for text in status if BAD_STATUS.fullmatch(text)]
        told = dict.fromkeys([*bad, *(text for text in errors if text and text.lower() not in NO_ERROR)])
        return "; ".join(told)[:MAX_FAILURE_CHARACTERS]


def _length(row: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing where none is told: most events tell none."""
    for name, unit in LENGTHS.items():
        if name in row and (number := _number(row[name])) is not None and number > 0:
            return {"length": float(number), "length_unit": unit}
    return {}


def _whole(row: Mapping[str, Any], names: Iterable[str]) -> int:
    """A count; 0 where there is none."""
    number = next((_number(row[name]) for name in names if name in row), None)
    return int(number) if number is not None and number > 0 else 0
