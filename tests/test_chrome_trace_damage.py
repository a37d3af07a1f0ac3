"""Damage to one event costs that event at most, is said once, and never touches the numbers of the device.

The cases are those seen in public traces: broken text in a Python frame or in the metadata, punctuation
that is missing or too much, files cut short or glued together.
"""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import pytest

from parsers.chrome_lacking import Lack
from parsers.chrome_lost import may_hold_device_work
from parsers.chrome_salvage import LOST, NO_EVENTS, REPAIRED, SEPARATORS
from parsers.chrome_trace import read_chrome_trace
from parsers.loss import Loss
from parsers.trace_model import DeviceTrace
from tests.sample_traces import everything
from tests.trace_rows import device_rows, host_rows
from tests.writers.chrome import Layout, TraceBuilder

FRAME = {"ph": "X", "cat": "python_function", "name": "NAME", "pid": 1, "tid": 1, "ts": 5, "dur": 99}
CUT = "the event array has no closing bracket: the file may be cut"
AROUND = "keys beside the events are no valid JSON: repaired, or read in part"


def _read(folder: Path, text: str | bytes) -> DeviceTrace:
    path = folder / "t.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_chrome_trace(str(path))


def _whats(trace: DeviceTrace) -> list[tuple[str, bool]]:
    return [(loss.what, loss.may_hide_device_work) for loss in trace.losses]


def _frame(name: str = '"NAME"', **other: str) -> str:
    """A Python frame as text, its name and other values verbatim."""
    members = {**{key: json.dumps(value) for key, value in FRAME.items()}, "name": name, **other}
    return "{" + ", ".join(f'"{key}": {value}' for key, value in members.items()) + "}"


BROKEN_FRAMES = {
    "NaN": (_frame(bandwidth="NaN"), REPAIRED),
    "Infinity": (_frame(bandwidth="-Infinity"), REPAIRED),
    "bare inf": (_frame(bandwidth="inf"), REPAIRED),
    "bare N/A": (_frame(bandwidth="N/A"), REPAIRED),
    "control character": (_frame('"a\x01b"'), REPAIRED),
    "line break in a name": (_frame('"a\nb"'), REPAIRED),
    "unknown escape": (_frame('"C:\\code\\x.py"'), REPAIRED),
    "known and unknown escapes": (_frame(r'"C:\\code\new\u12"'), REPAIRED),
    "trailing comma": (_frame()[:-1] + ",}", REPAIRED),
    "trailing comma in a list": (_frame(dims="[1, 2,]"), REPAIRED),
    "comments": (_frame().replace(",", ', // {" } \n /* } */ ', 1), REPAIRED),
    "half a surrogate pair": (_frame('"\\ud800"'), REPAIRED),
    "leading zero": (_frame(count="007"), REPAIRED),
    "quote in a name": (_frame('"a"b"'), LOST),
    "quote in a name with braces": (_frame('"lambda: {"a": 1}, {"'), LOST),
    "missing quote": (_frame('"a'), LOST),
    "missing colon": (_frame().replace(":", "", 1), LOST),
    "missing brace": (_frame(args='{"a": 1'), LOST),
    "cut short": (_frame()[:-15], LOST),
    "log line": ("[W init.cpp:12] {warning}: 'odd'", LOST),
}


REPAIRED_BYTES = {"control character": 1, "leading zero": 3}
TORN = {"missing quote", "missing colon", "missing brace", "cut short", "log line"}
"""Where more may be gone than stands there."""


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("case", BROKEN_FRAMES)
def test_a_broken_frame_costs_nothing_else(tmp_path: Path, case: str, layout: Layout) -> None:
    broken, what = BROKEN_FRAMES[case]
    whole, damaged = everything(), everything()
    _insert(damaged, broken)
    one, other = _read(tmp_path, whole.text(layout)), _read(tmp_path, damaged.text(layout))
    assert device_rows(other) == device_rows(one)
    frames = [row for row in host_rows(other) if row not in host_rows(one)]
    assert len(frames) == (1 if what == REPAIRED else 0)
    said = [loss for loss in other.losses if "host events" not in loss.what]
    assert [loss.what for loss in said] == [what]
    assert said[0].offset == damaged.text(layout).encode().index(broken.split("\n")[0].encode())
    if what == REPAIRED:
        assert said[0].lost_bytes == REPAIRED_BYTES.get(case, 0)
    else:
        assert said[0].lost_bytes >= len(broken.encode())
    assert said[0].at_least == (case in TORN)


