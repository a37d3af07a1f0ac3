"""What odd values of single fields become: times, durations, ids, names, ranges, whole events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.chrome_numbers import (
    BAD_NS,
    LIMIT_NS,
    MISSING_NS,
    exact_nanoseconds,
    to_nanoseconds,
)
from parsers.chrome_salvage import REPAIRED
from parsers.chrome_trace import read_chrome_trace
from parsers.loss import Loss
from parsers.trace_model import NO_CORRELATION, NO_STREAM, PYTHON_FRAME_FLOOR_NS, DeviceTrace
from tests.trace_rows import DeviceRow, device_rows, host_rows, inventory

SOUND: dict[str, Any] = {
    **{"ph": "X", "cat": "kernel", "name": "sound", "pid": 0, "tid": 7, "ts": 100, "dur": 10},
    "args": {"device": 0, "stream": 7, "correlation": 5},
}
SOUND_ROW = DeviceRow(100_000, 110_000, "kernel", "sound", 0, 7, 5, 0, -1)


def _kernel(**changes: Any) -> dict[str, Any]:
    """The sound kernel named `odd`, with these fields; None leaves a field out."""
    event = {**SOUND, "name": "odd", **changes}
    return {key: value for key, value in event.items() if value is not None}


def _with_args(**args: Any) -> dict[str, Any]:
    return _kernel(args={**SOUND["args"], **args})


def _read(folder: Path, events: Sequence[Any] | str, busy_only: bool = False) -> DeviceTrace:
    """A trace of these events (or of this text in the place of the array), and of the sound kernel."""
    array = json.dumps([*events, SOUND]) if not isinstance(events, str) else events
    path = folder / "t.json"
    path.write_text(f'{{"traceEvents": {array}}}')
    return read_chrome_trace(str(path), busy_only=busy_only)


def _odd(trace: DeviceTrace) -> list[DeviceRow]:
    rows = device_rows(trace)
    assert SOUND_ROW in rows
    return [row for row in rows if row.name != "sound"]


def _whats(trace: DeviceTrace) -> list[tuple[str, bool]]:
    return [(loss.what, loss.may_hide_device_work) for loss in trace.losses]


# Durations and start times


def test_a_missing_duration_is_an_instant_and_is_said(tmp_path: Path) -> None:
    trace = _read(tmp_path, [_kernel(dur=None)])
    assert [(row.start_ns, row.end_ns) for row in _odd(trace)] == [(100_000, 100_000)]
    assert _whats(trace) == [("1 device operations without a duration: kept as instants", True)]


def test_a_negative_duration_is_dropped_and_counted(tmp_path: Path) -> None:
    trace = _read(tmp_path, [_kernel(dur=-0.001), _kernel(dur=-5)])
    assert _odd(trace) == []
    assert trace.losses == [Loss("2 device operations with a negative duration: dropped", -1, 0, 2, True)]


def test_a_few_operations_under_a_microsecond_are_valid_in_a_file_of_whole_ones(tmp_path: Path) -> None:
    trace = _read(tmp_path, [_kernel(dur=0), *(_kernel(ts=at) for at in range(200, 380, 20))])
    assert (100_000, 100_000) in [(row.start_ns, row.end_ns) for row in _odd(trace)]
    assert trace.losses == []


@pytest.mark.parametrize(("ts", "sound"), [(100, 8), (100.5, 9)], ids=["many", "nanoseconds"])
def test_operations_of_length_0_that_cannot_just_be_short_are_said(
    tmp_path: Path, ts: float, sound: int
) -> None:
    trace = _read(tmp_path, [_kernel(ts=ts, dur=0), *(_kernel(ts=200 + 20 * i) for i in range(sound - 1))])
    assert len(_odd(trace)) == sound
    assert _whats(trace) == [("1 device operations of length 0: when they ended was not recorded", True)]


@pytest.mark.parametrize("phase", ["i", "b", "C"])
@pytest.mark.parametrize("busy_only", [False, True])
def test_device_work_of_a_phase_without_a_length_is_dropped_and_said(
    tmp_path: Path, phase: str, busy_only: bool
) -> None:
    trace = _read(tmp_path, [_kernel(ph=phase), _kernel(ph=phase)], busy_only)
    assert _odd(trace) == []
    what = "2 device operations of a phase without a length: dropped"
    assert trace.losses == [Loss(what, -1, 0, 2, True)]


def test_operations_without_a_device_beside_others_that_name_theirs_are_said(tmp_path: Path) -> None:
    homeless = _kernel(pid="GPU", args={"stream": 7, "correlation": 6})
    assert _whats(_read(tmp_path, [homeless])) == [
        ("1 device operations that name no device, as others do: kept apart", True)
    ]


@pytest.mark.parametrize("busy_only", [False, True])
def test_an_operation_of_one_device_in_the_row_of_another_is_said(tmp_path: Path, busy_only: bool) -> None:
    assert _whats(_read(tmp_path, [_with_args(device=3)], busy_only)) == [
        ("1 device operations of one device in the row of another, unlike the others", True)
    ]


@pytest.mark.parametrize(
    "row", ["GPU {}", "gpu{}", "/device:GPU:{}", "rank 2 cuda:{}", "Device {} (A100)", "[TP01] {}"]
)
@pytest.mark.parametrize("busy_only", [False, True])
def test_the_row_of_a_device_may_be_named_by_text(tmp_path: Path, row: str, busy_only: bool) -> None:
    events = [_kernel(pid=row.format(0), ts=100 + 20 * n) for n in range(3)]
    astray = {**_with_args(device=3), "pid": row.format(0), "ts": 200}
    assert _read(tmp_path, json.dumps(events), busy_only).losses == []
    assert _whats(_read(tmp_path, json.dumps([*events, astray]), busy_only)) == [
        ("1 device operations of one device in the row of another, unlike the others", True)
    ]


@pytest.mark.parametrize("row", ["python 3", "rank {}", "GPU 1.{}", "worker-{}", "postcard {}"])
def test_a_row_whose_text_names_no_device_says_nothing_of_its_operations(tmp_path: Path, row: str) -> None:
    events = [_kernel(pid=row.format(0)), {**_with_args(device=3), "pid": row.format(0), "ts": 200}]
    assert _read(tmp_path, json.dumps(events)).losses == []


def test_merged_ranks_with_process_ids_of_their_own_lost_nothing(tmp_path: Path) -> None:
    ranks = [_kernel(pid=1000 + rank, ts=100 + 20 * rank) for rank in range(2)]
    assert _read(tmp_path, json.dumps(ranks)).losses == []


def test_a_file_whose_operations_all_name_no_device_lost_nothing(tmp_path: Path) -> None:
    homeless = _kernel(pid="GPU", args={"stream": 7, "correlation": 6})
    assert _read(tmp_path, json.dumps([homeless])).losses == []


@pytest.mark.parametrize("zero", [0, 0.0, "0.000"])
def test_device_work_with_no_time_at_all_is_counted_by_device(tmp_path: Path, zero: object) -> None:
    odd = [_kernel(ts=zero, dur=0), {**_with_args(device=3), "ts": zero, "dur": 0}, _kernel(ts=zero, dur=0)]
    trace = _read(tmp_path, odd)
    assert _odd(trace) == []
    assert trace.zero_timestamps == {0: 2, 3: 1}
    assert trace.recorded_ns == (100_000, 110_000)


def test_a_start_of_zero_with_a_duration_is_a_time_like_any_other(tmp_path: Path) -> None:
    trace = _read(tmp_path, [_kernel(ts=0, dur=1)])
    assert [(row.start_ns, row.end_ns) for row in _odd(trace)] == [(0, 1_000)]
    assert trace.zero_timestamps == {}


def test_negative_start_times_are_valid(tmp_path: Path) -> None:
    trace = _read(tmp_path, [_kernel(ts=-2.5)])
    assert [(row.start_ns, row.end_ns) for row in _odd(trace)] == [(-2_500, 7_500)]


@pytest.mark.parametrize("ts", [None, -9223372036854775808, 10**30, 1e300, "NaN", "Infinity"])
def test_a_time_that_cannot_be_is_dropped_and_counted(tmp_path: Path, ts: object) -> None:
    trace = _read(tmp_path, [_kernel(ts=ts)])
    assert _odd(trace) == []
    assert ("1 device operations without a usable time: dropped", True) in _whats(trace)


def test_a_time_that_is_no_number_is_dropped_and_counted(tmp_path: Path) -> None:
    for ts in ("yesterday", [1], {"us": 1}, True):
        trace = _read(tmp_path, [_kernel(ts=ts)])
        assert _odd(trace) == []
        assert ("1 device operations without a usable time: dropped", True) in _whats(trace)


def test_host_events_with_impossible_times_do_not_touch_device_work(tmp_path: Path) -> None:
    trace = _read(tmp_path, [_kernel(cat="cpu_op", dur=-1), _kernel(cat="cpu_op", ts=None)])
    assert device_rows(trace) == [SOUND_ROW] and len(trace.host) == 0
    assert _whats(trace) == [
        ("1 host events with a negative duration: dropped", False),
        ("1 host events without a usable time: dropped", False),
    ]


def test_short_python_frames_are_counted_and_not_kept(tmp_path: Path) -> None:
    floor_us = PYTHON_FRAME_FLOOR_NS // 1_000
    frames = [_kernel(cat="python_function", dur=us) for us in (floor_us - 0.001, floor_us)]
    trace = _read(tmp_path, frames)
    assert inventory(trace)["python_function", "X"] == 2
    assert [row.end_ns - row.start_ns for row in host_rows(trace)] == [PYTHON_FRAME_FLOOR_NS]


_TIMES = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(-(2.0**50), 2.0**50),
    st.integers(-(10**17), 10**17).map(lambda ns: ns / 1000),
    st.none(),
    st.integers(-(10**19), 10**19).map(lambda ns: f"{Decimal(ns) / 1000:f}"),
)


@given(st.lists(_TIMES, max_size=8))
def test_the_fast_conversion_of_times_is_the_exact_one_or_declines(values: list[Any]) -> None:
    fast = to_nanoseconds(values)
    exact = [_exact(value) for value in values]
    assert exact_nanoseconds(values).tolist() == exact
    if fast is not None:
        assert all(
            abs(a - b) <= (0 if _whole_ns(v) else 1) for a, b, v in zip(fast, exact, values, strict=True)
        )


NO_NUMBERS = [
    *("1_010", "\uff11\uff10", "\u0661", "", " 10", "10 ", "10\n", "+10", "0x10", "1000 us", "1,000", "ten"),
    *("Infinity", "-inf", "NaN", "10.", ".5", "1e", "--1", "1.2.3", "12345" * 1_000 + "x"),
]
"""What Python takes for a number, or a careless reader might."""


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_a_text_that_is_no_number_in_ascii_digits_is_no_time(text: str) -> None:
    assert exact_nanoseconds([text, "1000"]).tolist() == [BAD_NS, 1_000_000]


@pytest.mark.parametrize("broken", ["", '"bandwidth": NaN, '], ids=["sound JSON", "repaired JSON"])
@pytest.mark.parametrize("busy_only", [False, True])
@pytest.mark.parametrize("field", ["ts", "dur"])
@pytest.mark.parametrize("text", NO_NUMBERS)
def test_a_time_of_text_that_is_no_number_costs_its_operation_and_is_said(
    tmp_path: Path, text: str, field: str, busy_only: bool, broken: str
) -> None:
    odd = json.dumps(_kernel(**{field: text})).replace("{", "{" + broken, 1)
    trace = _read(tmp_path, f"[{odd}, {json.dumps(SOUND)}]", busy_only)
    assert _odd(trace) == []
    assert ("1 device operations without a usable time: dropped", True) in _whats(trace)


@pytest.mark.parametrize(
    ("text", "ns"),
    [("12.345", 12_345), ("-2.5", -2_500), ("1e3", 1_000_000), ("007", 7_000), ("0." + "0" * 5_000 + "1", 0)],
)
def test_a_time_of_text_in_ascii_digits_is_one(tmp_path: Path, text: str, ns: int) -> None:
    assert [row.start_ns for row in _odd(_read(tmp_path, [_kernel(ts=text)]))] == [ns]
    assert [row.start_ns for row in _odd(_read(tmp_path, [_kernel(ts=text)], busy_only=True))] == [ns]


@pytest.mark.parametrize("digits", [19, 30, 4_000, 5_000, 100_000])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_time_of_too_many_digits_costs_its_operation_and_is_said(
    tmp_path: Path, digits: int, quote: str
) -> None:
    odd = json.dumps(_kernel(ts="TS")).replace('"TS"', quote + "9" * digits + quote)
    trace = _read(tmp_path, f"[{odd}, {json.dumps(SOUND)}]")
    assert _odd(trace) == []
    assert any(hides for _, hides in _whats(trace))


def test_marks_of_epoch_times_are_exact(tmp_path: Path) -> None:
    start, end = "1712195495524107.555", "1712195495524108.556"
    marks = [
        f'{{"ph": "{ph}", "ts": {ts}, "pid": 3, "tid": 1, "cat": "cpu_op"}}'
        for ph, ts in (("B", start), ("E", end))
    ]
    last = f'{{"ph": "i", "name": "Record Window End", "ts": {end}}}'
    trace = _read(tmp_path, f"[{', '.join([*marks, last])}]")
    assert [(row.start_ns, row.end_ns) for row in host_rows(trace)] == [
        (1712195495524107555, 1712195495524108556)
    ]
    assert trace.recorded_ns == (1712195495524107555, 1712195495524108556)


def _exact(value: Any) -> int:
    if value is None:
        return MISSING_NS
    ns = Decimal(value) * 1000
    return round(ns) if abs(ns) < LIMIT_NS else BAD_NS


def _whole_ns(value: Any) -> bool:
    """Whether a time has no digits below the nanosecond, as all files write it."""
    return value is None or len(str(value).partition(".")[2]) <= 3


# Ids


def test_unsigned_64_bit_ids_keep_their_bits(tmp_path: Path) -> None:
    largest = 2**64 - 1
    trace = _read(tmp_path, [_with_args(correlation=largest), _with_args(correlation=10159970886766084423)])
    assert [row.correlation % 2**64 for row in _odd(trace)] == [largest, 10159970886766084423]


@pytest.mark.parametrize("written", [4294967295, -1, "4294967295", None, "none", 1.5e300])
def test_no_one_stream_is_no_stream(tmp_path: Path, written: object) -> None:
    assert [row.stream for row in _odd(_read(tmp_path, [_with_args(stream=written)]))] == [NO_STREAM]


@pytest.mark.parametrize("field", ["stream", "correlation", "graph id", "bytes"])
@pytest.mark.parametrize("text", [text for text in [*NO_NUMBERS, "9" * 5_000, "7.0", "1e3"] if text])
def test_an_id_of_text_that_is_no_number_is_missing_and_said(tmp_path: Path, field: str, text: str) -> None:
    ids = {"stream": 7, "correlation": 5}
    (row,) = _odd(trace := _read(tmp_path, [_with_args(**{field: text})]))
    missing = {"stream": NO_STREAM, "correlation": NO_CORRELATION}
    kept = {**ids, **({field: missing[field]} if field in missing else {})}
    assert (row.stream, row.correlation, row.graph_id, row.nbytes) == (*kept.values(), 0, -1)
    assert _whats(trace) == [("1 ids or sizes that are no whole number: taken as missing", False)]


@pytest.mark.parametrize("text", [*NO_NUMBERS, "9" * 5_000, "7.0", "1e3"])
def test_a_device_of_text_that_is_no_number_costs_its_operation_and_is_said(
    tmp_path: Path, text: str
) -> None:
    trace = _read(tmp_path, [_with_args(device=text)])
    assert _odd(trace) == []
    assert _whats(trace) == [("1 device operations with an impossible device number: dropped", True)]


@pytest.mark.parametrize("pid", NO_NUMBERS)
def test_a_process_of_text_that_is_no_number_names_no_device(tmp_path: Path, pid: str) -> None:
    args = {"stream": 7, "correlation": 5}
    assert [row.device for row in _odd(_read(tmp_path, [_kernel(pid=pid, args=args)]))] == [-1]


def test_a_thread_is_one_whether_its_ids_are_numbers_or_text(tmp_path: Path) -> None:
    host = [_kernel(cat="cpu_op", pid=pid, tid=7, name=f"on {pid!r}") for pid in (4, "4")]
    trace = _read(tmp_path, host)
    assert [(track.pid, track.tid) for track in trace.tracks] == [("4", "7")]
    assert {row.pid for row in host_rows(trace)} == {"4"}


def test_ids_of_text_in_ascii_digits_are_those_ids(tmp_path: Path) -> None:
    largest = str(2**64 - 1)
    trace = _read(tmp_path, [_with_args(device="0", stream="12", correlation=largest)])
    assert [(row.device, row.stream, row.correlation) for row in _odd(trace)] == [(0, 12, -1)]
    assert trace.losses == []


def test_stream_zero_is_a_stream(tmp_path: Path) -> None:
    assert [row.stream for row in _odd(_read(tmp_path, [_with_args(stream=0)]))] == [0]


@pytest.mark.parametrize(
    ("pid", "device", "expected"),
    [(0, 1, 1), ("0", "1", 1), (5, None, 5), ("5", None, 5), ("CUDA functions", None, -1), (2**40, None, -1)],
)
def test_the_device_is_named_by_the_arguments_or_else_by_the_process(
    tmp_path: Path, pid: object, device: object, expected: int
) -> None:
    args = {"stream": 7, **({} if device is None else {"device": device})}
    assert [row.device for row in _odd(_read(tmp_path, [_kernel(pid=pid, args=args)]))] == [expected]


def test_an_operation_without_arguments_is_still_one(tmp_path: Path) -> None:
    rows = _odd(_read(tmp_path, [_kernel(args=None, pid=2), _kernel(args={}, pid=2)]))
    expected = DeviceRow(100_000, 110_000, "kernel", "odd", 2, NO_STREAM, NO_CORRELATION, 0, -1)
    assert rows == [expected, expected]


def test_identifiers_of_graphs_and_bytes_are_kept(tmp_path: Path) -> None:
    args = {"graph id": 4, "graph node id": 9, "bytes": 2**33}
    (row,) = _odd(_read(tmp_path, [{**_with_args(**args), "cat": "gpu_memcpy"}]))
    assert (row.kind, row.graph_id, row.nbytes) == ("memcpy", 4, 2**33)


@pytest.mark.parametrize("args", [[], "text", 3, True])
def test_arguments_of_a_wrong_type_leave_the_device_in_doubt(tmp_path: Path, args: object) -> None:
    trace = _read(tmp_path, [_kernel(args=args)])
    assert [row.start_ns for row in _odd(trace)] == [100_000]
    assert _whats(trace) == [(REPAIRED, True)]


@pytest.mark.parametrize("value", [True, [1], {"a": 1}])
def test_an_id_of_a_wrong_type_costs_only_itself(tmp_path: Path, value: object) -> None:
    trace = _read(tmp_path, [_with_args(stream=value)])
    assert [(row.stream, row.correlation) for row in _odd(trace)] == [(NO_STREAM, 5)]
    assert _whats(trace) == [(REPAIRED, False)]


_IDS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(), st.none())


@given(ids=st.lists(st.tuples(_IDS, _IDS, _IDS, _IDS), min_size=1, max_size=5))
def test_no_id_stops_the_reading(
    tmp_path_factory: pytest.TempPathFactory, ids: list[tuple[object, ...]]
) -> None:
    events = [
        {**_with_args(device=device, stream=stream, correlation=correlation), "pid": pid}
        for device, stream, correlation, pid in ids
    ]
    trace = _read(tmp_path_factory.mktemp("ids"), events)
    twice = sum(int(what.split()[0]) for what, _ in _whats(trace) if "written twice" in what)
    impossible = len(ids) - len(_odd(trace)) - twice
    faults = [what for what, hides in _whats(trace) if hides and "impossible device number" in what]
    assert bool(faults) == (impossible > 0)


@pytest.mark.parametrize("device", ["abc", -1, 1.5, 1 << 40, ""])
def test_a_stated_device_that_is_none_is_a_fault(tmp_path: Path, device: object) -> None:
    trace = _read(tmp_path, [_with_args(device=device)])
    assert not _odd(trace)
    assert _whats(trace) == [("1 device operations with an impossible device number: dropped", True)]


def test_without_a_stated_device_the_process_stands_for_it(tmp_path: Path) -> None:
    args = {"stream": 7, "correlation": 5}
    rows = _odd(_read(tmp_path, [_kernel(args=args, pid=3), _kernel(args=args, pid="GPU")]))
    assert [row.device for row in rows] == [3, -1]


# Names and keys


def test_names_may_be_any_scalar(tmp_path: Path) -> None:
    scalars = (5, 2.5, False, "", None)
    kernels = [_kernel(name=name, ts=1_000 + i) for i, name in enumerate(scalars)]
    assert [row.name for row in _odd(_read(tmp_path, kernels))] == ["5", "2.5", "False", "", ""]


def test_the_last_of_two_equal_keys_counts(tmp_path: Path) -> None:
    first = '"ph": "i", "cat": "cpu_op", "ts": 7, "args": {"device": 9}'
    text = json.dumps([_kernel(), SOUND]).replace('{"ph"', "{" + first + ', "ph"', 1)
    assert _odd(_read(tmp_path, text)) == [SOUND_ROW._replace(name="odd")]


def test_names_that_json_can_hold_and_utf8_cannot_are_replaced(tmp_path: Path) -> None:
    trace = _read(tmp_path, [_kernel(name="half \ud800 pair")])
    assert [row.name for row in _odd(trace)] == ["half ? pair"]


def test_argument_text_that_is_no_utf8_is_said(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    odd = json.dumps(_kernel(cat="cpu_op", args={"b": "TEXT"})).encode().replace(b"TEXT", b"\xff\xff")
    path.write_bytes(b"[" + odd + b"," + json.dumps(SOUND).encode() + b"]")
    trace = read_chrome_trace(str(path))
    assert device_rows(trace) == [SOUND_ROW] and len(trace.host) == 1
    assert [(loss.what, loss.lost_bytes) for loss in trace.losses] == [(REPAIRED, 2)]


def test_argument_text_that_is_no_utf8_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    label = b'{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "\xff"}}'
    path.write_bytes(b"[" + label + b"," + json.dumps(SOUND).encode() + b"]")
    assert device_rows(read_chrome_trace(str(path))) == [SOUND_ROW]


# Whole events


def test_empty_events_are_counted_and_nothing_else(tmp_path: Path) -> None:
    trace = _read(tmp_path, [{}, _kernel(), {}])
    assert len(_odd(trace)) == 1 and trace.losses == []
    assert inventory(trace) == {("kernel", "X"): 2, ("", ""): 2}


def test_elements_that_are_no_events_are_left_out_and_said(tmp_path: Path) -> None:
    trace = _read(tmp_path, [None, _kernel(), 5, "text", [], -1.5e3, True])
    assert len(_odd(trace)) == 1
    assert _whats(trace) == [("elements of the event array that are no events: left out", False)]


def test_a_trace_without_events_is_read(tmp_path: Path) -> None:
    trace = _read(tmp_path, "[ ]")
    assert (len(trace.device_ops), len(trace.host), trace.inventory) == (0, 0, [])
    assert trace.recorded_ns is None and trace.losses == []


# Begin and end events


def _mark(phase: str, ts: float, cat: str | None = None, tid: int = 1, **more: Any) -> dict[str, Any]:
    return {"ph": phase, "ts": ts, "pid": 3, "tid": tid, **({"cat": cat} if cat else {}), **more}


def test_begin_and_end_pairs_are_spans_per_thread_innermost_first(tmp_path: Path) -> None:
    marks = [
        _mark("B", 1, "cpu_op", name="outer"),
        _mark("B", 2, "cpu_op", name="inner"),
        _mark("B", 2.5, "cpu_op", tid=2, name="other thread"),
        _mark("E", 4),
        _mark("E", 9),
        _mark("E", 11, tid=2),
    ]
    trace = _read(tmp_path, marks)
    spans = [(row.name, row.start_ns, row.end_ns) for row in host_rows(trace)]
    assert spans == [("outer", 1_000, 9_000), ("inner", 2_000, 4_000), ("other thread", 2_500, 11_000)]
    assert trace.losses == []


def test_begin_and_end_pairs_of_device_categories_are_device_work(tmp_path: Path) -> None:
    marks = [
        _mark("B", 1, "kernel", name="k"),
        _mark("E", 3),
        _mark("B", 4, "gpu_memcpy", args={"device": 1}),
    ]
    rows = _odd(_read(tmp_path, [*marks, _mark("E", 5)]))
    assert [(r.kind, r.start_ns, r.end_ns, r.device) for r in rows] == [
        ("kernel", 1_000, 3_000, 3),
        ("memcpy", 4_000, 5_000, 1),
    ]


def test_marks_without_a_partner_are_dropped_and_counted(tmp_path: Path) -> None:
    host = _read(
        tmp_path,
        [_mark("E", 1), _mark("B", 2, "cpu_op"), _mark("B", 3, "cpu_op", tid=2), _mark("E", 1, tid=2)],
    )
    assert _whats(host) == [("4 begin or end events without a partner: dropped", False)]
    device = _read(tmp_path, [_mark("B", 2, "kernel")])
    assert _whats(device) == [("1 begin or end events without a partner: dropped", True)]


# What the file says of the recording


def test_the_recorded_window_is_the_profilers_own_span(tmp_path: Path) -> None:
    span = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "ts": 50, "dur": 200}
    assert _read(tmp_path, [span, _kernel(ts=10)]).recorded_ns == (50_000, 250_000)


def test_without_a_span_of_its_own_the_recorded_window_is_first_to_last_event(tmp_path: Path) -> None:
    end = {"ph": "i", "name": "Record Window End", "ts": 500}
    assert _read(tmp_path, [_kernel(cat="cpu_op", ts=10)]).recorded_ns == (10_000, 110_000)
    assert _read(tmp_path, [_kernel(ts=10), end]).recorded_ns == (10_000, 500_000)


def test_nanosecond_resolution_is_told_by_the_times_or_the_base(tmp_path: Path) -> None:
    assert not _read(tmp_path, [_kernel(ts=10)]).meta.nanosecond_resolution
    assert _read(tmp_path, [_kernel(ts=10.125)]).meta.nanosecond_resolution
    path = tmp_path / "base.json"
    path.write_text(json.dumps({"baseTimeNanoseconds": 17, "traceEvents": [SOUND]}))
    meta = read_chrome_trace(str(path)).meta
    assert meta.nanosecond_resolution and meta.base_time_ns == 17


def test_odd_metadata_is_left_unknown(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    odd = {
        **{"distributedInfo": [1], "deviceProperties": {"id": 0}, "baseTimeNanoseconds": 10**40},
        **{"cuda_runtime_version": [12], "hip_runtime_version": "6.2"},
    }
    path.write_text(json.dumps({**odd, "traceEvents": [SOUND]}))
    meta = read_chrome_trace(str(path)).meta
    assert (meta.rank, meta.world_size, meta.base_time_ns, meta.device_names) == (-1, -1, 0, {})
    assert meta.versions == {"hip_runtime_version": "6.2"}
