"""The engine's vocoder when device memory is short: smaller launches, later launches, and nothing lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from sample_engine.device import Buffer
from sample_engine.dtypes import FLOAT32
from sample_engine.errors import OutOfDeviceMemory
from sample_engine.primitives.ops import size_bytes as size_bytes_of
from tests.engine_vocoding import Samples, Studio, codes_of, device_for_vocoders, studio_on

FRAMES = 50
STREAMS = 8
SAMPLES = FRAMES * 1920
BUDGET_BYTES = 64 << 20
MIB, PIECE_BYTES = 1 << 20, 1 << 15


@pytest.fixture(scope="module")
def expected() -> list[Samples]:
    """What streams of two chunks, and one of one frame, sound like where memory abounds."""
    with device_for_vocoders() as device, studio_on(device) as some:
        streams = [some.stream(codes_of(n, 2 * FRAMES), [FRAMES] * 2) for n in range(STREAMS)]
        return [*streams, some.stream(codes_of(STREAMS, 1), [1])]


@contextmanager
def narrow(**options: Any) -> Iterator[Studio]:
    with device_for_vocoders(BUDGET_BYTES) as device, studio_on(device, **options) as made:
        yield made


def hog(some: Studio, left_bytes: int) -> list[Buffer]:
    """Take all memory but so much; it is released with the list."""
    taken: list[Buffer] = []
    for size_bytes in (MIB, PIECE_BYTES):
        try:
            while True:
                taken.append(some.device.streams[0].empty((size_bytes // 4,), FLOAT32))
        except OutOfDeviceMemory:
            pass
    while left_bytes > 0:
        left_bytes -= size_bytes_of(taken.pop())
    return taken


def test_a_batch_that_does_not_fit_runs_in_parts_and_is_counted(expected: list[Samples]) -> None:
    with narrow(vocoder_batch="exact-length") as some:
        slots = some.open(STREAMS)
        codes = [np.split(codes_of(n, 2 * FRAMES), 2) for n in range(STREAMS)]
        some.speak(*((slot, codes[n][0]) for n, slot in enumerate(slots)))
        steps = some.count("steps")
        chunks = [some.chunk(slot, codes[n][1]) for n, slot in enumerate(slots)]
        held = hog(some, 3 * MIB)
        made = [one.samples for one in some.stage.execute_resolve(some.stage.execute_launch(chunks))]
        del held
        assert some.count("allocation_retries") > 0
        assert some.count("steps") - steps > 1
        np.testing.assert_array_equal(made, [one[SAMPLES:] for one in expected[:STREAMS]])


def test_a_chunk_that_does_not_fit_leaves_no_trace_and_runs_after_a_release(expected: list[Samples]) -> None:
    with narrow() as some:
        [slot] = some.open()
        codes = np.split(codes_of(0, 2 * FRAMES), 2)
        some.speak((slot, codes[0]))
        chunk, steps = some.chunk(slot, codes[1]), some.count("steps")
        for pieces in range(1, 13):  # memory ends in another layer each time
            held = hog(some, pieces * PIECE_BYTES)
            with pytest.raises(OutOfDeviceMemory):
                some.stage.execute_launch([chunk])
            del held
        assert some.count("steps") == steps
        [made] = some.stage.execute_resolve(some.stage.execute_launch([chunk]))
        np.testing.assert_array_equal(made.samples, expected[0][SAMPLES:])


def test_what_fits_is_run_and_the_rest_waits_for_a_release(expected: list[Samples]) -> None:
    with narrow() as some:
        slots, codes = some.open(2), np.split(codes_of(0, 2 * FRAMES), 2)
        some.speak((slots[1], codes[0]))
        chunks = [some.chunk(slots[0], codes_of(STREAMS, 1)), some.chunk(slots[1], codes[1])]
        held = hog(some, MIB // 2)
        pending = some.stage.execute_launch(chunks)
        assert some.count("allocation_retries") == 1
        for _ in range(2):
            with pytest.raises(OutOfDeviceMemory):
                some.stage.execute_resolve(pending)
        with pytest.raises(OutOfDeviceMemory, match="earlier call"):
            some.stage.execute_launch(chunks)
        del held
        made = [one.samples for one in some.stage.execute_resolve(pending)]
        np.testing.assert_array_equal(made[0], expected[STREAMS])
        np.testing.assert_array_equal(made[1], expected[0][SAMPLES:])


def test_without_memory_for_graphs_steps_are_eager(expected: list[Samples]) -> None:
    with narrow(cuda_graph=True, graph_budget_bytes=1) as some:
        assert some.stage.graphs.captured == []
        made = some.stream(codes_of(0, 2 * FRAMES), [FRAMES] * 2)
        np.testing.assert_array_equal(made, expected[0])
        assert some.stage.graphs.coverage.share == 0


def test_a_length_whose_graphs_do_not_fit_is_passed_over_for_one_that_does() -> None:
    """Fifty frames occur most, yet only what occurs less often fits."""
    with narrow(vocoder_batch="exact-length") as some:
        some.stage.capture({FRAMES: 5, 2: 1}, 1.0, 4 * MIB)
        assert {one.frames for one in some.stage.graphs.captured} == {2}
        assert some.stage.graphs.failure == ""


def test_a_capture_that_runs_out_of_memory_ends_graphs_for_good(expected: list[Samples]) -> None:
    with narrow(vocoder_batch="exact-length") as some:
        held = hog(some, MIB // 2)
        some.stage.capture({FRAMES: 1}, 1.0, BUDGET_BYTES)
        del held
        assert (some.stage.graphs.captured, some.count("graph_failures")) == ([], 1)
        some.stage.capture({1: 1}, 1.0, BUDGET_BYTES)
        assert some.stage.graphs.captured == []
        np.testing.assert_array_equal(some.stream(codes_of(0, 2 * FRAMES), [FRAMES] * 2), expected[0])
        assert some.stage.graphs.coverage.share == 0


def test_chunks_that_are_given_up_make_way_for_later_ones(expected: list[Samples]) -> None:
    with narrow() as some:
        slots, codes = some.open(2), codes_of(STREAMS, 1)
        chunks = [some.chunk(slots[0], codes), some.chunk(slots[1], codes_of(0, FRAMES))]
        later = some.chunk(slots[1], codes)
        held = hog(some, MIB // 2)
        pending = some.stage.execute_launch(chunks)
        with pytest.raises(OutOfDeviceMemory):
            some.stage.execute_resolve(pending)
        some.stage.give_up(pending)
        [made] = some.stage.execute_resolve(some.stage.execute_launch([later]))
        np.testing.assert_array_equal(made.samples, expected[STREAMS])
        del held
