"""The writer of chrome traces writes the times that it is given, and the same events in every layout."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.writers.chrome import (
    BASE_TIME_NS,
    EPOCH_ORIGIN_NS,
    LEGACY_CATEGORIES,
    Layout,
    Ns,
    TimeFormat,
    TraceBuilder,
)
from tests.writers.decode_loop import LAYER, LAYERS, SAMPLING, STEPS, decode_loop

TIMES = st.integers(min_value=-(10**20), max_value=10**20)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Co"]))


def read(trace: TraceBuilder, layout: Layout = Layout.NATIVE) -> Any:
    return json.loads(trace.text(layout), parse_float=Decimal)


def one_of_each() -> TraceBuilder:
    trace = TraceBuilder(devices=2)
    trace.distributed(rank=1, world_size=2)
    trace.name_process(4242, "python")
    trace.name_thread(0, 7, "stream 7")
    trace.annotation("ProfilerStep#1", 0, 90_000)
    trace.python_function("a.py(1): <lambda>", 0, 80_000)
    trace.cpu_op("aten::mm", 500, 7_000, args={"Input Dims": [[1, 8], [8, 8]]})
    trace.launch('void gemm<{lambda(int)#1}, "x">', call_ns=1_000, start_ns=20_001, dur_ns=50_000)
    trace.graph_launch(70_000, [("a", 75_000, 2_000), ("b", 78_000, 2_000)], graph_id=3)
    trace.memcpy("DtoH", 81_000, 1_000, nbytes=16)
    trace.memset(83_000, 500, device=1)
    trace.device_sync("Stream Sync", 81_000, 2_000)
    trace.gpu_user_annotation("ProfilerStep#1", 20_000, 61_000)
    trace.event({"ph": "C", "name": "counter", "ts": Ns(5), "args": {}})
    trace.profiler_span(0, 90_000)
    trace.record_window_end(90_000)
    return trace


def test_every_layout_holds_the_same_document() -> None:
    trace = one_of_each()
    native, indented, compact = (
        read(trace, layout) for layout in (Layout.NATIVE, Layout.INDENTED, Layout.COMPACT)
    )
    assert native == indented == compact
    assert read(trace, Layout.ARRAY) == native["traceEvents"]


def test_native_text_puts_keys_on_the_lines_where_kineto_has_them() -> None:
    trace = TraceBuilder()
    trace.kernel("k", 1_234, 2_000)
    assert trace.text().partition('"traceEvents": [\n')[2] == (
        "    {\n"
        '      "ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,\n'
        '      "ts": 1.234, "dur": 2.000,\n'
        '      "args": {\n'
        '        "device": 0, "stream": 7\n'
        "      }\n"
        "    }\n"
        "  ],\n"
        '  "traceName": "trace.json"\n'
        "}\n"
    )


@given(TIMES, TIMES, NAMES)
def test_times_and_names_come_back_exactly(start_ns: int, dur_ns: int, name: str) -> None:
    trace = TraceBuilder()
    trace.kernel(name, start_ns, dur_ns)
    for layout in (Layout.NATIVE, Layout.INDENTED, Layout.COMPACT):
        (event,) = read(trace, layout)["traceEvents"]
        assert (event["ts"] * 1000, event["dur"] * 1000, event["name"]) == (start_ns, dur_ns, name)


def test_the_newer_era_counts_from_a_base_and_the_older_from_the_epoch() -> None:
    newer, older = TraceBuilder(), TraceBuilder(base_time_ns=None, origin_ns=EPOCH_ORIGIN_NS)
    for trace in (newer, older):
        trace.kernel("k", 1, 1)
    assert read(newer)["baseTimeNanoseconds"] == BASE_TIME_NS
    assert "baseTimeNanoseconds" not in read(older)
    assert read(older)["traceEvents"][0]["ts"] * 1000 == EPOCH_ORIGIN_NS + 1


def test_time_formats() -> None:
    written = {}
    for time_format in TimeFormat:
        trace = TraceBuilder(time_format=time_format)
        trace.kernel("k", 5_000, 2_000)
        event = read(trace)["traceEvents"][0]
        written[time_format] = (event["ts"], event["dur"])
    assert written == {
        TimeFormat.DECIMAL: (Decimal("5.000"), Decimal("2.000")),
        TimeFormat.INTEGER: (5, 2),
        TimeFormat.STRING: ("5.000", Decimal("2.000")),
    }


def test_integer_times_refuse_what_they_cannot_hold() -> None:
    trace = TraceBuilder(time_format=TimeFormat.INTEGER)
    trace.kernel("k", 1, 1_000)
    with pytest.raises(ValueError, match="no whole microsecond"):
        trace.text()


def test_a_graph_launch_ties_all_nodes_to_one_call_and_one_arrow() -> None:
    trace = TraceBuilder()
    correlation = trace.graph_launch(0, [("a", 10, 1), ("b", 20, 1)])
    events = read(trace)["traceEvents"]
    assert [e["args"]["correlation"] for e in events if e["ph"] == "X"] == [correlation] * 3
    assert [(e["ph"], e["id"]) for e in events if e["ph"] in "sf"] == [("s", correlation), ("f", correlation)]


def test_each_launch_has_a_correlation_of_its_own() -> None:
    trace = TraceBuilder(flows=False)
    made = [trace.launch("k", call_ns=0, start_ns=1, dur_ns=1) for _ in range(3)]
    assert len(set(made)) == 3
    assert {e["ph"] for e in read(trace)["traceEvents"]} == {"X"}


def test_legacy_categories() -> None:
    trace = TraceBuilder(categories=LEGACY_CATEGORIES)
    trace.launch("k", call_ns=0, start_ns=1, dur_ns=1)
    assert {e["cat"] for e in read(trace)["traceEvents"]} == {"Kernel", "Runtime", "async"}


def test_damage_is_written_as_it_is() -> None:
    trace = TraceBuilder()
    trace.raw('{"ph": "X", "name": "C:\\c"')
    assert '{"ph": "X", "name": "C:\\c"' in trace.text()


def test_a_gz_name_is_gzipped_and_the_same_events_give_the_same_bytes(tmp_path: Path) -> None:
    first = one_of_each().write(tmp_path / "a.json.gz").read_bytes()
    assert one_of_each().write(tmp_path / "b.json.gz").read_bytes() == first
    assert gzip.decompress(first) == one_of_each().write(tmp_path / "a.json").read_bytes()


def test_the_demo_loop_launches_each_kernel_after_the_one_before_has_ended() -> None:
    device_work = [e for e in read(decode_loop())["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy")]
    ends = [e["ts"] + e["dur"] for e in device_work]
    assert all(end < following["ts"] for end, following in zip(ends, device_work[1:], strict=False))
    assert len(device_work) == STEPS * (LAYERS * len(LAYER) + len(SAMPLING) + 1)
