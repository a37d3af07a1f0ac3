"""The large files that readers are timed with are what they claim to be: the source, over and over."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.trace_files import write_repeated
from parsers.chrome_trace import read_chrome_trace
from parsers.trace_model import DeviceTrace
from tests.sample_traces import everything
from tests.trace_rows import busy_ns_by_device, device_rows
from tests.trace_twin import text_of, twin_of_text
from tests.writers.chrome import EPOCH_ORIGIN_NS, Layout

COPIES = 3
FLAVOURS = ("native", "stacks")


def _repeated(folder: Path, flavour: str, source: Path, name: str = "out.json") -> DeviceTrace:
    """At least COPIES of the source."""
    copies = write_repeated(folder / name, flavour, COPIES * len(text_of(source)), source)
    assert copies >= COPIES
    return read_chrome_trace(str(folder / name))


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("layout", Layout)
def test_busy_time_and_events_are_those_of_the_source_times_the_copies(
    tmp_path: Path, flavour: str, layout: Layout
) -> None:
    source = everything(unit_ns=1_009, base_time_ns=None, origin_ns=EPOCH_ORIGIN_NS)
    path = source.write(tmp_path / "source.json", layout=layout)
    one, many = read_chrome_trace(str(path)), _repeated(tmp_path, flavour, path)
    copies = len(many.device_ops) // len(one.device_ops)
    busy = busy_ns_by_device(device_rows(one))
    assert busy_ns_by_device(device_rows(many)) == {device: copies * ns for device, ns in busy.items()}
    assert {(r.category, r.phase): copies * r.events for r in one.inventory} == {
        (r.category, r.phase): r.events for r in many.inventory
    }
    assert many.losses == [] and many.meta.device_names == one.meta.device_names


def test_copies_follow_one_another_and_share_no_correlation(tmp_path: Path) -> None:
    path = everything().write(tmp_path / "source.json")
    many = _repeated(tmp_path, "native", path)
    rows = device_rows(many)
    starts = [row.start_ns for row in rows if row.name == "node_a"]
    assert len(set(starts)) == len(starts)
    launched = [row.correlation for row in rows if row.name == "other"]
    assert len(set(launched)) == len(launched)


def test_what_is_written_is_valid_json(tmp_path: Path) -> None:
    path = everything().write(tmp_path / "source.json.gz")
    for flavour in FLAVOURS:
        many = _repeated(tmp_path, flavour, path)
        assert twin_of_text((tmp_path / "out.json").read_bytes()).device == sorted(device_rows(many))


def test_packed_and_plain_files_hold_the_same_text(tmp_path: Path) -> None:
    path = everything().write(tmp_path / "source.json")
    plain, packed = _repeated(tmp_path, "stacks", path), _repeated(tmp_path, "stacks", path, "out.json.gz")
    assert plain.text_bytes == packed.text_bytes and packed.size_bytes < plain.size_bytes / 2
    assert device_rows(plain) == device_rows(packed)


@pytest.mark.parametrize(("flavour", "frames"), [("native", False), ("stacks", True)])
def test_without_a_source_a_made_up_trace_is_used(tmp_path: Path, flavour: str, frames: bool) -> None:
    write_repeated(tmp_path / "out.json", flavour, 100_000)
    trace = read_chrome_trace(str(tmp_path / "out.json"))
    events = {row.category: row.events for row in trace.inventory}
    assert len(trace.device_ops) > 800
    assert (events["python_function"] > 5 * len(trace.device_ops)) == frames