def _insert(trace: TraceBuilder, text: str) -> None:
    trace.raw(text)
    trace.events.insert(len(trace.events) // 2, trace.events.pop())


def test_bytes_that_are_no_utf8_are_replaced_in_what_is_read(tmp_path: Path) -> None:
    damaged = everything()
    _insert(damaged, _frame('"caf\u00e9"'))
    text = damaged.text().encode().replace("\u00e9".encode(), b"\xe9")
    trace = _read(tmp_path, text)
    assert device_rows(trace) == device_rows(_read(tmp_path, everything().text()))
    assert "caf\ufffd" in trace.names
    assert _whats(trace) == [(REPAIRED, False)]


LITERALS = ('"kernel"', '"gpu_memcpy"')


@pytest.mark.parametrize("damage", ['"kernel', '"kern"el"', "kernel", '"kernel\\q"'])
def test_a_broken_kernel_is_repaired_or_the_loss_says_that_it_may_be_one(tmp_path: Path, damage: str) -> None:
    text = everything().text(Layout.COMPACT)
    whole = _read(tmp_path, text)
    trace = _read(tmp_path, text.replace('"kernel"', damage, 1))
    missing = len(whole.device_ops) - len(trace.device_ops)
    assert missing == 1
    assert any(loss.may_hide_device_work for loss in trace.losses)


def test_lost_text_hides_no_device_work_where_it_says_that_it_is_something_else(tmp_path: Path) -> None:
    damaged = everything()
    _insert(damaged, _frame('"a"b"'))
    assert _whats(_read(tmp_path, damaged.text())) == [(LOST, False)]
    unnamed = everything()
    _insert(unnamed, '{"ph": "X", "name": "a"b"}')
    assert _whats(_read(tmp_path, unnamed.text())) == [(LOST, True)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("}, {", "} {"),
        ("}, {", "},, {"),
        ("}, {", "}\x0b, {"),
        ('"traceEvents": [{', '"traceEvents": [, {'),
        ('}], "traceName"', '},], "traceName"'),
    ],
)
def test_commas_missing_or_too_many_cost_nothing(tmp_path: Path, old: str, new: str) -> None:
    head, middle, rest = everything().text(Layout.COMPACT).partition('"traceEvents"')
    assert old in middle + rest
    trace = _read(tmp_path, head + (middle + rest).replace(old, new, 1))
    assert device_rows(trace) == device_rows(_read(tmp_path, head + middle + rest))
    assert trace.losses[0].what == SEPARATORS


def test_text_between_events_is_lost_alone(tmp_path: Path) -> None:
    damaged = everything()
    _insert(damaged, 'null, 17, "text", [], garbage ]}{ more')
    trace = _read(tmp_path, damaged.text())
    assert device_rows(trace) == device_rows(_read(tmp_path, everything().text()))
    assert {loss.what for loss in trace.losses} == {LOST, NO_EVENTS}


# Around the events


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize(
    "metadata",
    [
        '"cfg": {"a": NaN,}',
        '"cfg": [W foo.cpp:7] "odd" line {',
        '"cfg": "a\nb"',
        '"path": "C:\\code"',
        '"x": tru',
    ],
)
def test_broken_metadata_costs_no_events(tmp_path: Path, metadata: str, behind: bool) -> None:
    text = everything().text(Layout.COMPACT)
    whole = _read(tmp_path, text)
    place = '"traceName"' if behind else '"traceEvents"'
    trace = _read(tmp_path, text.replace(place, f"{metadata}, {place}"))
    assert device_rows(trace) == device_rows(whole) and host_rows(trace) == host_rows(whole)
    assert trace.meta.base_time_ns == whole.meta.base_time_ns
    assert all(loss.may_hide_device_work is False for loss in trace.losses)


