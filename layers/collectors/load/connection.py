"""One HTTP/1.1 connection, one request at a time: stamps what arrives and finds where the answer ends.

The stamp is taken first thing in `data_received`. The framing (httptools) is done there too, since the end of
an answer frees its slot; bodies are kept as they came and read after the run.

What ends an answer: its framing; or, where it has none, the end of the connection, which then is no error
(HTTP/1.0 servers; RFC 9112 6.3). Interim answers (1xx) are passed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic_ns
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from layers.collectors.load.exchange import Exchange
from layers.collectors.load.records import Outcome

FIRST_FINAL_STATUS = 200
"""Statuses below are interim: the answer is still to come."""

Ended = Callable[["Connection", Exchange], None]


class Connection(asyncio.Protocol):
    """Calls `ended` once for each exchange that it was given, whatever happens.

    `usable` says whether another exchange may follow.
    """

    def __init__(self, ended: Ended) -> None:
        self._ended = ended
        self._transport: asyncio.Transport | None = None
        self._parser = HttpResponseParser(self)
        self.exchange: Exchange | None = None
        self._now_ns = 0
        self._framed = self._in_body = self._whole = False
        self.used = False
        self.usable = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.usable = True

    def send(self, exchange: Exchange) -> None:
        """Send it and become responsible for its end."""
        assert self._transport is not None and self.exchange is None
        self.exchange = exchange
        exchange.reused, self.used = self.used, True
        self._framed = self._in_body = self._whole = False
        exchange.sent_ns = monotonic_ns()
        self._transport.write(exchange.request)

    def data_received(self, data: bytes) -> None:
        self._now_ns = now_ns = monotonic_ns()
        exchange = self.exchange
        if exchange is None:  # nobody asked for this
            self._drop()
            return
        if not exchange.reads:
            exchange.first_byte_ns = now_ns
        exchange.reads += 1
        exchange.last_byte_ns = now_ns
        exchange.response_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self.usable = False
            if not self._whole:
                self.give_up(Outcome.PROTOCOL, f"not an HTTP answer: {error}")
                return
        if self._whole:
            self._finish(exchange, Outcome.OK, "")

    def eof_received(self) -> None:
        """None: the transport closes itself, and `connection_lost` follows."""

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        exchange = self.exchange
        if exchange is None:
            return
        if self._in_body and not self._framed and error is None:
            self._finish(exchange, Outcome.OK, "")
            return
        self._finish(exchange, _cut(exchange), str(error) if error else "the server closed the connection")

    def give_up(self, ending: Outcome, error: str) -> None:
        """End the exchange in flight, and the connection with it; nothing where none is."""
        self._drop()
        if self.exchange is not None:
            self._finish(self.exchange, ending, error)

    def close(self) -> None:
        """Close it, idle or not."""
        self.give_up(Outcome.UNFINISHED, "the run ended")

    # What httptools calls, inside feed_data.

    def on_message_begin(self) -> None:
        self.usable = self.usable and not self._whole  # another answer, that nobody asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._whole:
            return
        assert self.exchange is not None
        self.exchange.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._whole:
            return
        assert self.exchange is not None
        status = self._parser.get_status_code()
        if status < FIRST_FINAL_STATUS:
            self.exchange.headers.clear()
            return
        self.exchange.status = status
        self._in_body = True
        names = {name.lower() for name, _ in self.exchange.headers}
        self._framed = b"content-length" in names or b"transfer-encoding" in names

    def on_body(self, body: bytes) -> None:
        if self._whole:
            return
        exchange = self.exchange
        assert exchange is not None
        exchange.parts.append(body)
        exchange.part_ns.append(self._now_ns)

    def on_message_complete(self) -> None:
        if self._in_body and not self._whole:
            self._whole = True
            self.usable = self.usable and self._parser.should_keep_alive()

    def _finish(self, exchange: Exchange, ending: Outcome, error: str) -> None:
        self.exchange = None
        exchange.end_ns = exchange.last_byte_ns if ending is Outcome.OK else monotonic_ns()
        exchange.ending, exchange.error = ending, error
        if not self.usable:
            self._drop()
        self._ended(self, exchange)

    def _drop(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()


def _cut(exchange: Exchange) -> Outcome:
    """What it is when the connection ends before the answer does."""
    if exchange.reads:
        return Outcome.TRUNCATED
    return Outcome.STALE if exchange.reused else Outcome.CLOSED
