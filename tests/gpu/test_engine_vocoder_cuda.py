"""The engine's vocoder on a GPU: the same code, and what it promises there (equal bits at equal shape)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU that torch can use", allow_module_level=True)

from sample_engine.cuda import CudaDevice  # noqa: E402 (needs the GPU)
from tests.engine_vocoding import Studio, codes_of, studio_on  # noqa: E402

BUDGET_BYTES = 2 << 30
LENGTHS = (1, 4, 5, 8, 13, 25, 100)
SLOTS = 5


@pytest.fixture(scope="module")
def device() -> Iterator[CudaDevice]:
    with CudaDevice(BUDGET_BYTES) as opened:
        yield opened


@pytest.fixture(scope="module")
def eager(device: CudaDevice) -> Iterator[Studio]:
    with studio_on(device, vocoder_batch="exact-length", vocoder_max_batch=8) as made:
        yield made


@pytest.mark.parametrize("frames", LENGTHS)
def test_a_replayed_batch_of_any_slots_sounds_as_an_eager_one(
    device: CudaDevice, eager: Studio, frames: int
) -> None:
    with studio_on(device, vocoder_batch="exact-length", vocoder_max_batch=8) as graphed:
        graphed.stage.capture({frames: 1}, 1.0, BUDGET_BYTES)
        assert graphed.stage.graphs.failure == ""
        slots = eager.open(SLOTS), graphed.open(SLOTS)
        for turn in range(12):
            order = np.random.default_rng(turn).permutation(SLOTS)[: 1 + turn % SLOTS]
            codes = [codes_of(turn * SLOTS + n, frames) for n in range(len(order))]
            made = [
                some.speak(*zip([own[one] for one in order], codes, strict=True))
                for some, own in zip((eager, graphed), slots, strict=True)
            ]
            np.testing.assert_array_equal(made[0], made[1])
        assert graphed.count("graph_eager") == 0
        eager.close(slots[0])


def test_at_equal_shape_a_stream_does_not_hear_its_neighbours(eager: Studio) -> None:
    slots, codes = eager.open(4), codes_of(0, 5)
    with_some, with_others = (
        eager.speak((slots[first], codes), (slots[first + 1], codes_of(seed, 5)))[0]
        for first, seed in ((0, 1), (2, 2))
    )
    np.testing.assert_array_equal(with_some, with_others)
    eager.close(slots)


def test_a_stream_in_chunks_sounds_as_in_one_piece(eager: Studio) -> None:
    codes = codes_of(3, 60)
    whole = eager.stream(codes, [60]).astype(float)
    np.testing.assert_allclose(eager.stream(codes, [5] * 12), whole, rtol=0, atol=2)
