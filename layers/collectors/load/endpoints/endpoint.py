"""The interface of an endpoint: build the bytes of a request, read an answer as its pieces came.

Building happens in the load process, ahead of sending where it can; it must be quick and touch no file that
it has not read before. Reading happens after the run, over pieces that bear their arrival times, so that no
parsing delays the stamp of another stream. Both are pure: no clock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from layers.collectors.load.item import Item
from layers.collectors.load.records import NO_USAGE, Audio, Outcome, Usage


class Piece(NamedTuple):
    """A part of an answer's body, without chunked framing, and when the read that brought it came."""

    stamp_ns: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Body:
    """What to send: the body and its content type; `accept` where the endpoint wants one."""

    data: bytes
    content_type: str = "application/json"
    accept: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it came: status, headers by lower-case name, and the pieces of its body."""

    status: int
    headers: dict[str, str]
    pieces: tuple[Piece, ...]

    @property
    def body(self) -> bytes:
        return b"".join(piece.data for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Sound:
    """The samples of an answer, without a header; `dtype` as numpy names it."""

    data: bytes = field(repr=False)
    dtype: str
    channels: int
    rate_hz: int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer with status 2xx says. `outcome` is OK, EMPTY, TRUNCATED (the stream lacks its end),
    SERVER_ERROR (it holds an error) or PROTOCOL (it is not what this endpoint answers), with `error` as the
    reason. Fields as in `RequestRecord`, and `sound`, which a record knows by its digest alone,
    and `token_ids` of the output, where the server gives them."""

    outcome: Outcome
    error: str = ""
    event_ns: tuple[int, ...] = ()
    event_tokens: tuple[int, ...] = ()
    usage: Usage = NO_USAGE
    finish_reason: str = ""
    text: str = ""
    audio: Audio | None = None
    server_id: str = ""
    sound: Sound | None = None
    token_ids: tuple[int, ...] = ()


class Endpoint(Protocol):
    """One kind of request. `unit` is what its first event is called: "token" or "audio"."""

    @property
    def path(self) -> str:
        """The path that it is sent to, with a leading slash."""

    @property
    def unit(self) -> str: ...

    def check(self, items: Iterable[Item]) -> None:
        """UsageError, naming the item, where one lacks what this endpoint sends."""

    def build(self, item: Item, nonce: str) -> Body:
        """The body for one item. A `nonce` that is not empty makes it unlike every other request."""

    def read(self, answer: Answer) -> Reading:
        """What an answer says, whatever its bytes are; never raises for them."""


def ids_of(value: object) -> tuple[int, ...]:
    """Ids of tokens as a server gives them; none where it is no list of whole numbers."""
    whole = isinstance(value, list) and all(type(one) is int for one in value)
    return tuple(value) if whole else ()  # type: ignore[arg-type]
