"""Where two outputs of one item first part. Pure, over raw bytes with type and shape.

What is cheap to get wrong comes first: whether both were answered, why they ended, how long they are. Then
bytes: NaN is what its bytes are, and -0.0 is not 0.0. A comparison that walked two outputs side by side to
the end of the shorter one would pass an answer that was cut off.
"""

from __future__ import annotations

from math import prod

import numpy as np

from layers.layer5_regression.model import Difference, What, is_answered
from parsers.output_model import TEXT_DTYPE, Kind, Output, Payload

BEFORE, BEHIND = 16, 24
"""Characters of context shown before and behind the place where texts part."""
VALUES_SHOWN = 6
MS_PER_S = 1000.0
FINEST = (Kind.TOKENS, Kind.CODES)
UNITS = {
    Kind.TEXT: "character",
    Kind.TOKENS: "token",
    Kind.CODES: "row",
    Kind.PCM: "frame",
    Kind.ARRAY: "element",
}


def compare(a: Output, b: Output) -> Difference | None:
    """The first difference of two outputs, None where they are the same bytes."""
    if is_answered(a) != is_answered(b):
        return Difference(What.ENDED, None, _ended(a), _ended(b))
    if a.finish_reason != b.finish_reason:
        return _with_place(Difference(What.FINISH, None, a.finish_reason, b.finish_reason), a, b)
    if a.tokens is not None and b.tokens is not None and a.tokens != b.tokens:
        told = Difference(What.TOKENS, None, f"{a.tokens:,}", f"{b.tokens:,}", lengths=(a.tokens, b.tokens))
        return _with_place(told, a, b)
    return _of_payloads(a, b)


def _ended(output: Output) -> str:
    return output.error or ("answered" if is_answered(output) else "an empty answer")


def _with_place(told: Difference, a: Output, b: Output) -> Difference:
    """The same with the place where the contents part, where they do."""
    where = _of_payloads(a, b)
    if where is None or where.at is None:
        return told
    lengths = told.lengths or where.lengths
    return Difference(told.what, where.kind, told.a, told.b, where.at, where.unit, where.at_ms, lengths)


def _of_payloads(a: Output, b: Output) -> Difference | None:
    """By the finest view first: ids say more than the text that they make."""
    if _kinds(a) != _kinds(b):
        return Difference(What.KIND, None, _kinds(a) or "nothing", _kinds(b) or "nothing")
    for one in sorted(a.payloads, key=lambda payload: payload.kind not in FINEST):
        other = b.payload(one.kind)
        if other is not None and (found := compare_payloads(one, other)) is not None:
            return found
    return None


def _kinds(output: Output) -> str:
    """Ids beside a text are another view of it, which a server may give or not."""
    kinds = {payload.kind for payload in output.payloads}
    return ", ".join(sorted(kinds - {Kind.TOKENS} if Kind.TEXT in kinds else kinds))


def compare_payloads(a: Payload, b: Payload) -> Difference | None:
    """The first difference of two payloads of one kind."""
    if a.dtype != b.dtype:
        return Difference(What.DTYPE, a.kind, a.dtype, b.dtype)
    if a.rate_hz != b.rate_hz:
        return Difference(What.RATE, a.kind, f"{a.rate_hz} Hz", f"{b.rate_hz} Hz")
    if a.shape[1:] != b.shape[1:]:
        return Difference(What.SHAPE, a.kind, f"{a.shape}", f"{b.shape}")
    if a.data == b.data and a.shape == b.shape:
        return None
    what = What.CONTENT if len(a.data) == len(b.data) else What.LENGTH
    return _located(what, a, b)


def _located(what: What, a: Payload, b: Payload) -> Difference:
    at = _element(a, first_differing_byte(a.data, b.data))
    rate_hz = a.rate_hz if a.kind is Kind.PCM else None
    return Difference(
        what,
        a.kind,
        _shown(a, at),
        _shown(b, at),
        at=at,
        unit=UNITS[a.kind],
        at_ms=at * MS_PER_S / rate_hz if rate_hz else None,
        lengths=(length_of(a), length_of(b)),
    )


def first_differing_byte(a: bytes, b: bytes) -> int:
    """The place of the first byte that differs; the length of the shorter where it is the other's
    beginning."""
    n = min(len(a), len(b))
    unequal = np.frombuffer(a, np.uint8, n) != np.frombuffer(b, np.uint8, n)
    place = int(unequal.argmax()) if n else 0
    return place if n and unequal[place] else n


def length_of(payload: Payload) -> int:
    """In its unit."""
    if payload.kind is Kind.TEXT:
        return len(_decoded(payload.data))
    return payload.shape[0] if payload.shape else 1


def _element(payload: Payload, byte: int) -> int:
    """Which element, row or frame the byte belongs to; of text, which character."""
    if payload.kind is Kind.TEXT:
        return len(payload.data[:byte].decode("utf-8", "ignore"))
    return byte // _row_bytes(payload)


def _row_bytes(payload: Payload) -> int:
    size = int(payload.dtype[-1]) if payload.kind is Kind.PCM else np.dtype(payload.dtype).itemsize
    return max(1, size if payload.kind is Kind.ARRAY else size * prod(payload.shape[1:]))


def _shown(payload: Payload, at: int) -> str:
    """What stands around that place."""
    if payload.dtype == TEXT_DTYPE:
        text = _decoded(payload.data)
        before, behind = text[max(0, at - BEFORE) : at], text[at : at + BEHIND]
        return f"…{before}|{behind}" if at > BEFORE else f"{before}|{behind}"
    row = _row_bytes(payload)
    data = payload.data[at * row : (at + VALUES_SHOWN) * row]
    if not data:
        return "the end"
    try:
        values = np.frombuffer(data[: len(data) // row * row], payload.dtype)
    except (TypeError, ValueError):  # 24 bits, or half a frame at the end
        return data[: VALUES_SHOWN * row].hex(" ")
    shown = values[: VALUES_SHOWN * max(1, prod(payload.shape[1:]))]
    return " ".join(map(_value_text, shown.tolist()))


def _value_text(value: object) -> str:
    """A number with the digits that tell two apart that are near; anything else as it is."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
