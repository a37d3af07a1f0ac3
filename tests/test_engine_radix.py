"""Prefix keys of frames: what the device computes, what they tell apart, and what the old way costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt

import numpy as np
import numpy.typing as npt
import pytest

from sample_engine.dtypes import INT64
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.models.sizes import CHANNELS
from sample_engine.primitives.radix import BASE, FOLD, MODULUS, host_key
from sample_engine.stages.frame_keys import DeviceKeys, FrameKeys, HostKeys
from sample_engine.stages.payloads import EOS_ID
from tests.engine_builders import download, upload
from tests.engine_decoding import bench, prompt

ROWS = 10_000
SEEDS, FRAMES, TRIALS = 20_000, 75, 50
"""Requests of 75 frames each; as many as one batch of keys takes at a time."""
CODE_IDS = 1024
MEMORY_BYTES = 32 << 20
Rows = npt.NDArray[np.int64]


@pytest.fixture(scope="module")
def device() -> Iterator[EmulatedDevice]:
    with EmulatedDevice(MEMORY_BYTES, pinned_bytes=MEMORY_BYTES) as opened:
        yield opened


def keys_of(device: EmulatedDevice, rows: Rows) -> Rows:
    return written(device, DeviceKeys(device, device.streams[0]), rows)


def written(device: EmulatedDevice, keys: FrameKeys, rows: Rows) -> Rows:
    key = device.streams[0].empty((len(rows),), INT64)
    keys.write(key, upload(device, rows))
    return download(device, key)


def horner(row: Sequence[int]) -> int:
    """The definition, in whole numbers of any size."""
    key = 0
    for channel in row:
        key = (key * BASE + channel) % MODULUS
    return EOS_ID if row[0] == EOS_ID else key % FOLD


def test_ten_thousand_random_rows_have_the_key_of_the_definition(device: EmulatedDevice) -> None:
    rows = np.random.default_rng(1).integers(0, 1 << 31, (ROWS, CHANNELS))
    rows[::97, 0] = EOS_ID
    assert keys_of(device, rows).tolist() == [horner(row) for row in rows.tolist()]


def test_the_ends_of_the_range_have_the_key_of_the_definition(device: EmulatedDevice) -> None:
    rows = np.array([[value] * CHANNELS for value in (0, 1, MODULUS - 1, MODULUS, (1 << 31) - 1)])
    assert keys_of(device, rows).tolist() == [horner(row) for row in rows.tolist()]


def test_keys_lie_below_the_special_ids_and_the_end_keeps_its_own(device: EmulatedDevice) -> None:
    rows = np.random.default_rng(2).integers(0, CODE_IDS, (ROWS, CHANNELS))
    rows[:10, 0] = EOS_ID
    keys = keys_of(device, rows)
    assert (keys[:10] == EOS_ID).all()
    assert 0 <= keys[10:].min() <= keys[10:].max() < FOLD


def test_the_order_of_channels_matters(device: EmulatedDevice) -> None:
    row = np.arange(100, 100 + CHANNELS)
    swapped = np.stack([row] * (CHANNELS - 1))
    for place, other in enumerate(swapped):
        other[[place, place + 1]] = other[[place + 1, place]]
    assert len({*keys_of(device, np.vstack([row[None], swapped])).tolist()}) == CHANNELS


def test_keys_of_a_request_collide_as_often_as_chance_says(device: EmulatedDevice) -> None:
    """Pairs of equal keys among 75 random rows, over 20 000 requests."""
    random = np.random.default_rng(3)
    colliding = 0
    for _ in range(SEEDS // TRIALS):
        rows = random.integers(0, CODE_IDS, (TRIALS * FRAMES, CHANNELS))
        keys = np.sort(keys_of(device, rows).reshape(TRIALS, FRAMES), axis=1)
        colliding += int((keys[:, 1:] == keys[:, :-1]).any(1).sum())
    free = float(np.prod(1 - np.arange(FRAMES) / FOLD))
    expected, error = SEEDS * (1 - free), sqrt(SEEDS * free * (1 - free))
    assert abs(colliding - expected) <= 3 * error, (colliding, expected, error)


def test_the_host_makes_keys_by_another_hash_under_the_same_rules(device: EmulatedDevice) -> None:
    rows = np.random.default_rng(4).integers(0, CODE_IDS, (8, CHANNELS))
    rows[3, 0] = EOS_ID
    keys = written(device, HostKeys(device, device.streams[0], [rows.shape]), rows)
    assert keys.tolist() == [host_key(row, EOS_ID) for row in rows.tolist()]
    assert keys[3] == EOS_ID
    assert max(keys[:3]) < FOLD


def test_both_ways_lead_to_the_same_codes() -> None:
    asked = [prompt(index, 6) for index in range(5)]
    with bench(radix_key="device") as one, bench(radix_key="host") as other:
        made, same = one.decode(asked), other.decode(asked)
        counts = one.count("radix_keys", "device"), other.count("radix_keys", "host")
    assert [[row[:-1] for row in rows] for rows in made] == [[row[:-1] for row in rows] for rows in same]
    assert made != same  # the keys
    assert counts == (30, 30)


def test_a_key_of_the_host_blocks_the_capture_and_everything_runs_eagerly() -> None:
    with bench(radix_key="host", cuda_graph=True) as some:
        assert "copy_out needs the host" in some.stage.graphs.failure
        assert some.count("graph_failures") == 1
        some.decode([prompt(1, 6)])
        assert (some.count("graph_replays"), some.count("graph_eager")) == (0, 6)


def test_a_key_of_the_host_refuses_lookahead_and_is_counted() -> None:
    with bench(radix_key="host") as some:
        assert "hashed on the host" in some.stage.lookahead_refusal
        some.decode([prompt(1, 6), prompt(2, 6)], lookahead=True)
        assert some.count("lookahead_steps") == 0
        assert some.count("lookahead_refused") == some.count("sync_steps") == 6
