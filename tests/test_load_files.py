"""Files of a load run: whole exchanges, what is in flight, items; and the schedules of requests."""

from __future__ import annotations

import asyncio
import time
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.load.agenda import Agenda
from layers.collectors.load.arrivals import arrivals, ramp
from layers.collectors.load.exchange import Exchange
from layers.collectors.load.flight import Count, Flight
from layers.collectors.load.item import Item, Message, read_items, write_items
from layers.collectors.load.plan import Arrivals, Extent, Load, share_of
from layers.collectors.load.plan_json import decode_plan, encode_plan
from layers.collectors.load.records import Outcome, Phase
from layers.collectors.load.timer import Timer
from layers.collectors.load.wire_log import Recorded, WireLog, read_wire
from parsers.errors import StoreError, UnreadableInput, UsageError
from parsers.loss import Loss
from tests.load_builders import plan_for


def exchange(sequence: int, parts: list[bytes]) -> Exchange:
    made = Exchange(sequence, 1, Phase.MEASURED, f"i{sequence}", b"POST", 5, 0)
    made.parts, made.part_ns = parts, list(range(len(parts)))
    made.headers = [(b"Content-Type", b"text/plain")]
    made.status, made.ending = 200, Outcome.OK
    return made


def write(path: Path, exchanges: list[Exchange]) -> bytes:
    log = WireLog(path, 3)
    for one in exchanges:
        log.append(one)
    log.close()
    return path.read_bytes()


def read(path: Path) -> tuple[list[Recorded], list[Loss]]:
    losses: list[Loss] = []
    return list(read_wire(path, losses)), losses


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


PARTS = st.lists(st.binary(max_size=20) | st.just(b"PKW1"), max_size=4)


@given(st.lists(PARTS, max_size=4))
def test_exchanges_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[list[bytes]]
) -> None:
    path = tmp_path_factory.mktemp("wire") / "wire"
    write(path, [exchange(n, parts) for n, parts in enumerate(bodies)])
    found, losses = read(path)
    assert not losses
    assert [(r.head.sequence, r.head.item, r.head.process) for r in found] == [
        (n, f"i{n}", 3) for n in range(len(bodies))
    ]
    assert [[piece.data for piece in r.pieces] for r in found] == bodies
    assert all(r.answer.headers == {"content-type": "text/plain"} for r in found)


