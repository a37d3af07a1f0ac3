"""No damage to a trace stops the reader, and none passes for a sound result.

What must hold of any damaged text: nothing but an error of perfkit's own is raised, and only where no event
array can be found; events that the damage did not touch are read, or stand behind what is said to look like
the end of the trace; a text that is no valid JSON has a loss; a text that is gives the slow reader's tables,
or a loss says that device work may be hidden; and without such a loss the device numbers are those of the
sound text. PERFKIT_FUZZ_EXAMPLES sets how many damages are tried.
"""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parsers import chrome_sequential, chrome_trace
from parsers.chrome_trace import read_chrome_trace
from parsers.errors import UnreadableInput
from parsers.trace_model import DeviceTrace
from tests.corruptor import Damaged, Target, damages, mangled, target_of
from tests.sample_traces import everything
from tests.trace_rows import DeviceRow, device_rows, host_rows, inventory
from tests.trace_twin import Twin, text_of, twin_of_text
from tests.writers.chrome import EPOCH_ORIGIN_NS, Layout

ASKED = os.environ.get("PERFKIT_FUZZ_EXAMPLES")
EXAMPLES = int(ASKED or 50)
fuzz = settings(
    max_examples=EXAMPLES,
    derandomize=ASKED is None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
REAL_FILES = ("mi250_rocm.json.gz", "vllm_decode_graph_mi300.json.gz", "alexnet_idle.json.gz")


@cache
def _sample(layout: Layout, since_epoch: bool) -> Target:
    clock = {"base_time_ns": None, "origin_ns": EPOCH_ORIGIN_NS} if since_epoch else {}
    return target_of(everything(unit_ns=1_009, **clock).text(layout).encode())


@cache
def _real(path: Path) -> Target:
    return target_of(text_of(path))


@cache
def _rows_of(target: Target) -> list[list[DeviceRow]]:
    """The device rows of each event of a sound text, none or one."""
    return [twin_of_text(b"[" + target.text[start:end] + b"]").device for start, end in target.events]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "t.json"


def _read(path: Path, data: bytes, *, busy_only: bool = False) -> DeviceTrace | None:
    path.write_bytes(data)
    try:
        return read_chrome_trace(str(path), workers=0, busy_only=busy_only)
    except UnreadableInput as refused:
        assert str(path) in str(refused) and "\n" not in str(refused)
        return None


def _twin(text: bytes) -> Twin | None:
    """What the slow reader makes of the text, None where it is no valid JSON or holds things of odd types."""
    try:
        return twin_of_text(text)
    except (ValueError, ArithmeticError, TypeError, AttributeError, KeyError, RecursionError):
        return None


def _numbers(rows: Iterable[DeviceRow]) -> Counter[tuple[object, ...]]:
    """What a busy ratio is made of."""
    return Counter((row.start_ns, row.end_ns, row.kind, row.device) for row in rows)


def _check(path: Path, target: Target, damaged: Damaged) -> None:
    trace = _read(path, damaged.text)
    ahead = damaged.at <= target.events[0][0]
    if trace is None:
        assert ahead or damaged.at <= target.events[0][1] + 3
        return
    sound = _rows_of(target)
    read, hidden = device_rows(trace), any(loss.may_hide_device_work for loss in trace.losses)
    untouched = [row for i, rows in enumerate(sound) for row in rows if i not in damaged.touched]
    ends_early = any("after the end" in loss.what for loss in trace.losses)
    assert not Counter(untouched) - Counter(read) or (hidden and (ahead or ends_early))
    twin = _twin(damaged.text)
    if twin is None:
        assert trace.losses
        assert (
            hidden or damaged.traceless or _numbers(read) == _numbers(row for rows in sound for row in rows)
        )
    elif not trace.losses:
        assert sorted(read) == twin.device and sorted(host_rows(trace)) == twin.host
        assert inventory(trace) == twin.inventory and trace.zero_timestamps == twin.zero_timestamps
    else:
        assert hidden or _numbers(read) == _numbers(twin.device)


@pytest.mark.parametrize("since_epoch", [False, True])
@pytest.mark.parametrize("layout", Layout)
@given(data=st.data())
@fuzz
def test_of_a_damaged_trace_all_that_survives_is_read_and_the_rest_is_said(
    path: Path, layout: Layout, since_epoch: bool, data: st.DataObject
) -> None:
    target = _sample(layout, since_epoch)
    _check(path, target, data.draw(damages(target)))


@given(data=st.data())
@fuzz
def test_pieces_that_end_anywhere_change_nothing(path: Path, data: st.DataObject) -> None:
    target = _sample(data.draw(st.sampled_from(Layout)), False)
    damaged = data.draw(damages(target))
    whole = _read(path, damaged.text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chrome_sequential, "PIECE_BYTES", data.draw(st.integers(400, 5_000)))
        pieces = _read(path, damaged.text)
    assert (whole is None) == (pieces is None)
    if whole is not None and pieces is not None:
        assert device_rows(whole) == device_rows(pieces) and host_rows(whole) == host_rows(pieces)
        assert whole.losses == pieces.losses and whole.meta == pieces.meta


@pytest.mark.parametrize("busy_only", [False, True])
@given(data=st.data())
@fuzz
def test_however_mangled_a_text_is_what_it_lost_is_said(
    path: Path, busy_only: bool, data: st.DataObject
) -> None:
    text = data.draw(mangled(_sample(data.draw(st.sampled_from(Layout)), False).text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chrome_trace, "SPARSE_FROM_BYTES", 0)
        patch.setattr(chrome_sequential, "PIECE_BYTES", data.draw(st.sampled_from([1_000, 4_000, 1 << 21])))
        trace = _read(path, text, busy_only=busy_only)
    twin = _twin(text)
    if trace is not None and not trace.losses:
        assert busy_only or twin is not None
        assert twin is None or sorted(device_rows(trace)) == twin.device


@pytest.mark.real_data
@pytest.mark.parametrize("name", REAL_FILES)
@given(data=st.data())
@settings(fuzz, max_examples=EXAMPLES // 2)
def test_of_a_damaged_real_trace_all_that_survives_is_read_and_the_rest_is_said(
    data_dir: Path, path: Path, name: str, data: st.DataObject
) -> None:
    target = _real(data_dir / "traces" / name)
    _check(path, target, data.draw(damages(target)))


@given(data=st.data(), flip=st.booleans())
@fuzz
def test_of_a_damaged_gzip_only_true_device_work_is_read(path: Path, data: st.DataObject, flip: bool) -> None:
    target = _sample(Layout.NATIVE, False)
    packed = bytearray(gzip.compress(target.text, mtime=0))
    at = data.draw(st.integers(12, len(packed) - 1))
    if flip:
        packed[at] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del packed[at:]
    trace = _read(path, bytes(packed))
    if trace is not None:
        sound = Counter(row for rows in _rows_of(target) for row in rows)
        read = Counter(device_rows(trace))
        assert any(loss.may_hide_device_work for loss in trace.losses) or read == sound
        assert flip or not read - sound