def test_metadata_that_json_takes_though_it_should_not_is_no_loss(tmp_path: Path) -> None:
    text = everything().text(Layout.COMPACT).replace('"traceEvents"', '"x": NaN, "traceEvents"')
    assert _read(tmp_path, text).losses == []


def test_the_pairs_of_metadata_beyond_repair_are_still_found(tmp_path: Path) -> None:
    trace = _read(
        tmp_path, '{"log": [W] "odd" {, "cuda_runtime_version": 12040, "traceEvents": [' + _frame() + "]}"
    )
    assert trace.meta.versions == {"cuda_runtime_version": "12040"}
    assert _whats(trace) == [(AROUND, False)]


# Cut, continued, glued together


@pytest.mark.parametrize("layout", Layout)
def test_of_a_file_cut_anywhere_all_events_before_the_cut_are_read(tmp_path: Path, layout: Layout) -> None:
    source = everything()
    text = source.text(layout)
    whole = _read(tmp_path, text)
    ends = _ends_of_events(text)
    for cut in [*range(ends[0], len(text), 97), *ends, *[end + 1 for end in ends]]:
        trace = _read(tmp_path, text[:cut])
        expected = sum(end <= cut for end in ends)
        assert sum(row.events for row in trace.inventory) == expected, cut
        assert set(device_rows(trace)) <= set(device_rows(whole))
        assert any(loss.may_hide_device_work for loss in trace.losses) or cut > ends[-1]
        assert trace.losses or cut >= len(text.rstrip())


def _ends_of_events(text: str) -> list[int]:
    """Where each event of an undamaged text ends."""
    at = text.index("[", 0 if text.startswith("[") else text.index('"traceEvents"')) + 1
    ends = []
    while text[at:].lstrip(" ,\n").startswith("{"):
        at = text.index("{", at)
        _, at = json.JSONDecoder().raw_decode(text, at)
        ends.append(at)
    return ends


def test_a_missing_last_bracket_is_said_and_costs_nothing(tmp_path: Path) -> None:
    text = everything().text(Layout.ARRAY)
    trace = _read(tmp_path, text.removesuffix("]"))
    assert device_rows(trace) == device_rows(_read(tmp_path, text))
    assert trace.losses == [Loss(CUT, len(text) - 1, 0, 0, True)]


@pytest.mark.parametrize(
    ("layout", "kept", "missing"), [(Layout.COMPACT, 30, True), (Layout.ARRAY, 30, False)]
)
def test_an_array_alone_may_end_without_its_bracket_and_an_object_may_not(
    tmp_path: Path, layout: Layout, kept: int, missing: bool
) -> None:
    text = everything().text(layout)
    between = _ends_of_events(text)[kept]
    assert [loss.rest_is_missing for loss in _read(tmp_path, text[:between]).losses] == [missing]
    within = _read(tmp_path, text[: between + 20])
    assert {loss.what: loss.rest_is_missing for loss in within.losses} == {LOST: False, CUT: True}


def test_a_missing_last_brace_hides_no_device_work(tmp_path: Path) -> None:
    text = everything().text(Layout.COMPACT)
    trace = _read(tmp_path, text[: text.rindex("]") + 1])
    assert device_rows(trace) == device_rows(_read(tmp_path, text))
    assert _whats(trace) == [("the closing brace is missing: the file may be cut", False)]


@pytest.mark.parametrize("layout", [Layout.COMPACT, Layout.ARRAY])
def test_of_two_documents_in_one_file_the_second_is_said_to_be_unread(tmp_path: Path, layout: Layout) -> None:
    text = everything().text(layout)
    trace = _read(tmp_path, text + "\n" + text)
    assert device_rows(trace) == device_rows(_read(tmp_path, text))
    (loss,) = trace.losses
    assert "a second document" in loss.what and loss.may_hide_device_work
    assert (loss.offset, loss.lost_bytes) == (len(text), len(text))


