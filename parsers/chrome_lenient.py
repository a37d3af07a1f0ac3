"""Events out of text that needs repair, and out of fields of types that no event should have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from parsers.chrome_categories import DEVICE_LITERAL, ROLE_OF, Role
from parsers.chrome_event import NO_TEXT, Args, ExactEvent
from parsers.chrome_lacking import PHASES
from parsers.chrome_lost import has_all, is_overwritten
from parsers.json_repair import repair_json

_ARGUMENTS = {field.encode_name: field for field in msgspec.structs.fields(Args)}


@dataclass(frozen=True, slots=True)
class RepairedText:
    """The events that a text holds after repair, how many of its bytes say nothing any more, and whether one
    of the events may have been device work in another way than it now says.
    """

    events: list[ExactEvent]
    lost_bytes: int
    in_doubt: bool


class _Object(dict[str, Any]):
    """A JSON object that knows all of its keys, those that it has twice too."""

    __slots__ = ("keys_read",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.keys_read = [key for key, _ in pairs]


def repaired_events(text: bytes) -> RepairedText | None:
    """What a text holds after repair; None where it is beyond that, or pieces of different events.

    Fields of an impossible type are left out, as if the file did not have them.
    """
    if is_overwritten(text):
        return None
    repair = repair_json(text)
    try:
        values = json.loads(f"[{repair.text.decode()}]", parse_float=Decimal, object_pairs_hook=_Object)
    except (ValueError, RecursionError, InvalidOperation):
        return None
    if not values or not all(isinstance(v, _Object) and _is_one_event(v) for v in values):
        return None
    events = [_event(value) for value in values]
    says_device = DEVICE_LITERAL.search(text) is not None
    in_doubt = any(_in_doubt(v, e, says_device) for v, e in zip(values, events, strict=True))
    return RepairedText(events, repair.lost_bytes, in_doubt or repair.broken_words)


def _is_one_event(value: _Object) -> bool:
    phase = _text(value.get("ph"))
    return phase not in PHASES or has_all(phase, value.keys_read)


def _in_doubt(value: dict[str, Any], event: ExactEvent, says_device: bool) -> bool:
    """Whether what a busy ratio reads of an event was itself broken: kind, phase or device."""
    role = ROLE_OF.get(event.cat or "")
    if role not in (Role.DEVICE, Role.UNNAMED, None):
        return False
    if role is Role.DEVICE:
        args = value.get("args", {})
        device = args.get("device", 0) if isinstance(args, dict) else None
        return event.ph not in ("X", "B", "E") or _scalar(device) is None
    return event.ph not in PHASES or "cat" in value or says_device


def _event(value: dict[str, Any]) -> ExactEvent:
    args = value.get("args")
    return ExactEvent(
        ph=_text(value.get("ph")),
        cat=_text(value.get("cat")),
        name=_scalar(value.get("name")),
        pid=_scalar(value.get("pid")),
        tid=_scalar(value.get("tid")),
        ts=value.get("ts"),
        dur=value.get("dur"),
        args=_args(args) if isinstance(args, dict) else None,
    )


def _args(value: dict[str, Any]) -> Args:
    args = Args()
    for key in value.keys() & _ARGUMENTS.keys():
        field = _ARGUMENTS[key]
        read = _raw if field.default is NO_TEXT else _scalar
        setattr(args, field.name, read(value[key]))
    return args


def _text(value: Any) -> str | None:
    """Text without what UTF-8 cannot hold (half a surrogate pair)."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _scalar(value: Any) -> int | float | str | None:
    if isinstance(value, Decimal):
        return float(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else _text(value)


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value, default=str).encode())
