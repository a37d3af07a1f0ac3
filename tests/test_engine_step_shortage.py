"""A decode step that runs out of memory half-way: repeated, it makes what it would have made at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sample_engine.dtypes import BOOL
from sample_engine.errors import OutOfDeviceMemory
from tests.engine_decoding import Bench, Hall, Row, bench, prompt

PROMPTS = [prompt(index, 6) for index in range(4)]
PIECES_BYTES = (1 << 20, 1 << 16, 1 << 12, 1 << 9)
LEFT_BYTES = (0, 1 << 10, 1 << 12, 1 << 13, 1 << 14, 1 << 15)


def hog(allocate: Callable[[int], object], left_bytes: int) -> list[object]:
    """Take all memory but so much; it is released with the list."""
    taken, kept = list[object](), [allocate(1 << 9) for _ in range(left_bytes >> 9)]
    for size_bytes in PIECES_BYTES:
        try:
            while True:
                taken.append(allocate(size_bytes))
        except OutOfDeviceMemory:
            pass
    kept.clear()
    return taken


def started(bench: Bench) -> Hall:
    """All prompts in slots, and their first step made."""
    hall = Hall(bench.stage, PROMPTS, most=len(PROMPTS))
    step(bench, hall.running(), hall)
    return hall


def step(bench: Bench, rows: list[Row], hall: Hall) -> None:
    pending = bench.stage.execute_launch([row.slot for row in rows])
    for row, frame in zip(rows, bench.stage.execute_resolve(pending), strict=True):
        hall.collect(row, frame)


def finished(bench: Bench, hall: Hall) -> list[list[tuple[int, ...]]]:
    while rows := hall.running():
        step(bench, rows, hall)
    return [row.made for row in hall.rows]


@pytest.mark.parametrize("radix_key", ["device", "host"])
def test_a_step_that_ran_out_of_device_memory_leaves_no_trace(radix_key: str) -> None:
    with bench(radix_key=radix_key) as some:
        expected = some.decode(PROMPTS)
        failed = 0
        for left_bytes in LEFT_BYTES:
            hall = started(some)
            taken = hog(lambda size_bytes: some.device.streams[0].empty((size_bytes,), BOOL), left_bytes)
            try:
                step(some, hall.running(), hall)
            except OutOfDeviceMemory:
                failed += 1
            taken.clear()
            assert finished(some, hall) == expected
        assert failed >= 2


def test_keys_of_the_host_need_no_more_pinned_memory_once_they_are_chosen() -> None:
    with bench(radix_key="host") as some:
        expected = some.decode(PROMPTS)
        hall = started(some)
        taken = hog(lambda size_bytes: some.device.pinned((size_bytes,), BOOL), 0)
        assert finished(some, hall) == expected
        assert taken
