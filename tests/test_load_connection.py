"""One connection of the load client: what comes in, cut anywhere, is the same answer, stamped as it came."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.load.connection import Connection
from layers.collectors.load.exchange import Exchange
from layers.collectors.load.records import Outcome, Phase

BODY = b"data: one\n\ndata: two\n\n"


class FakeTransport(asyncio.Transport):
    """Keeps what is written, and whether it was cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.aborted = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def abort(self) -> None:
        self.aborted = True


class Bench:
    """A connection with a request under way."""

    def __init__(self) -> None:
        self.ended: list[Exchange] = []
        self.connection = Connection(lambda _, exchange: self.ended.append(exchange))
        self.transport = FakeTransport()
        self.connection.connection_made(self.transport)

    def ask(self) -> Exchange:
        exchange = Exchange(0, 1, Phase.MEASURED, "i", b"POST", 1, 0)
        self.connection.send(exchange)
        return exchange

    def receive(self, data: bytes, cuts: list[int]) -> None:
        places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
        for start, end in itertools.pairwise(places):
            if start < end:
                self.connection.data_received(data[start:end])


def with_length(body: bytes, extra: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\n{extra}Content-Length: {len(body)}\r\n\r\n".encode() + body


def in_chunks(sizes: list[int], trailer: bytes = b"") -> bytes:
    """BODY as chunks of these sizes and a last one with the rest, by hand."""
    sent, at = b"HTTP/1.1 200 OK\r\ntransfer-ENCODING: chunked\r\n\r\n", 0
    for size in [*sizes, len(BODY)]:
        part = BODY[at : at + size]
        at += size
        if part:
            sent += b"%x;note=1\r\n%s\r\n" % (len(part), part)
    return sent + b"0\r\n" + trailer + b"\r\n"


CUTS = st.lists(st.integers(0, 10_000), max_size=12)


@given(CUTS)
def test_an_answer_with_a_length_may_be_cut_anywhere(cuts: list[int]) -> None:
    bench = Bench()
    exchange = bench.ask()
    bench.receive(with_length(BODY), cuts)
    assert bench.ended == [exchange]
    assert (exchange.ending, exchange.status, b"".join(exchange.parts)) == (Outcome.OK, 200, BODY)


@given(st.lists(st.integers(1, 9), max_size=8), CUTS, st.sampled_from([b"", b"X-Late: 1\r\n"]))
def test_an_answer_in_chunks_may_be_cut_anywhere(sizes: list[int], cuts: list[int], trailer: bytes) -> None:
    bench = Bench()
    exchange = bench.ask()
    bench.receive(in_chunks(sizes, trailer), cuts)
    assert bench.ended == [exchange] and bench.connection.usable
    assert (exchange.ending, b"".join(exchange.parts)) == (Outcome.OK, BODY)


@given(CUTS)
def test_every_piece_bears_the_time_of_the_read_that_brought_it(cuts: list[int]) -> None:
    bench = Bench()
    exchange = bench.ask()
    bench.receive(in_chunks([4, 4]), cuts)
    assert len(exchange.part_ns) == len(exchange.parts)
    assert exchange.part_ns == sorted(exchange.part_ns)
    assert exchange.sent_ns <= exchange.first_byte_ns <= exchange.part_ns[0]
    assert exchange.part_ns[-1] <= exchange.end_ns == exchange.last_byte_ns


@given(CUTS)
def test_every_cut_of_an_answer_before_its_end_is_truncated(cuts: list[int]) -> None:
    whole = in_chunks([5])
    for end in range(1, len(whole)):
        bench = Bench()
        exchange = bench.ask()
        bench.receive(whole[:end], cuts)
        bench.connection.connection_lost(None)
        assert bench.ended == [exchange]
        assert exchange.ending is Outcome.TRUNCATED, end


def test_an_answer_without_framing_ends_with_its_connection() -> None:
    bench = Bench()
    exchange = bench.ask()
    bench.receive(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nall of", [])
    bench.receive(b" it", [])
    assert not bench.ended
    bench.connection.connection_lost(None)
    assert (exchange.ending, b"".join(exchange.parts)) == (Outcome.OK, b"all of it")
    assert exchange.end_ns == exchange.last_byte_ns
    assert not bench.connection.usable


def test_an_answer_without_framing_that_ends_in_an_error_is_truncated() -> None:
    bench = Bench()
    exchange = bench.ask()
    bench.receive(b"HTTP/1.0 200 OK\r\n\r\nall of", [])
    bench.connection.connection_lost(ConnectionResetError("reset by peer"))
    assert (exchange.ending, exchange.error) == (Outcome.TRUNCATED, "reset by peer")


def test_interim_answers_are_passed_over() -> None:
    bench = Bench()
    exchange = bench.ask()
    bench.receive(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", [])
    assert not bench.ended
    bench.receive(with_length(b"yes"), [])
    assert (exchange.status, exchange.parts) == (200, [b"yes"])
    assert [name for name, _ in exchange.headers] == [b"Content-Length"]


def test_no_answer_is_stale_on_a_used_connection_and_closed_on_a_new_one() -> None:
    bench = Bench()
    first = bench.ask()
    bench.receive(with_length(b"yes"), [])
    second = bench.ask()
    bench.connection.connection_lost(None)
    fresh = Bench()
    third = fresh.ask()
    fresh.connection.connection_lost(ConnectionResetError())
    assert [e.ending for e in (first, second, third)] == [Outcome.OK, Outcome.STALE, Outcome.CLOSED]


@pytest.mark.parametrize(
    "answer",
    [
        with_length(b"yes", "Connection: close\r\n"),
        b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nyes",
        with_length(b"yes") + b"HTTP/1.1 200 OK\r\n",
        with_length(b"yes") + b"garbage",
    ],
)
def test_a_connection_that_cannot_go_on_is_dropped_and_the_answer_kept(answer: bytes) -> None:
    bench = Bench()
    exchange = bench.ask()
    bench.receive(answer, [])
    assert (exchange.ending, exchange.parts) == (Outcome.OK, [b"yes"])
    assert not bench.connection.usable and bench.transport.aborted


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n"])
def test_what_is_no_http_is_a_protocol_error(answer: bytes) -> None:
    bench = Bench()
    exchange = bench.ask()
    bench.receive(answer, [])
    assert exchange.ending is Outcome.PROTOCOL and "not an HTTP answer" in exchange.error


def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    bench = Bench()
    bench.receive(with_length(b"408"), [])
    assert bench.transport.aborted and not bench.connection.usable and not bench.ended


def test_what_is_given_up_ends_once() -> None:
    bench = Bench()
    exchange = bench.ask()
    bench.connection.give_up(Outcome.TIMEOUT_TOTAL, "too long")
    bench.connection.connection_lost(None)
    assert bench.ended == [exchange] and exchange.ending is Outcome.TIMEOUT_TOTAL


@given(st.binary(max_size=200), CUTS)
def test_any_bytes_at_all_give_one_end(data: bytes, cuts: list[int]) -> None:
    bench = Bench()
    exchange = bench.ask()
    bench.receive(data, cuts)
    bench.connection.connection_lost(None)
    assert bench.ended == [exchange]