def test_of_two_event_arrays_in_one_object_the_second_is_said_to_be_unread(tmp_path: Path) -> None:
    text = everything().text(Layout.COMPACT)
    twice = text.rstrip().removesuffix("}") + ", " + text[text.index('"traceEvents"') :]
    trace = _read(tmp_path, twice)
    assert device_rows(trace) == device_rows(_read(tmp_path, text))
    assert ("a second event array in the same file: not read", True) in _whats(trace)


@pytest.mark.parametrize("layout", [Layout.COMPACT, Layout.ARRAY])
def test_zero_bytes_behind_the_end_are_said(tmp_path: Path, layout: Layout) -> None:
    text = everything().text(layout)
    trace = _read(tmp_path, text + "\x00" * 5_000)
    assert trace.losses == [Loss("zero bytes after the end: ignored", len(text), 5_000, 0, False)]


def test_zero_bytes_in_the_place_of_the_end_are_lost(tmp_path: Path) -> None:
    text = everything().text(Layout.COMPACT)
    ends = _ends_of_events(text)
    trace = _read(tmp_path, text[: ends[30]] + "\x00" * 5_000)
    assert sum(row.events for row in trace.inventory) == 31
    assert {LOST, CUT} <= {loss.what for loss in trace.losses}


def test_losses_of_one_kind_are_summed_up_at_their_first_place(tmp_path: Path) -> None:
    damaged = everything()
    for _ in range(3):
        _insert(damaged, _frame('"a"b"'))
    (loss,) = _read(tmp_path, damaged.text(Layout.COMPACT)).losses
    assert (loss.lost_events, loss.lost_bytes) == (3, 3 * len(_frame('"a"b"')))


# Stretches that are gone


SMALL, HOLE = 40, 20_000


def _long(events: int = 300) -> str:
    trace = TraceBuilder(flows=False)
    for number in range(events):
        start_ns = 1_000_000 + 10_000 * number
        trace.launch(f"void kernel<{number % 7}>()", call_ns=start_ns - 500, start_ns=start_ns, dur_ns=4_000)
    return trace.text()


