"""Whole load runs against small real servers: how much is sent, when, and what is recorded of it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from layers.collectors.load.plan import Arrivals, EndpointChoice, Extent, Load, Target
from layers.collectors.load.records import Outcome, Phase
from layers.collectors.load.team import Progress, run_load
from parsers.errors import InvalidMeasurement, StoreError, UsageError
from tests.load_builders import measured, overlap, plan_for, stream, whole
from tests.load_servers import CLOSE, HANG, serving

FIRST_S, GAP_S, TOKENS = 0.03, 0.01, 4


def test_a_closed_loop_keeps_its_number_in_flight_and_sends_each_request_once(tmp_path: Path) -> None:
    with serving(lambda _: stream(TOKENS, FIRST_S, GAP_S)) as server:
        run = run_load(plan_for(tmp_path, server.port, Load(5), Extent(requests=23)))
    records = measured(run)
    assert run.whole and not run.losses
    assert [(r.sequence, r.attempt, r.outcome) for r in records] == [(n, 1, Outcome.OK) for n in range(23)]
    assert [r.item for r in records] == [f"i{n % 7}" for n in range(23)]
    assert server.most_in_flight == overlap(records) == server.connections == 5


def test_recorded_times_are_no_shorter_than_the_server_took(tmp_path: Path) -> None:
    with serving(lambda _: stream(TOKENS, FIRST_S, GAP_S)) as server:
        run = run_load(plan_for(tmp_path, server.port, Load(2), Extent(requests=8)))
    for record in run.records:
        assert record.sent_ns and record.first_byte_ns and record.end_ns and record.first_event_ns
        assert record.intended_ns <= record.sent_ns <= record.first_byte_ns <= record.event_ns[0]
        assert record.event_ns[0] - record.sent_ns >= FIRST_S * 1e9
        assert record.event_ns[-1] - record.event_ns[0] >= 0.9 * (TOKENS - 1) * GAP_S * 1e9
        assert record.event_ns[-1] <= record.end_ns
        assert len(record.event_ns) == record.usage.completion_tokens == TOKENS


def test_the_next_request_of_a_slot_was_intended_to_start_at_the_last_byte_before_it(tmp_path: Path) -> None:
    with serving(lambda _: whole()) as server:
        run = run_load(plan_for(tmp_path, server.port, Load(1), Extent(requests=9)))
    records = measured(run)
    ends = [record.end_ns for record in records[:-1]]
    assert [record.intended_ns for record in records[1:]] == ends


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_processes_share_the_requests_and_the_load(tmp_path: Path, processes: int) -> None:
    with serving(lambda _: stream(2, 0.02, 0.01)) as server:
        plan = plan_for(tmp_path, server.port, Load(5), Extent(requests=20), processes=processes)
        run = run_load(plan)
    records = measured(run)
    assert [record.sequence for record in records] == list(range(20))
    assert {record.sequence % processes == record.process for record in records} == {True}
    assert server.connections == 5 and overlap(records) <= 5


def test_warm_up_sends_items_of_its_own_and_goes_over_without_a_pause(tmp_path: Path) -> None:
    with serving(lambda _: stream(2, 0.02, 0.01)) as server:
        run = run_load(plan_for(tmp_path, server.port, Load(3), Extent(requests=9, warmup_requests=6)))
    warm = [record for record in run.records if record.phase is Phase.WARMUP]
    assert len(warm) >= 6 and {record.item[0] for record in warm} == {"w"}
    assert [record.sequence for record in measured(run)] == list(range(9))
    assert min(r.intended_ns for r in measured(run)) in {r.end_ns for r in warm}
    assert server.most_in_flight == 3


def test_a_run_ends_when_its_time_is_up_and_what_is_in_flight_drains(tmp_path: Path) -> None:
    with serving(lambda _: stream(2, 0.05, 0.01)) as server:
        run = run_load(plan_for(tmp_path, server.port, Load(2), Extent(duration_s=0.4)))
    records = measured(run)
    assert run.whole and {record.outcome for record in records} == {Outcome.OK}
    assert all(record.intended_ns - run.begin_ns < 0.45e9 for record in records)
    assert len(records) == len(server.asked) > 4


def test_what_does_not_drain_is_recorded_as_unfinished(tmp_path: Path) -> None:
    extent = Extent(duration_s=0.1, drain_s=0.1)
    with serving(lambda _: [3.0, *whole()]) as server:
        run = run_load(plan_for(tmp_path, server.port, Load(2), extent))
    assert [end.why for end in run.ends] == ["not-drained"]
    assert [record.outcome for record in measured(run)] == [Outcome.UNFINISHED] * 2


def test_an_open_loop_sends_at_each_arrival_whatever_the_server_does(tmp_path: Path) -> None:
    load = Load(rate_per_s=100, arrivals=Arrivals.CONSTANT)
    with serving(lambda _: [0.2, *whole()]) as server:
        run = run_load(plan_for(tmp_path, server.port, load, Extent(requests=30)))
    records = measured(run)
    gaps = {b.intended_ns - a.intended_ns for a, b in itertools.pairwise(records)}
    assert gaps == {10_000_000} and len(records) == 30
    assert server.most_in_flight > 10


def test_arrivals_beyond_what_may_be_in_flight_wait_in_the_client_and_it_shows(tmp_path: Path) -> None:
    load = Load(rate_per_s=200, arrivals=Arrivals.CONSTANT)
    with serving(lambda _: [0.1, *whole()]) as server:
        run = run_load(plan_for(tmp_path, server.port, load, Extent(requests=12), max_in_flight=2))
    records = measured(run)
    assert server.most_in_flight == 2 and len(records) == 12
    lags = [record.send_lag_ns or 0 for record in records]
    assert lags[-1] >= 0.4e9
    assert all((record.latency_ns or 0) >= lag for record, lag in zip(records, lags, strict=True))


AT_ONCE = Load(rate_per_s=1e6, arrivals=Arrivals.CONSTANT)
"""Ten arrivals in 10 us: a client that looks for the first finds them all, and the end of its run."""


def test_arrivals_that_are_due_when_the_run_ends_are_sent(tmp_path: Path) -> None:
    with serving(lambda _: whole()) as server:
        run = run_load(plan_for(tmp_path, server.port, AT_ONCE, Extent(requests=10, drain_s=60.0)))
    assert [record.outcome for record in measured(run)] == [Outcome.OK] * 10


def test_every_arrival_of_the_time_is_a_request_however_late_the_client_looks(tmp_path: Path) -> None:
    load = Load(rate_per_s=1000, arrivals=Arrivals.CONSTANT)
    extent = Extent(duration_s=0.1, drain_s=60.0)
    with serving(lambda _: whole()) as server:
        run = run_load(plan_for(tmp_path, server.port, load, extent))
    records = measured(run)
    assert [record.sequence for record in records] == list(range(len(records)))
    assert 99 <= len(records) <= 101 and {record.outcome for record in records} == {Outcome.OK}


def test_arrivals_that_were_never_sent_are_recorded(tmp_path: Path) -> None:
    extent = Extent(requests=10, drain_s=0.5)
    with serving(lambda _: [HANG]) as server:
        run = run_load(plan_for(tmp_path, server.port, AT_ONCE, extent, max_in_flight=2))
    records = measured(run)
    assert [record.sequence for record in records] == list(range(10))
    assert {record.outcome for record in records} == {Outcome.UNFINISHED}
    assert [record.sent_ns is None for record in records] == [False] * 2 + [True] * 8


def test_sequences_that_are_done_are_left_out(tmp_path: Path) -> None:
    with serving(lambda _: whole()) as server:
        run = run_load(plan_for(tmp_path, server.port, Load(2), Extent(requests=10), done=(0, 3, 4)))
    assert [record.sequence for record in measured(run)] == [1, 2, 5, 6, 7, 8, 9]


def test_a_nonce_makes_every_request_begin_unlike_all_others(tmp_path: Path) -> None:
    extent = Extent(requests=14, warmup_requests=2)
    with serving(lambda _: whole()) as server:
        run_load(plan_for(tmp_path, server.port, Load(2), extent, nonce="n"))
    bodies = [asked.body for asked in server.asked]
    assert len(set(bodies)) == len(bodies) >= 16


def test_header_values_reach_the_server_and_not_the_disk(tmp_path: Path) -> None:
    with serving(lambda _: whole()) as server:
        target = Target("127.0.0.1", "127.0.0.1", server.port, headers={"Authorization": "Bearer hunter2"})
        run_load(plan_for(tmp_path, server.port, Load(1), Extent(requests=1), target=target))
    assert b"Authorization: Bearer hunter2" in server.asked[0].head
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if b"hunter2" in path.read_bytes()]


def test_a_watcher_sees_counts_and_may_stop_the_run(tmp_path: Path) -> None:
    seen: list[Progress] = []

    def watch(progress: Progress) -> bool:
        seen.append(progress)
        return progress.ok < 5

    with serving(lambda _: [0.02, *whole()]) as server:
        run = run_load(plan_for(tmp_path, server.port, Load(2), Extent(duration_s=60)), watch)
    assert [end.why for end in run.ends] == ["stopped"] and not run.whole
    assert seen[-1].ok >= 5 and seen[-1].measuring and 0 <= seen[-1].in_flight <= 2
    assert len(run.records) == len(server.asked)


def test_a_run_needs_a_new_folder_and_items_that_the_endpoint_can_send(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, 1, Load(1), Extent(requests=1), endpoint=EndpointChoice("transcriptions"))
    with pytest.raises(InvalidMeasurement, match="item w0: transcriptions need an audio file"):
        run_load(plan)
    with pytest.raises(StoreError, match="a folder of its own"):
        run_load(plan)
    with pytest.raises(UsageError, match="items of its own"):
        plan_for(tmp_path, 1, Load(1), Extent(requests=1, warmup_s=1), warmup_items=None)


def test_a_stale_connection_is_sent_to_again_and_both_attempts_are_recorded(tmp_path: Path) -> None:
    with serving(lambda asked: [CLOSE] if asked.number == 1 else whole()) as server:
        run = run_load(plan_for(tmp_path, server.port, Load(1), Extent(requests=3)))
    first, *attempts, last = measured(run)
    assert [(r.sequence, r.attempt, r.outcome) for r in attempts] == [
        (1, 1, Outcome.STALE),
        (1, 2, Outcome.OK),
    ]
    assert attempts[0].intended_ns == attempts[1].intended_ns == first.end_ns
    assert attempts[1].connected_ns and last.outcome is Outcome.OK and server.connections == 2
