"""The same events give the same tables, however the file lays them out, packs them or writes its times."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from parsers.chrome_trace import read_chrome_trace
from parsers.trace_model import DeviceTrace
from tests.sample_traces import everything
from tests.trace_rows import device_rows, host_rows, tables
from tests.trace_twin import twin_of_text
from tests.writers.chrome import EPOCH_ORIGIN_NS, Layout, TimeFormat

CLOCKS: dict[str, dict[str, Any]] = {
    "since base time": {},
    "since the epoch": {"base_time_ns": None, "origin_ns": EPOCH_ORIGIN_NS},
}


def _read(path: Path, data: bytes) -> DeviceTrace:
    path.write_bytes(data)
    return read_chrome_trace(str(path))


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("time_format", TimeFormat)
@pytest.mark.parametrize("layout", Layout)
def test_layout_and_time_format_change_nothing(
    tmp_path: Path, layout: Layout, time_format: TimeFormat, clock: str
) -> None:
    reference = everything(**CLOCKS[clock])
    trace = everything(**CLOCKS[clock], time_format=time_format)
    one = _read(tmp_path / "a.json", reference.text(Layout.NATIVE).encode())
    other = _read(tmp_path / "b.json", trace.text(layout).encode())
    assert len(one.device_ops) == 21 and len(one.host) == 25
    assert one.losses == other.losses == []
    assert tables(one) == tables(other)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("layout", Layout)
def test_times_are_exact_to_the_nanosecond(tmp_path: Path, layout: Layout, clock: str) -> None:
    text = everything(unit_ns=1_009, **CLOCKS[clock]).text(layout).encode()
    trace, twin = _read(tmp_path / "t.json", text), twin_of_text(text)
    assert any(row.start_ns % 1_000 for row in twin.device)
    assert sorted(device_rows(trace)) == twin.device
    assert sorted(host_rows(trace)) == twin.host


def test_string_times_since_the_epoch_are_exact(tmp_path: Path) -> None:
    since_epoch = CLOCKS["since the epoch"]
    text = everything(unit_ns=1_009, **since_epoch, time_format=TimeFormat.STRING).text().encode()
    assert sorted(device_rows(_read(tmp_path / "t.json", text))) == twin_of_text(text).device


def test_gzip_is_told_by_content_and_not_by_name(tmp_path: Path) -> None:
    text = everything().text().encode()
    plain = _read(tmp_path / "a.json", text)
    named_gz = _read(tmp_path / "plain.json.gz", text)
    named_json = _read(tmp_path / "packed.json", gzip.compress(text))
    assert tables(plain) == tables(named_gz) == tables(named_json)
    assert plain.text_bytes == named_gz.text_bytes == named_json.text_bytes == len(text)
    assert plain.sha256 == named_gz.sha256 != named_json.sha256


def test_gzip_of_several_members_with_padding_is_one_text(tmp_path: Path) -> None:
    text = everything().text().encode()
    third = len(text) // 3
    members = [
        gzip.compress(text[:third]),
        gzip.compress(text[third : 2 * third]),
        gzip.compress(text[2 * third :]),
    ]
    trace = _read(tmp_path / "t.gz", (b"\x00" * 5).join(members) + b"\x00" * 3_000_000)
    assert trace.losses == []
    assert trace.text_bytes == len(text)


def test_order_of_keys_changes_nothing(tmp_path: Path) -> None:
    document = json.loads(everything().text(Layout.COMPACT))
    shuffle = random.Random(1)
    document["traceEvents"] = [_shuffled(shuffle, event) for event in document["traceEvents"]]
    straight = _read(tmp_path / "a.json", everything().text(Layout.COMPACT).encode())
    shuffled = _read(tmp_path / "b.json", json.dumps(document).encode())
    assert tables(straight) == tables(shuffled)


def _shuffled(source: random.Random, event: dict[str, Any]) -> dict[str, Any]:
    keys = source.sample(list(event), len(event))
    return {key: _shuffled(source, v) if isinstance(v := event[key], dict) else v for key in keys}


@pytest.mark.parametrize("layout", [Layout.NATIVE, Layout.INDENTED, Layout.COMPACT])
def test_metadata_may_stand_behind_the_events(tmp_path: Path, layout: Layout) -> None:
    before, behind = everything(), everything()
    behind.footer = {**behind.header, **behind.footer}
    behind.header = {"schemaVersion": 1}
    one = _read(tmp_path / "a.json", before.text(layout).encode())
    other = _read(tmp_path / "b.json", behind.text(layout).encode())
    assert other.losses == []
    assert tables(one) == tables(other)
    assert one.meta == other.meta
    assert set(one.meta.device_names) == {0, 1} and one.meta.rank == 3 and one.meta.world_size == 8


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    for layout in (Layout.NATIVE, Layout.ARRAY):
        text = everything().text(layout).encode()
        plain, marked = _read(tmp_path / "a.json", text), _read(tmp_path / "b.json", b"\xef\xbb\xbf" + text)
        assert tables(plain) == tables(marked) and marked.losses == []


def test_escaped_text_is_read_as_what_it_stands_for(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "Ω/\t\U0001f600", "pid": 0, "tid": 7, "ts": 1, "dur": 2}
    plain = json.dumps([event], ensure_ascii=False)
    escaped = "[{" + ", ".join(f"{_escaped(key)}: {_escaped(value)}" for key, value in event.items()) + "}]"
    assert "ph" not in escaped and "kernel" not in escaped
    one, other = _read(tmp_path / "a.json", plain.encode()), _read(tmp_path / "b.json", escaped.encode())
    assert device_rows(one) == device_rows(other) and one.names == ["Ω/\t\U0001f600"]


def _escaped(value: object) -> str:
    if not isinstance(value, str):
        return str(value)
    units = value.encode("utf-16-be").hex()
    return '"' + "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4)) + '"'
