"""Memory stays bounded whatever a file holds: each is read by a process of its own, whose peak is measured.

The limits are generous (a reader of this format that holds the text takes four times its size and more), so
that they fail where something grows with the file, and nowhere else.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

MEGABYTE = 1 << 20
CHILD = """
import json, resource, sys
from parsers import text_stream
from parsers.chrome_trace import read_chrome_trace
from parsers.errors import UnreadableInput
text_stream.BOMB_FLOOR_BYTES = 64 << 20
unit = 1 if sys.platform == "darwin" else 1024
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
try:
    trace = read_chrome_trace(sys.argv[1], workers=0)
    losses = [(loss.what, loss.may_hide_device_work) for loss in trace.losses]
    events = sum(row.events for row in trace.inventory)
    found = {"device": len(trace.device_ops), "events": events, "losses": losses}
except UnreadableInput as refused:
    found = {"refused": str(refused)}
found["grown"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit - before
print(json.dumps(found))
"""
KERNEL = b'{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2}'
FRAME = (
    b'{"ph": "X", "cat": "python_function", "name": %s, "pid": 1, "tid": 1, "ts": 1, "dur": 99, "args": %s}'
)
BEGINNING = b'{"schemaVersion": 1, "traceEvents": [\n' + KERNEL + b",\n"
END = KERNEL + b"\n]}"


@dataclass(frozen=True)
class Found:
    """What the child read, and by how much its memory grew for it."""

    device: int = 0
    events: int = 0
    losses: tuple[tuple[str, bool], ...] = ()
    refused: str = ""
    grown: int = 0

    def hides(self) -> bool:
        return any(hides for _, hides in self.losses)


def _read(path: Path, pieces: Iterator[bytes]) -> Found:
    with path.open("wb") as file:
        file.writelines(pieces)
    return _child(path)


def _child(path: Path) -> Found:
    child = [sys.executable, "-c", CHILD, str(path)]
    done = subprocess.run(child, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    return Found(**{**found, "losses": tuple(map(tuple, found.get("losses", ())))})


def _around(middle: Iterator[bytes]) -> Iterator[bytes]:
    yield BEGINNING
    yield from middle
    yield END


def _member(text: bytes, times: int) -> Iterator[bytes]:
    packed = gzip.compress(text, mtime=0)
    return (packed for _ in range(times))


def _bomb(text: bytes, times: int) -> Iterator[bytes]:
    yield gzip.compress(BEGINNING)
    yield from _member(text, times)


@pytest.mark.parametrize(
    "text", [bytes(4 * MEGABYTE), (KERNEL + b",\n" + b" " * 50_000) * 80], ids=["zeros", "events"]
)
def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path, text: bytes) -> None:
    found = _read(tmp_path / "bomb.gz", _bomb(text, times=500))
    assert "refused as a gzip bomb" in found.refused
    assert found.grown < 100 * MEGABYTE


def test_a_bomb_of_nothing_but_zeros_is_refused_as_no_trace(tmp_path: Path) -> None:
    found = _read(tmp_path / "bomb.gz", _member(bytes(4 * MEGABYTE), times=500))
    assert "not a chrome trace" in found.refused
    assert found.grown < 100 * MEGABYTE


def test_an_array_of_blanks_that_never_ends_is_no_trace(tmp_path: Path) -> None:
    found = _read(tmp_path / "t.json", (b" " * MEGABYTE for _ in range(60)))
    assert "not a chrome trace" in found.refused
    assert found.grown < 100 * MEGABYTE


Pieces = Callable[[], Iterator[bytes]]


def _string(size: int) -> Iterator[bytes]:
    opening, closing = (FRAME % (b'"@"', b"{}")).split(b"@")
    yield opening
    yield from (b"long name " * (MEGABYTE // 10) for _ in range(size // MEGABYTE))
    yield closing + b",\n"


def _broken(events: int) -> Iterator[bytes]:
    return (FRAME % (b'"a"b"', b"{}") + b",\n" for _ in range(events))


def _names(events: int, size: int) -> Iterator[bytes]:
    return (FRAME % (b'"%06d%s"' % (i, b"x" * size), b"{}") + b",\n" for i in range(events))


def _varied(events: int, field: bytes) -> Iterator[bytes]:
    frame = FRAME % (b'"n"', b"{}")
    return (frame.replace(field, field[: field.index(b":")] + b': "%d"' % i) + b",\n" for i in range(events))


def _begun(events: int) -> Iterator[bytes]:
    return (
        b'{"ph": "B", "name": "never ends", "pid": 1, "tid": %d, "ts": 1},\n' % (i % 7) for i in range(events)
    )


HOSTILE: dict[str, tuple[Pieces, int]] = {
    "one string of 100 MB": (lambda: _string(100 * MEGABYTE), 150),
    "a million opening brackets": (
        lambda: iter([FRAME % (b'"n"', b'{"x": ' + b"[" * 1_000_000), b",\n"]),
        150,
    ),
    "a million opening braces": (lambda: iter([FRAME % (b'"n"', b'{"x":' * 1_000_000), b",\n"]), 150),
    "arguments a million deep": (
        lambda: iter([FRAME % (b'"n"', b'{"x":%s}' % (b"[" * 10**6 + b"]" * 10**6)), b",\n"]),
        150,
    ),
    "a hundred thousand long names": (lambda: _names(100_000, 1_000), 250),
    "a hundred thousand categories": (lambda: _varied(100_000, b'"cat": "python_function"'), 150),
    "a hundred thousand phases": (lambda: _varied(100_000, b'"ph": "X"'), 150),
    "a hundred and fifty thousand threads": (lambda: _varied(150_000, b'"tid": 1'), 200),
    "thirty thousand broken events": (lambda: _broken(30_000), 150),
    "fifty thousand ranges that never end": (lambda: _begun(50_000), 150),
    "escaped quotes without end": (lambda: iter([FRAME % (b'"' + b'\\"' * 500_000, b"{}"), b",\n"]), 150),
    "comments without end": (lambda: iter([FRAME % (b'"n"', b"{" + b"/*," * 300_000 + b"}"), b",\n"]), 150),
    "30 MB of zeros": (lambda: iter([bytes(30 * MEGABYTE), b",\n"]), 150),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_events_cost_neither_memory_nor_the_device_work_around_them(
    tmp_path: Path, case: str
) -> None:
    pieces, megabytes = HOSTILE[case]
    found = _read(tmp_path / "t.json", _around(pieces()))
    assert found.device == 2 or (found.device == 1 and found.hides())
    assert found.grown < megabytes * MEGABYTE


def test_an_event_array_that_never_closes_is_read_to_its_end(tmp_path: Path) -> None:
    frame = FRAME % (b'"short"', b"{}") + b",\n"
    found = _read(tmp_path / "t.json", iter([BEGINNING, *[frame * 1_000] * 300, KERNEL]))
    assert (found.device, found.events) == (2, 300_002)
    assert found.hides() and found.grown < 150 * MEGABYTE


@pytest.mark.parametrize("closed", [True, False])
def test_a_long_tail_of_zeros_is_passed_over(tmp_path: Path, closed: bool) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(BEGINNING + END[: None if closed else len(KERNEL)])
    with path.open("r+b") as file:
        file.truncate(60 * MEGABYTE)
    found = _child(path)
    assert found.device == 2 and found.grown < 100 * MEGABYTE
    assert found.hides() != closed and found.losses
