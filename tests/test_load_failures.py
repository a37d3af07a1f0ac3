"""Servers that refuse, break, hang, cut off or go away: every request is recorded as what became of it."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from layers.collectors.load.plan import AfterShed, Extent, Load, ShedRule, Timeouts
from layers.collectors.load.records import Outcome, RequestRecord, last_attempts
from layers.collectors.load.team import LoadRun, run_load
from tests.load_builders import DONE, GOOD, ROLE, STOP, TOKEN, measured, plan_for, usage, whole
from tests.load_servers import CLOSE, HANG, LAST_CHUNK, Script, answer, chunk, chunked_head, serving

LONG = Timeouts(connect_s=60, first_byte_s=60, idle_s=60, total_s=60)
SHORT = {
    Outcome.TIMEOUT_FIRST: replace(LONG, first_byte_s=0.15),
    Outcome.TIMEOUT_IDLE: replace(LONG, idle_s=0.15),
    Outcome.TIMEOUT_TOTAL: replace(LONG, total_s=0.5),
}
"""Only what must be too slow has little time: on a busy machine everything may take longer."""


def ask_once(tmp_path: Path, script: Script, timeouts: Timeouts = LONG) -> RequestRecord:
    with serving(lambda _: script) as server:
        run = run_load(plan_for(tmp_path, server.port, Load(1), Extent(requests=1), timeouts=timeouts))
    (record,) = measured(run)
    return record


DRIP: list[bytes | float] = [chunk(b":"), 0.1]
HALF = chunk(TOKEN) + chunk(TOKEN[:20])

CASES: dict[str, tuple[Script, Outcome, str]] = {
    "429": ([answer(b"slow down", status="429 Too Many")], Outcome.SHED, "429: slow down"),
    "503": ([answer(b"", status="503 Unavailable")], Outcome.SHED, "503"),
    "500 of a full queue": (
        [answer(b"request backlog is 33 of 32", status="500 Error")],
        Outcome.SHED,
        "backlog is 33",
    ),
    "500 of a fault": ([answer(b"KeyError: 'x'", status="500 Error")], Outcome.HTTP_ERROR, "500: KeyError"),
    "redirect": ([answer(b"", status="302 Found")], Outcome.HTTP_ERROR, "302"),
    "hangs": ([HANG], Outcome.TIMEOUT_FIRST, "not one byte in 0.15 s"),
    "hangs after the head": ([chunked_head(), HANG], Outcome.TIMEOUT_IDLE, "nothing more came"),
    "hangs within the stream": ([chunked_head(), chunk(TOKEN), HANG], Outcome.TIMEOUT_IDLE, "nothing more"),
    "a byte now and then": (
        [chunked_head(), *(DRIP * 20), HANG],
        Outcome.TIMEOUT_TOTAL,
        "not whole after 0.5 s",
    ),
    "closes at once": ([CLOSE], Outcome.CLOSED, "closed"),
    "closes after the head": ([chunked_head(), CLOSE], Outcome.TRUNCATED, "closed"),
    "half a chunk": ([chunked_head(), chunk(TOKEN)[:-9], CLOSE], Outcome.TRUNCATED, "closed"),
    "half a body": ([answer(GOOD)[:-9], CLOSE], Outcome.TRUNCATED, "closed"),
    "half an event": ([chunked_head(), HALF, LAST_CHUNK], Outcome.TRUNCATED, "within an event"),
    "a stream without an end": (
        [chunked_head(), chunk(TOKEN), LAST_CHUNK],
        Outcome.TRUNCATED,
        r"without \[DONE\]",
    ),
    "a stream without tokens": (
        [chunked_head(), chunk(ROLE + STOP + usage(0) + DONE), LAST_CHUNK],
        Outcome.EMPTY,
        "without one token",
    ),
    "no body": ([answer(b"")], Outcome.EMPTY, "without a body"),
    "an error in the stream": (
        [chunked_head(), chunk(TOKEN + b'data: {"error":{"message":"CUDA out of memory"}}\n\n'), LAST_CHUNK],
        Outcome.SERVER_ERROR,
        "CUDA out of memory",
    ),
    "a refusal in the stream": (
        [chunked_head(), chunk(b'data: {"error":{"message":"queue is full"}}\n\n'), LAST_CHUNK],
        Outcome.SHED,
        "queue is full",
    ),
    "no JSON": ([answer(b"<html>")], Outcome.PROTOCOL, "not what this endpoint answers"),
    "no HTTP": ([b"220 smtp ready\r\n"], Outcome.PROTOCOL, "not an HTTP answer"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_server_does_is_recorded_as_what_it_is(tmp_path: Path, case: str) -> None:
    script, outcome, error = CASES[case]
    record = ask_once(tmp_path, script, SHORT.get(outcome, LONG))
    assert record.outcome is outcome
    assert re.search(error, record.error), record.error
    assert record.end_ns is not None and record.latency_ns is None


def test_what_came_before_a_stream_broke_is_kept(tmp_path: Path) -> None:
    record = ask_once(tmp_path, [chunked_head(), chunk(TOKEN), chunk(TOKEN), CLOSE])
    assert record.outcome is Outcome.TRUNCATED
    assert (record.text, len(record.event_ns)) == ("hi hi ", 2)


def test_a_shed_is_dropped_and_the_next_request_goes_out(tmp_path: Path) -> None:
    refusal = [answer(b"", status="503 Unavailable")]
    with serving(lambda asked: refusal if asked.number % 2 else whole()) as server:
        run = run_load(plan_for(tmp_path, server.port, Load(1), Extent(requests=6)))
    assert [(r.sequence, r.attempt, r.outcome) for r in measured(run)] == [
        (n, 1, Outcome.SHED if n % 2 else Outcome.OK) for n in range(6)
    ]


def test_a_shed_may_be_retried_and_its_latency_counts_from_the_first_start(tmp_path: Path) -> None:
    rule = ShedRule(AfterShed.RETRY, backoff_s=0.05, max_attempts=3)
    with serving(lambda asked: whole() if asked.number >= 2 else [answer(b"", status="429 No")]) as server:
        plan = plan_for(tmp_path, server.port, Load(1), Extent(requests=2), shed=rule)
        records = measured(run_load(plan))
    shed, shed_again, served, _ = records
    assert [r.outcome for r in records] == [Outcome.SHED, Outcome.SHED, Outcome.OK, Outcome.OK]
    assert [r.attempt for r in records] == [1, 2, 3, 1]
    assert shed.intended_ns == shed_again.intended_ns == served.intended_ns
    assert (served.latency_ns or 0) >= 0.15e9
    assert [r.outcome for r in last_attempts(records)] == [Outcome.OK, Outcome.OK]


def test_a_request_is_shed_for_good_after_its_last_attempt(tmp_path: Path) -> None:
    rule = ShedRule(AfterShed.RETRY, backoff_s=0.01, max_attempts=3)
    with serving(lambda _: [answer(b"", status="429 No")]) as server:
        plan = plan_for(tmp_path, server.port, Load(2), Extent(requests=2), shed=rule)
        records = measured(run_load(plan))
    assert [(r.sequence, r.attempt) for r in records] == [(s, a) for s in (0, 1) for a in (1, 2, 3)]


def nobody() -> int:
    """A port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_a_server_that_is_not_there_ends_the_run(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, nobody(), Load(2), Extent(duration_s=60), server_gone_s=0.4)
    run = run_load(plan)
    assert [end.why for end in run.ends] == ["server-gone"]
    assert "Connection refused" in run.connect_problem and run.connections == 0
    assert {record.outcome for record in run.records} == {Outcome.REFUSED} and len(run.records) >= 2