@pytest.mark.parametrize("size", [SMALL, HOLE])
@pytest.mark.parametrize("fill", [b"\x00", b"\xff", b"\x00\x07\xf9"])
@pytest.mark.parametrize("place", ['"name": "void', '"name": "cudaL', '"ts": ', '"args": {', '"ph"', "},\n"])
def test_of_an_overwritten_stretch_no_byte_less_is_told_than_was_lost(
    tmp_path: Path, place: str, fill: bytes, size: int
) -> None:
    text = _long().encode()
    at = text.index(place.encode(), len(text) // 4) + len(place) - 1
    hole = (fill * size)[:size]
    trace = _read(tmp_path, text[:at] + hole + text[at + size :])
    assert sum(loss.lost_bytes for loss in trace.losses) >= size
    assert any(loss.may_hide_device_work for loss in trace.losses)


STARTS = ('"name": "void', '"name": "cudaL', '"ts": 1', '"External id": ', '"ph": "X')
ENDS = ('"name": "void', '"pid": ', '"dur": ', '"correlation": ', '"tid"')
LEFT_WHOLE = {
    ('"name": "cudaL', '"name": "void'),
    ('"ts": 1', '"pid": '),
    ('"External id": ', '"correlation": '),
}
"""Cuts after which valid JSON is left in which nothing is missing."""


@pytest.mark.parametrize("size", [SMALL, HOLE])
@pytest.mark.parametrize(("start", "end"), [pair for pair in product(STARTS, ENDS) if pair not in LEFT_WHOLE])
def test_of_a_stretch_that_was_cut_out_nobody_says_how_much_it_was(
    tmp_path: Path, start: str, end: str, size: int
) -> None:
    text = _long()
    low = text.index(start, len(text) // 4) + len(start)
    high = text.index(end, low + size) + len(end)
    trace = _read(tmp_path, text[:low] + text[high:])
    assert start == end or any(loss.at_least and loss.may_hide_device_work for loss in trace.losses)


@pytest.mark.parametrize(
    ("lack", "old", "new"),
    [
        (Lack.PHASE, '"ph": "X"', '"ph": "Xylo"'),
        (Lack.PHASE, '"ph": "X", ', ""),
        (Lack.NAME, '"name": "void kernel<3>()", ', ""),
        (Lack.NAME, '"name": "cudaLaunchKernel", ', ""),
        (Lack.TIME, '"ts": 2089.500, ', ""),
        (Lack.DURATION, ', "dur": 5.000', ""),
        (Lack.TRACK, '"pid": 4242, ', ""),
        (Lack.STREAM, '"stream": 7, ', ""),
        (Lack.OPERATION_ID, '"stream": 7, "correlation": 1109', '"stream": 7'),
        (Lack.BRACKET, "kernel<3>()", "kernel<3>("),
        (Lack.BRACKET, "kernel<3>()", "kernel<3()"),
    ],
)
def test_what_one_of_many_events_lacks_is_said(tmp_path: Path, lack: Lack, old: str, new: str) -> None:
    text = _long()
    assert old in text
    said = _read(tmp_path, text.replace(old, new, 1)).losses[0]
    assert said.what == f"1 {lack}, as the others have: pieces of others"
    assert said.may_hide_device_work and said.at_least


@pytest.mark.parametrize("field", ["name", "dur", "pid", "stream", "correlation"])
def test_what_all_events_lack_is_the_writers_way(tmp_path: Path, field: str) -> None:
    text = re.sub(rf', "{field}": ("[^"]*"|[\d.]+)', "", _long())
    assert text != _long()
    assert not any("as the others have" in loss.what for loss in _read(tmp_path, text).losses)


# Arguments that look like events


@pytest.mark.parametrize("layout", Layout)
def test_events_inside_the_arguments_of_an_event_are_none(tmp_path: Path, layout: Layout) -> None:
    inner = ", ".join([_frame(cat='"kernel"')] * 3)
    damaged = everything()
    _insert(damaged, _frame(args=f'{{"list": [{inner}], "one": {_frame()}}}'))
    trace, whole = _read(tmp_path, damaged.text(layout)), _read(tmp_path, everything().text(layout))
    assert trace.losses == []
    assert device_rows(trace) == device_rows(whole)
    assert len(trace.host) == len(whole.host) + 1


HOST = b'{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 2}'


@pytest.mark.parametrize(
    ("lost", "may"),
    [
        (HOST, False),
        (HOST.replace(b"aten", b'a"en'), False),
        (HOST.replace(b'"pid": 1, ', b""), True),
        (HOST.replace(b'"pid"', b'"ts": 1, "pid"'), True),
        (HOST + b",\n" + HOST, True),
        (HOST.replace(b'"tid": 1, "ts": ', b'"tid": 1"ts": '), True),
        (HOST.replace(b'"dur": 2', b'"dur": ": 7'), True),
        (HOST[:40], True),
        (HOST[40:], True),
        (b"NaN", True),
        (b'["ph", "X"]', True),
        (HOST[:-1] + b', "args": {"a": 1}}', False),
        (HOST[:-1] + b', "args": {"a": "b"c"}}', True),
        (b'{"ph": "s", "id": 7, "pid": 1, "ts": 1, "cat": "ac2g"}', True),
        (b'{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "pyt"hon"}}', False),
        (b'{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p", "dur": 5}', True),
        (HOST.replace(b"add", b"ab" * 2000), True),
        (HOST.replace(b"cpu_op", b"kernel"), True),
        (b'{"ph": "X", "ts": 1', True),
        (HOST[:40] + b"\x00" * 100, True),
        (HOST[:40] + b" " * 100, True),
        (HOST[:40] + b"ab" * 2000, True),
    ],
)
def test_only_a_whole_host_event_holds_no_device_work(lost: bytes, may: bool) -> None:
    assert may_hold_device_work(lost) is may
