"""The responder behind the benchmark of load clients: what it streams, and what it knows of itself."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from layers.collectors.load.responder import SENT, responding

GAP_MS = 5


@pytest.fixture
def connection() -> Iterator[HTTPConnection]:
    with responding() as port:
        open_one = HTTPConnection("127.0.0.1", port, timeout=60)
        yield open_one
        open_one.close()


def streamed(connection: HTTPConnection, path: str) -> bytes:
    connection.request("POST", path, body="{}")
    return connection.getresponse().read()


def known(connection: HTTPConnection) -> dict[str, object]:
    connection.request("GET", "/v1/models")
    answer: dict[str, object] = json.loads(connection.getresponse().read())
    return answer


@pytest.mark.parametrize("below", ["", "/v1/chat/completions"])
def test_events_are_sent_a_gap_apart_whatever_path_a_tool_adds(
    connection: HTTPConnection, below: str
) -> None:
    events = streamed(connection, f"/stream/3/{GAP_MS}{below}")
    assert events.endswith(b"data: [DONE]\n\n")
    assert len(SENT.findall(events)) == 3


def test_a_tool_finds_one_model(connection: HTTPConnection) -> None:
    assert known(connection) == {
        "object": "list",
        "data": [{"id": "benchmark-model", "object": "model"}],
        "first_ns": [],
    }


def test_the_responder_knows_how_long_the_first_event_of_each_paced_answer_took(
    connection: HTTPConnection,
) -> None:
    for path in (f"/stream/2/{GAP_MS}", "/stream/2/0", f"/stream/2/{GAP_MS}"):
        streamed(connection, path)
    first_ns = known(connection)["first_ns"]
    assert isinstance(first_ns, list) and len(first_ns) == 2
    assert min(first_ns) >= GAP_MS * 1e6


def test_an_answer_that_was_left_does_not_hurry_the_next(connection: HTTPConnection) -> None:
    """The next connection most likely takes the place of the one that was closed."""
    connection.request("POST", f"/stream/1000/{GAP_MS}", body="{}")
    connection.getresponse().read(1)
    connection.close()
    streamed(connection, f"/stream/1/{20 * GAP_MS}")
    first_ns = known(connection)["first_ns"]
    assert isinstance(first_ns, list) and first_ns[-1] >= 20 * GAP_MS * 1e6
