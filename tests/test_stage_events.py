"""Logs of stage events: every form reads to the same events; what cannot be read is lost and told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.errors import UnreadableInput
from parsers.loss import LossKind
from parsers.stage_columns import UNITS_NS, at_ns, find_columns
from parsers.stage_events import MAX_EVENTS, read_stage_events
from parsers.stage_model import StageEvent, StageForm
from tests.stage_builders import EPOCH_NS, asr_request, line, plain_csv, written


def told(path: Path, text: str | bytes) -> tuple[StageEvent, ...]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_stage_events(str(path)).events


def test_an_event_of_sglang_omni_is_read_with_its_metadata(tmp_path: Path) -> None:
    made = line("q", "enc", "encoder_end", 2.5, run="c8", pid=31, batch_size=4, modality="audio")
    log = read_stage_events(written(tmp_path / "e.jsonl", [made]))
    assert log.form is StageForm.OMNI and log.losses == ()
    assert log.events == (
        StageEvent("q", "enc", "encoder_end", EPOCH_NS + 2_500_000, run="c8", pid=31, batch=4),
    )


@pytest.mark.parametrize("key", ["to_stage", "from_stage", "next"])
def test_the_other_stage_of_an_event_is_known(key: str, tmp_path: Path) -> None:
    path = written(tmp_path / "e.jsonl", [line("q", "a", "stage_hop_sent", 0, **{key: "b"}, chunk_id=3)])
    (event,) = read_stage_events(path).events
    assert (event.peer, event.chunk) == ("b", "3")


def test_one_log_in_three_forms_is_the_same_events(tmp_path: Path) -> None:
    wanted = (StageEvent("1", "a", "start", 1_500_000), StageEvent("1", "a", "end", 2_000_000))
    csv = "rid;stage;event;ts_ms\n1;a;start;1.5\n1;a;end;2\n"
    tabs = "stage\trequest\tname\ttime_us\na\t1\tstart\t1500\na\t1\tend\t2000\n"
    lines = "".join(
        json.dumps({"request": 1, "stage": "a", "event": e, "ts_s": t}) + "\n"
        for e, t in (("start", 0.0015), ("end", 0.002))
    )
    assert [told(tmp_path / "l", text) for text in (csv, tabs, lines)] == [wanted] * 3


@pytest.mark.parametrize(
    ("value", "ns"),
    [
        ("1785900000.25", 1_785_900_000_250_000_000),
        ("1785900000250", 1_785_900_000_250_000_000),
        ("1785900000250000", 1_785_900_000_250_000_000),
        ("1785900000250000000", 1_785_900_000_250_000_000),
        ("12.5", 12_500_000_000),
        ("2026-08-05T03:20:00.25Z", 1_785_900_000_250_000_000),
        ("2026-08-05 05:20:00.25+02:00", 1_785_900_000_250_000_000),
    ],
)
def test_a_time_without_a_unit_is_told_by_its_size(value: str, ns: int, tmp_path: Path) -> None:
    (event,) = told(tmp_path / "l.csv", f"id,stage,event,timestamp\n1,a,start,{value}\n")
    assert event.at_ns == ns


@given(st.integers(0, 10**18), st.sampled_from(sorted(UNITS_NS)))
def test_whole_times_are_exact_in_every_unit(ns: int, unit: str) -> None:
    whole = ns // UNITS_NS[unit]
    for value in (whole, str(whole)):
        assert at_ns(value, UNITS_NS[unit]) == whole * UNITS_NS[unit]


@given(st.one_of(st.none(), st.booleans(), st.text(), st.floats(), st.integers(), st.lists(st.integers())))
def test_any_value_is_a_time_or_none(value: object) -> None:
    for unit in (0, 1, UNITS_NS["s"]):
        at = at_ns(value, unit)
        assert at is None or 0 <= at < 2**63


@pytest.mark.parametrize(
    "bad",
    [
        '{"request_id": "q", "stage": "a", "event_name": "start"}',
        '{"request_id": "q", "stage": "a", "event_name": "start", "timestamp_ns": NaN}',
        '{"request_id": "q", "stage": "a", "event_name": "start", "timestamp_ns": -5}',
        '{"request_id": "q", "stage": "a", "event_name": "start", "timestamp_ns": 1e300}',
        '{"request_id": null, "stage": "a", "event_name": "start", "timestamp_ns": 5}',
        '{"request_id": "q", "stage": ["a"], "event_name": "start", "timestamp_ns": 5}',
        "[1, 2]",
        '{"request_id": "q", "stage": "a", "event_na',
        "Traceback (most recent call last):",
        "[" * 20_000,
    ],
)
def test_a_line_that_is_no_event_is_lost_and_told(bad: str, tmp_path: Path) -> None:
    path, good = tmp_path / "e.jsonl", asr_request("q")
    path.write_text("\n".join([json.dumps(good[0]), bad, *map(json.dumps, good[1:])]), encoding="utf-8")
    log = read_stage_events(str(path))
    assert len(log.events) == len(good)
    assert [loss.lost_events for loss in log.losses] == [1] and "line 2" in log.losses[0].what


def test_a_cut_gzip_file_gives_what_it_holds_and_says_so(tmp_path: Path) -> None:
    packed = gzip.compress("".join(json.dumps(e) + "\n" for e in asr_request("q") * 400).encode())
    path = tmp_path / "e.jsonl.gz"
    path.write_bytes(packed[: len(packed) * 3 // 4])
    log = read_stage_events(str(path))
    assert log.events and any(loss.rest_is_missing for loss in log.losses)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02", "binary"),
        (b"hello\nworld\n", "Expected stage events"),
        (b'{"a": 1}\n', "no stage event could be read"),
        (b"request,stage,event,timestamp\n", "no stage event could be read"),
        (b"SQLite format 3\x00", "SQLite"),
    ],
)
def test_a_file_without_events_is_refused_in_one_line(data: bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match=says) as refused:
        told(tmp_path / "odd", data)
    assert str(tmp_path / "odd") in str(refused.value) and "\n" not in str(refused.value)


@given(st.binary(max_size=300))
def test_no_bytes_end_in_anything_but_events_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path, cut = tmp_path_factory.mktemp("bytes") / "f", json.dumps(line("q", "a", "end", 0))[:90].encode()
    for head in (b"", cut, b"id,stage,event,t\n"):
        path.write_bytes(head + data)
        try:
            assert read_stage_events(str(path)).events
        except UnreadableInput as refused:
            assert str(path) in str(refused)


def test_a_clock_that_goes_back_is_told_per_process(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    lines = [line("q", "a", "start", at, pid=pid) for at, pid in ((900, 1), (10, 2))]
    lines += [line("q", "a", "end", at, pid=1) for at in (500, 600)]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    log = read_stage_events(str(path))
    assert (log.steps_back, log.largest_step_ns) == (1, 400_000_000)
    assert [loss.kind for loss in log.losses] == [LossKind.CLOCK]


def test_threads_that_race_are_no_clock_that_goes_back(tmp_path: Path) -> None:
    path = plain_csv(tmp_path / "l.csv", ["1,a,start,100", "1,a,end,50"])
    assert read_stage_events(path).steps_back == 0


def test_events_beyond_the_bound_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_EVENTS > 1_000_000
    monkeypatch.setattr("parsers.stage_events.MAX_EVENTS", 3)
    log = read_stage_events(written(tmp_path / "e.jsonl", asr_request("q")))
    assert len(log.events) == 3 and any(loss.rest_is_missing for loss in log.losses)


@pytest.mark.parametrize(
    ("told", "failure"),
    [
        ({"status": "finished", "error": None}, ""),
        ({"status": "length", "status_code": 200, "error": "none"}, ""),
        ({"status": 503}, "503"),
        ({"status_code": 500, "error": "backlog is full"}, "500; backlog is full"),
        ({"status": "time out"}, "time out"),
        ({"status": "cancelled"}, "cancelled"),
        ({"status": "queue_full"}, "queue_full"),
        ({"status": "successfully finished"}, ""),
    ],
)
def test_a_status_is_a_failure_only_where_it_says_so(
    told: dict[str, object], failure: str, tmp_path: Path
) -> None:
    made = line("q", "a", "stage_complete", 1)
    made["metadata"] = told
    (event,) = read_stage_events(written(tmp_path / "e.jsonl", [made])).events
    assert event.failure == failure


def test_columns_are_found_in_any_case_and_order() -> None:
    columns = find_columns({"Time_MS": 5, "Event": "end", "STAGE": "a", "Request": "q"})
    assert columns is not None
    assert (columns.request, columns.time, columns.unit_ns) == ("Request", "Time_MS", 1_000_000)
    assert find_columns({"event": "end", "stage": "a", "time": 1}) is None