def test_a_server_that_dies_during_the_run_ends_it_and_nothing_is_lost(tmp_path: Path) -> None:
    def die(asked_so_far: int, run: LoadRun) -> None:
        outcomes = [record.outcome for record in run.records]
        assert [end.why for end in run.ends] == ["server-gone"]
        assert outcomes.count(Outcome.OK) >= 5 and outcomes.count(Outcome.REFUSED) >= 2
        cut_off = {Outcome.TRUNCATED, Outcome.CLOSED, Outcome.STALE}
        assert set(outcomes) <= {Outcome.OK, Outcome.REFUSED, *cut_off}
        answered = [record for record in run.records if record.outcome is not Outcome.REFUSED]
        assert asked_so_far <= len(answered)

    leaving = serving(lambda _: [0.02, *whole()])
    server = leaving.__enter__()
    left = False

    def watch(progress: object) -> bool:
        nonlocal left
        if not left and len(server.asked) >= 10:
            leaving.__exit__(None, None, None)
            left = True
        return True

    plan = plan_for(tmp_path, server.port, Load(2), Extent(duration_s=60), server_gone_s=0.4)
    run = run_load(plan, watch)
    die(len(server.asked), run)


def test_a_server_that_only_fails_ends_the_run(tmp_path: Path) -> None:
    with serving(lambda _: [answer(b"KeyError", status="500 Error")]) as server:
        run = run_load(plan_for(tmp_path, server.port, Load(2), Extent(duration_s=60)))
    (end,) = run.ends
    assert end.why == "only-failures" and "200 requests failed in a row" in end.error
    assert end.error.endswith("http-error 500 KeyError")
    outcomes = [record.outcome for record in run.records]
    assert 200 <= outcomes.count(Outcome.HTTP_ERROR) <= 202
    assert set(outcomes) <= {Outcome.HTTP_ERROR, Outcome.UNFINISHED}
