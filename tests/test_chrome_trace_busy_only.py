"""Reading for a busy ratio alone gives the device table, graph launches and steps of a whole reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import chrome_sequential, chrome_trace
from parsers.byte_search import find_all
from parsers.chrome_block import Reading, pick_events
from parsers.chrome_categories import BUSY_ONLY_LITERALS, for_busy_ratio
from parsers.chrome_trace import read_chrome_trace
from parsers.trace_model import DeviceTrace
from tests.sample_traces import everything
from tests.test_chrome_trace_twin import FILES
from tests.trace_rows import device_rows, host_rows
from tests.writers.chrome import LEGACY_CATEGORIES, Layout


@pytest.fixture
def sparse_from_the_first_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome_trace, "SPARSE_FROM_BYTES", 0)


def _busy(path: Path, *, workers: int = 0) -> DeviceTrace:
    return read_chrome_trace(str(path), busy_only=True, workers=workers)


def _assert_same(busy: DeviceTrace, whole: DeviceTrace) -> None:
    assert busy.busy_only and not whole.busy_only
    assert device_rows(busy) == device_rows(whole)
    assert host_rows(busy) == [row for row in host_rows(whole) if for_busy_ratio(row.category, row.name)]
    assert busy.zero_timestamps == whole.zero_timestamps
    assert busy.collectives == whole.collectives


def _events(trace: DeviceTrace) -> int:
    return sum(row.events for row in trace.inventory)


@pytest.mark.real_data
@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("sparse_from_the_first_byte")
def test_real_files_give_the_same_device_work(data_dir: Path, name: str) -> None:
    path = data_dir / "traces" / name
    whole, busy = read_chrome_trace(str(path), workers=0), _busy(path)
    if not len(whole.device_ops):
        assert not busy.busy_only and host_rows(busy) == host_rows(whole)
    else:
        _assert_same(busy, whole)


@pytest.mark.real_data
@pytest.mark.usefixtures("sparse_from_the_first_byte")
def test_most_events_of_a_real_file_are_never_decoded(data_dir: Path) -> None:
    path = data_dir / "traces" / "h100_owlv2_large.json.gz"
    assert _events(_busy(path)) < _events(read_chrome_trace(str(path))) / 10


@pytest.mark.parametrize("piece_bytes", [1_500, 5_000, 1 << 22])
@pytest.mark.parametrize("layout", Layout)
@pytest.mark.usefixtures("sparse_from_the_first_byte")
def test_layouts_and_pieces_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: Layout, piece_bytes: int
) -> None:
    monkeypatch.setattr(chrome_sequential, "PIECE_BYTES", piece_bytes)
    path = everything().write(tmp_path / "t.json", layout=layout)
    whole, busy = read_chrome_trace(str(path), workers=0), _busy(path)
    _assert_same(busy, whole)
    is_sparse = layout in (Layout.NATIVE, Layout.INDENTED)
    assert (_events(busy) < _events(whole)) == is_sparse


@pytest.mark.usefixtures("sparse_from_the_first_byte")
def test_old_category_names_are_found(tmp_path: Path) -> None:
    path = everything(categories=LEGACY_CATEGORIES).write(tmp_path / "t.json")
    _assert_same(_busy(path), read_chrome_trace(str(path)))


def test_a_small_file_is_read_whole_and_gives_the_same(tmp_path: Path) -> None:
    path = everything().write(tmp_path / "t.json")
    whole, busy = read_chrome_trace(str(path)), _busy(path)
    _assert_same(busy, whole)
    assert _events(busy) == _events(whole)


EVENT_LIKE = {"ph": "X", "cat": "kernel", "name": "argument", "pid": 0, "tid": 7, "ts": 1, "dur": 2}


def spliced(elements: int) -> str:
    """A trace with an event that holds a list of event-like objects, between the separators of events."""
    trace = everything()
    trace.complete("cpu_op", "holds a list", 0, 5_000, args={"list": "HERE"})
    text = trace.text(Layout.NATIVE)
    inner = everything()
    inner.events = [EVENT_LIKE] * elements
    body = inner.text(Layout.NATIVE)
    start = body.index("[\n", body.index("traceEvents"))
    return text.replace('"HERE"', body[start : body.rindex("]") + 1])


@pytest.mark.parametrize("piece_bytes", [700, 5_000, 1 << 22])
@pytest.mark.parametrize("busy_only", [False, True])
@pytest.mark.usefixtures("sparse_from_the_first_byte")
def test_event_like_arguments_with_the_separators_of_events_are_no_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy_only: bool, piece_bytes: int
) -> None:
    monkeypatch.setattr(chrome_sequential, "PIECE_BYTES", piece_bytes)
    plain = everything().write(tmp_path / "plain.json")
    path = tmp_path / "spliced.json"
    path.write_text(spliced(elements=100))
    trace = read_chrome_trace(str(path), busy_only=busy_only, workers=0)
    assert trace.losses == []
    assert device_rows(trace) == device_rows(read_chrome_trace(str(plain)))


@pytest.mark.usefixtures("sparse_from_the_first_byte")
def test_begin_and_end_pairs_among_complete_events_are_read_whole(tmp_path: Path) -> None:
    trace = everything()
    for phase, ts in (("B", 1), ("E", 9)):
        trace.event(
            {"ph": phase, "ts": ts, "pid": 5, "tid": 5, **({"cat": "kernel"} if phase == "B" else {})}
        )
    path = trace.write(tmp_path / "t.json")
    busy = _busy(path)
    assert len(busy.device_ops) == len(device_rows(read_chrome_trace(str(path)))) == 22
    assert busy.losses == [] and busy.busy_only


@pytest.mark.usefixtures("sparse_from_the_first_byte")
def test_damage_next_to_device_work_is_seen(tmp_path: Path) -> None:
    text = everything().text().replace('"stream": 7', '"stream": 7 x', 1)
    (tmp_path / "t.json").write_text(text)
    (loss,) = _busy(tmp_path / "t.json").losses
    assert loss.lost_events == 1 and loss.may_hide_device_work


def test_a_reading_without_device_work_is_repeated_in_full(tmp_path: Path) -> None:
    trace = everything()
    trace.events = [e for e in trace.events if isinstance(e, dict) and e.get("cat") == "cpu_op"]
    read = _busy(trace.write(tmp_path / "t.json"))
    assert not read.busy_only and len(read.host) == 3


# The search itself


@given(st.text('ab"', max_size=60), st.lists(st.text('ab"', min_size=1, max_size=3), max_size=4))
def test_every_place_of_every_literal_is_found_or_overlaps_one_that_is(
    text: str, literals: list[str]
) -> None:
    places = [(at, at + len(one)) for one in literals for at in range(len(text)) if text.startswith(one, at)]
    found = find_all(text.encode(), tuple(literal.encode() for literal in literals))
    assert found == sorted(found) and set(found) <= {start for start, _ in places}
    ends = {start: max(end for s, end in places if s == start) for start in found}
    assert all(any(f < end and start < ends[f] for f in found) for start, end in places)


def test_literals_are_bytes_like_any_other() -> None:
    text = b"\x00ab\xff\x00ab" + bytes(5) + b"b"
    assert find_all(text, (b"ab", b"\xff\x00", b'"')) == [1, 3, 5]


_PIECES = st.lists(st.sampled_from(["{k}", "{x}", "{k k}", "{}", "{x x x}"]), min_size=1)


@given(_PIECES)
def test_the_picked_events_are_those_that_hold_a_literal(events: list[str]) -> None:
    text = "},\n{".join(event.strip("{}") for event in events)
    picked = pick_events(f"{{{text}}}".encode(), b"},\n{", (b"k",))
    assert picked.decode() == ",".join(event for event in events if "k" in event)


def test_the_literals_of_the_busy_ratio_hold_for_every_event_it_needs() -> None:
    needed: dict[str, Any] = {
        "cuda_runtime": "cudaGraphLaunch",
        "user_annotation": "ProfilerStep#3",
        "Trace": "PyTorch Profiler (0)",
    }
    for category, name in needed.items():
        assert for_busy_ratio(category, name)
        text = f'"cat": "{category}", "name": "{name}"'.encode()
        assert any(literal in text for literal in BUSY_ONLY_LITERALS)
    assert Reading(busy_only=True).separator is None