@given(st.data())
def test_a_cut_or_a_changed_byte_costs_its_own_exchange_alone(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("wire") / "wire"
    whole = write(path, [exchange(n, [b"body %d" % n, b"PKW1"]) for n in range(4)])
    size = len(whole) // 4
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.sampled_from([1, 128]))
    path.write_bytes(changed)
    found, losses = read(path)
    assert [r.head.sequence for r in found] == [n for n in range(4) if n != at // size]
    assert [(loss.offset, loss.lost_bytes) for loss in losses] == [(at // size * size, size)]
    path.write_bytes(whole[:at])
    found, losses = read(path)
    assert [r.head.sequence for r in found] == list(range(at // size))
    assert len(losses) == (at % size > 0)


def test_a_wire_log_is_never_appended_to_by_another_run(path: Path) -> None:
    write(path, [])
    with pytest.raises(StoreError, match="File exists"):
        WireLog(path, 0)


def test_what_is_in_flight_is_seen_by_another_process_that_maps_the_file(path: Path) -> None:
    with Flight(path, 3) as mine, Flight(path) as theirs:
        one, two = exchange(0, []), exchange(41, [])
        two.slot, two.attempt, two.phase = 2, 3, Phase.WARMUP
        mine.began(one)
        mine.began(two)
        mine.count(Count.SENT, 2)
        assert [tuple(left) for left in theirs.in_flight()] == [
            (0, 1, Phase.MEASURED, 5),
            (41, 3, Phase.WARMUP, 5),
        ]
        mine.ended(one)
        assert [left.sequence for left in theirs.in_flight()] == [41] and theirs.counted(Count.SENT) == 2


@pytest.mark.parametrize("content", [b"", b"x" * 7, bytes(128)])
def test_other_files_are_no_flight_files(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(UnreadableInput):
        Flight(path)


def test_items_come_back_and_a_damaged_file_of_them_is_refused(path: Path) -> None:
    items = [Item("a", "é", (Message("user", "hi"),), fields={"n": [1]}), Item("b", max_tokens=3)]
    write_items(path, items)
    assert read_items(path) == items
    path.write_bytes(path.read_bytes().replace(b'"b"', b'"c"'))
    with pytest.raises(UnreadableInput, match="checksum"):
        read_items(path)


def test_a_plan_comes_back_from_its_json(tmp_path: Path) -> None:
    plan = plan_for(tmp_path, 80, Load(rate_per_s=2.5), Extent(duration_s=1.0), done=(3,))
    assert decode_plan(encode_plan(plan)) == plan
    with pytest.raises(UnreadableInput, match="no load plan"):
        decode_plan(b"{}")


@pytest.mark.parametrize("load", [{}, {"concurrency": 0}, {"concurrency": 1, "rate_per_s": 1}])
def test_a_load_is_a_concurrency_or_a_rate(load: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Load(**load)


@given(st.integers(0, 300), st.integers(1, 9))
def test_shares_add_up_and_differ_by_one_at_most(total: int, processes: int) -> None:
    shares = [share_of(total, processes, index) for index in range(processes)]
    assert sum(shares) == total and max(shares) - min(shares) <= 1


@given(st.integers(1, 5), st.floats(0.5, 5000))
def test_constant_arrivals_of_all_processes_are_evenly_spaced(processes: int, rate: float) -> None:
    streams = [arrivals(Arrivals.CONSTANT, rate, 7, 0, processes, index) for index in range(processes)]
    merged = sorted(at for stream in streams for at in islice(stream, 20))[:20]
    assert merged == [7 + round(n * 1e9 / rate) for n in range(20)]


@pytest.mark.parametrize("processes", [1, 4])
def test_poisson_arrivals_have_the_rate_that_was_asked_and_its_spread(processes: int) -> None:
    n, rate = 4000, 200.0
    streams = [arrivals(Arrivals.POISSON, rate, 0, 5, processes, index) for index in range(processes)]
    merged = sorted(at for stream in streams for at in islice(stream, n))[:n]
    gaps = [b - a for a, b in pairwise(merged)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(1e9 / rate, rel=0.05) and spread / mean == pytest.approx(1, rel=0.05)


def test_arrivals_repeat_with_their_seed_and_differ_between_processes() -> None:
    first, again, other = (
        list(islice(arrivals(Arrivals.POISSON, 10, 0, 1, 2, index), 5)) for index in (0, 0, 1)
    )
    assert first == again != other and first == sorted(first)


def test_a_ramp_spreads_the_slots_evenly() -> None:
    assert ramp(4, 2.0, 100) == [100, 500_000_100, 1_000_000_100, 1_500_000_100]
    assert ramp(2, 0.0, 100) == [100, 100]


def test_the_agenda_warms_up_until_enough_have_ended_and_enough_time_has_passed(tmp_path: Path) -> None:
    extent = Extent(requests=3, warmup_requests=1, warmup_s=1.0)
    agenda = Agenda(plan_for(tmp_path, 80, Load(2), extent), 0, 0)
    assert agenda.take(0) == (Phase.WARMUP, 0)
    assert agenda.take(2_000_000_000) == (Phase.WARMUP, 1)
    agenda.ended(Phase.WARMUP)
    assert agenda.take(500_000_000) == (Phase.WARMUP, 2)
    assert [agenda.take(2_000_000_000 + n) for n in range(4)] == [
        *((Phase.MEASURED, n) for n in range(3)),
        None,
    ]
    assert agenda.measured_since_ns == 2_000_000_000


def test_a_timer_fires_when_it_is_due_and_counts_what_was_missed() -> None:
    fired: list[tuple[int, int, int]] = []

    async def wait() -> None:
        loop = asyncio.get_running_loop()
        timer = Timer(loop, lambda due, count: fired.append((due, count, time.monotonic_ns())))
        start = time.monotonic_ns()
        timer.every(start + 20_000_000, 10_000_000)
        time.sleep(0.055)
        await asyncio.sleep(0.03)
        timer.close()
        assert fired[0][0] == start + 20_000_000 and fired[0][1] >= 4
        assert fired[1][0] == start + 20_000_000 + 10_000_000 * fired[0][1]

    asyncio.run(wait())
    assert all(now >= due for due, _, now in fired)
