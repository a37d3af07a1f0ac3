"""Events out of text that needs repair, and out of fields of types that no event should have."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from parsers.chrome_categories import DEVICE_LITERAL, ROLE_OF, Role
from parsers.chrome_event import NO_TEXT, Args, ExactEvent
from parsers.json_repair import repair_json

PHASES = frozenset("XBEMiICsftbnePNODSTpFRvVca(),")
"""All that the trace event format knows."""
_ARGUMENTS = {field.encode_name: field for field in msgspec.structs.fields(Args)}


def repaired_events(text: bytes) -> list[tuple[ExactEvent, bool]]:
    """The events that a text holds after repair, none where it is beyond that, and of each whether it may
    have been device work in another way than it now says.

    Fields of an impossible type are left out, as if the file did not have them.
    """
    try:
        values = json.loads(f"[{repair_json(text).decode()}]", parse_float=Decimal)
    except (ValueError, RecursionError, InvalidOperation):
        return []
    if not all(isinstance(value, dict) for value in values):
        return []
    events = [_event(value) for value in values]
    says_device = DEVICE_LITERAL.search(text) is not None
    return [(e, _in_doubt(v, e, says_device)) for v, e in zip(values, events, strict=True)]


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
