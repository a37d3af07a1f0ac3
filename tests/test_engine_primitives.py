"""Primitives of the engine against plain definitions in numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_engine.device import Buffer
from sample_engine.dtypes import BOOL, FLOAT32, INT64
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.models.transformer import make_decode_places
from sample_engine.models.weights import Weights
from sample_engine.primitives import convolution, ring, sampling
from sample_engine.primitives.attention import prefill_places, write_cache
from sample_engine.primitives.ops import Ops
from tests.engine_builders import Array, download, small_device, upload

CLOSE = 1e-5
HEADS, POSITIONS, WIDTH = 2, 6, 8


@pytest.fixture(scope="module")
def device() -> Iterator[EmulatedDevice]:
    with small_device() as opened:
        yield opened


@pytest.fixture(scope="module")
def ops(device: EmulatedDevice) -> Ops:
    return Ops(device.streams[0])


def random(*shape: int, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def close(device: EmulatedDevice, buffer: Buffer, expected: Array) -> None:
    np.testing.assert_allclose(download(device, buffer), expected, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("rows", [4, 8, 64])
def test_linear_is_a_product(device: EmulatedDevice, ops: Ops, rows: int) -> None:
    x, weight = random(rows, 24), random(24, 10, seed=1)
    close(device, ops.linear(upload(device, x), upload(device, weight)), x @ weight)


def test_layer_norm_has_mean_of_its_bias_and_spread_of_its_gain(device: EmulatedDevice, ops: Ops) -> None:
    x = random(4, 16) * 5 + 3
    gain, bias = random(16, seed=1), random(16, seed=2)
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gain + bias
    close(device, ops.layer_norm(*(upload(device, one) for one in (x, gain, bias))), expected)


def test_embeddings_of_channels_are_summed_and_an_id_beyond_a_table_reads_its_last_row(
    device: EmulatedDevice, ops: Ops
) -> None:
    tables = [random(5, 8), random(7, 8, seed=1), random(7, 8, seed=2)]
    ids = np.array([[0, 6, 3], [4, 0, 0], [1000, 2, 2], [3, 1, 6]])
    expected = tables[0][np.minimum(ids[:, 0], 4)] + tables[1][ids[:, 1]] + tables[2][ids[:, 2]]
    close(device, ops.embed([upload(device, one) for one in tables], upload(device, ids)), expected)


@pytest.mark.parametrize(("items", "rows"), [(1, 4), (3, 1), (2, 5)])
def test_heads_are_split_and_merged_again(device: EmulatedDevice, ops: Ops, items: int, rows: int) -> None:
    x = random(items * rows, WIDTH)
    split = ops.split_heads(upload(device, x), items, HEADS)
    close(device, split, x.reshape(items, rows, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3))
    close(device, ops.merge_heads(split.view(items * HEADS, rows, WIDTH // HEADS), items), x)


def test_attention_is_softmax_of_scaled_scores(device: EmulatedDevice, ops: Ops) -> None:
    queries, keys, values = random(3, 2, 4), random(3, 7, 4, seed=1), random(3, 7, 4, seed=2)
    mask = np.where(random(3, 2, 7, seed=3) > 1, -np.inf, 0).astype(np.float32)
    weights = np.exp(queries @ keys.transpose(0, 2, 1) / 2 + mask)
    expected = weights / weights.sum(-1, keepdims=True) @ values
    close(device, ops.attend(*(upload(device, one) for one in (queries, keys, values, mask))), expected)


def test_a_live_slot_writes_at_its_position_and_sees_what_came_before(
    device: EmulatedDevice, ops: Ops
) -> None:
    position, live = np.array([2, 0, 5, 1]), np.array([True, True, True, False])
    made = make_decode_places(ops, 8, HEADS, POSITIONS)
    places = made.of(ops, upload(device, position), upload(device, live))
    at = np.where(live, position, POSITIONS)
    first = np.arange(4 * HEADS).reshape(4, HEADS) * (POSITIONS + 1)
    assert download(device, places.write).tolist() == (first + at[:, None]).ravel().tolist()
    seen = (download(device, places.mask) == 0).reshape(4, HEADS, POSITIONS + 1)
    assert seen.sum(2).tolist() == [[3] * HEADS, [1] * HEADS, [6] * HEADS, [2] * HEADS]
    assert seen[2, 0].tolist() == [True] * 6 + [False]


def test_a_chunk_of_prefill_writes_in_order_and_its_padding_into_the_last_position(
    device: EmulatedDevice, ops: Ops
) -> None:
    places = ops.stream.empty((HEADS, 4), INT64)
    mask = ops.stream.empty((HEADS, 4, POSITIONS + 1), FLOAT32)
    ops.stream.launch(prefill_places, (places, mask), (3, 2, 3))  # slot, start, rows
    first = (3 * HEADS + np.arange(HEADS))[:, None] * (POSITIONS + 1)
    assert download(device, places).tolist() == (first + np.array([2, 3, 4, POSITIONS])).tolist()
    assert (download(device, mask) == 0).sum(2).tolist() == [[3, 4, 5, 6]] * HEADS


def test_the_cache_is_written_at_the_places_alone(device: EmulatedDevice, ops: Ops) -> None:
    cache, rows = random(4, 3, 2), random(2, 2, seed=1)
    buffer = upload(device, cache)
    ops.stream.launch(write_cache, (buffer, upload(device, np.array([7, 2])), upload(device, rows)))
    cache.reshape(-1, 2)[[7, 2]] = rows
    np.testing.assert_array_equal(download(device, buffer), cache)


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(1, 5), min_size=1, max_size=6), taps=st.integers(2, 5))
def test_a_convolution_is_causal_and_does_not_see_how_its_stream_was_cut(
    device: EmulatedDevice, ops: Ops, cuts: list[int], taps: int
) -> None:
    items, channels, out = 4, 8, 16
    x, weight = random(items, sum(cuts), channels), random(taps * channels, out, seed=1)
    nothing = before = ops.filled((items, taps - 1, channels), 0.0)
    made, start = [], 0
    for length in cuts:
        chunk = upload(device, np.ascontiguousarray(x[:, start : start + length]))
        made.append(download(device, ops.causal_convolution(chunk, upload(device, weight), before)))
        before = ops.run(convolution.tail, before.shape, chunk, before)
        start += length
    padded = np.concatenate([np.zeros((items, taps - 1, channels), np.float32), x], 1)
    windows = np.stack([padded[:, time : time + taps].reshape(items, -1) for time in range(x.shape[1])], 1)
    np.testing.assert_allclose(np.concatenate(made, 1), windows @ weight, rtol=CLOSE, atol=CLOSE)
    at_once = download(device, ops.causal_convolution(upload(device, x), upload(device, weight), nothing))
    np.testing.assert_array_equal(np.concatenate(made, 1), at_once)


def test_a_slot_recalls_what_it_left_behind_and_nothing_at_its_start(
    device: EmulatedDevice, ops: Ops
) -> None:
    carry, slots, offset = random(5, 2, 3), np.array([3, 0, 4]), np.array([7, 1, 1, 9, 0])
    where = upload(device, slots)
    new = ops.run(convolution.at_start, (3,), where, upload(device, offset), dtype=BOOL)
    recalled = ops.run(convolution.recall, (3, 2, 3), upload(device, carry), where, new)
    expected = np.stack([carry[3], carry[0], np.zeros((2, 3), np.float32)])
    np.testing.assert_array_equal(download(device, recalled), expected)


WINDOW, RING = 4, 9


@settings(max_examples=30, deadline=None)
@given(chunks=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6)), min_size=1, max_size=12))
def test_a_ring_shows_each_row_its_window_of_positions(
    device: EmulatedDevice, ops: Ops, chunks: list[tuple[int, int]]
) -> None:
    """Rows hold their own position; a list for each slot is the twin."""
    caches = {slot: np.full((HEADS, RING + 1), -1) for slot in range(3)}
    offset, past = upload(device, np.zeros(3, np.int64)), [0, 0, 0]
    for slot, rows in chunks:
        places = ops.stream.empty((1, HEADS, rows), INT64)
        mask = ops.stream.empty((1, HEADS, rows, RING + 1), FLOAT32)
        own, slots = ops.stream.empty((1, HEADS), INT64), upload(device, np.array([slot]))
        ops.stream.launch(ring.ring_places, (places, mask, own, slots, offset), (WINDOW,))
        ops.stream.launch(ring.move_on, (offset, slots), (rows,))
        assert download(device, own).tolist() == [[slot * HEADS + head for head in range(HEADS)]]
        at = download(device, places)[0] - (slot * HEADS + np.arange(HEADS))[:, None] * (RING + 1)
        for head in range(HEADS):
            caches[slot][head, at[head]] = np.arange(past[slot], past[slot] + rows)
        for head, row in np.ndindex(HEADS, rows):
            seen = caches[slot][head][download(device, mask)[0, head, row] == 0]
            last = past[slot] + row
            assert sorted(seen) == list(range(max(0, last - WINDOW + 1), last + 1))
        past[slot] += rows
    assert download(device, offset).tolist() == past


def noise(device: EmulatedDevice, ops: Ops, rows: int, temperature: float, step: int = 0) -> Array:
    """Noisy zeros of 12 channels of 64; row r has seed r."""
    logits = ops.filled((12, rows, 64), 0.0)
    out = ops.stream.empty(logits.shape, FLOAT32)
    seeds, steps = upload(device, np.arange(rows)), upload(device, np.full(rows, step))
    heat = upload(device, np.full(rows, temperature, np.float32))
    ops.stream.launch(sampling.add_noise, (out, logits, seeds, steps, heat), (0,))
    return download(device, out)


def test_noise_is_gumbel_noise(device: EmulatedDevice, ops: Ops) -> None:
    """Kolmogorov-Smirnov against the distribution, at 12 x 16 x 64 draws: distance below 1.95 / sqrt(n)."""
    drawn = np.sort(noise(device, ops, 16, 1.0).ravel())
    expected = np.exp(-np.exp(-drawn.astype(np.float64)))
    ranks = np.arange(1, drawn.size + 1) / drawn.size
    assert np.abs(ranks - expected).max() < 1.95 / np.sqrt(drawn.size)


def test_noise_differs_by_seed_step_and_place_and_is_none_at_temperature_zero(
    device: EmulatedDevice, ops: Ops
) -> None:
    one, later = noise(device, ops, 4, 1.0), noise(device, ops, 4, 1.0, step=1)
    both = np.concatenate([one, later], 1).transpose(1, 0, 2).reshape(8, -1)
    correlation = np.corrcoef(both) - np.eye(8)
    assert np.abs(correlation).max() < 5 / np.sqrt(both.shape[1])
    assert (noise(device, ops, 4, 0.0) == 0).all()


def test_weights_of_two_names_differ_and_of_two_runs_do_not(device: EmulatedDevice) -> None:
    def made(seed: int, name: str) -> Any:
        return download(device, Weights(device.streams[0], seed, "net.").matrix(name, 6, 7)).tolist()

    assert made(1, "a") == made(1, "a")
    assert made(1, "a") != made(1, "b")
    assert made(1, "a") != made(2, "a")
