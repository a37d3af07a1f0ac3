"""The engine's decoder on a GPU: the same code, and what it promises there (equal bits at equal shape)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU that torch can use", allow_module_level=True)

from sample_engine.cuda import CudaDevice  # noqa: E402 (needs the GPU)
from sample_engine.dtypes import INT64  # noqa: E402
from sample_engine.models.sizes import CHANNELS  # noqa: E402
from sample_engine.observe.metrics import Metrics  # noqa: E402
from sample_engine.stages.ar import ArStage  # noqa: E402
from sample_engine.stages.frame_keys import DeviceKeys  # noqa: E402
from sample_engine.stages.payloads import EOS_ID  # noqa: E402
from tests.engine_decoding import Bench, prompt, settings_with  # noqa: E402
from tests.test_engine_radix import horner  # noqa: E402

BUDGET_BYTES = 1 << 30
ONE_BUCKET = 4
"""As many rows at a time keep every launch at one shape."""
PROMPTS = [prompt(index, 1 + index % 9, 0.9 * (index % 3 == 0)) for index in range(40)]


@pytest.fixture(scope="module")
def device() -> Iterator[CudaDevice]:
    with CudaDevice(BUDGET_BYTES) as opened:
        yield opened


@contextmanager
def bench(device: CudaDevice, **options: Any) -> Iterator[Bench]:
    with Metrics() as metrics:
        stage = ArStage(device, device.streams[0], settings_with(options), metrics)
        yield Bench(device, stage, metrics)
        stage.graphs.close()


def test_captures_stop_at_the_memory_cap(device: CudaDevice) -> None:
    """The first test of the module: later ones find memory in the pool of captures."""
    with bench(device, cuda_graph=True, graph_budget_bytes=1) as some:
        assert len(some.stage.graphs.captured) == 1
        assert some.count("graph_skipped") == len(some.stage.shapes()) - 1
        some.decode(PROMPTS[:3], ONE_BUCKET)
        assert some.count("graph_eager") > 0


def test_replayed_steps_make_what_eager_ones_make_with_and_without_lookahead(device: CudaDevice) -> None:
    with bench(device) as eager, bench(device, cuda_graph=True) as graphed:
        expected = eager.decode(PROMPTS, ONE_BUCKET)
        assert eager.decode(PROMPTS, ONE_BUCKET, lookahead=True) == expected
        for lookahead in (False, True):
            assert graphed.decode(PROMPTS, ONE_BUCKET, lookahead) == expected
        assert graphed.count("graph_eager") == 0
        assert graphed.count("graph_replays") > 0


def test_the_decoder_promises_equal_bits_at_equal_shape_at_least(device: CudaDevice) -> None:
    with bench(device) as some:
        assert some.stage.promise.level in ("any shape", "equal shape"), some.stage.promise


def test_keys_are_those_of_whole_numbers(device: CudaDevice) -> None:
    rows = np.random.default_rng(1).integers(0, 1 << 31, (10_000, CHANNELS))
    rows[::97, 0] = EOS_ID
    stream = device.streams[0]
    given, made = device.pinned(rows.shape, INT64), device.pinned((len(rows),), INT64)
    given.array[...] = rows
    buffer, key = stream.empty(rows.shape, INT64), stream.empty((len(rows),), INT64)
    stream.copy_in(buffer, given)
    DeviceKeys(device, stream).write(key, buffer)
    stream.copy_out(made, key)
    stream.synchronize()
    assert made.array.tolist() == [horner(row) for row in rows.tolist()]


def test_a_key_of_the_host_blocks_the_capture_and_everything_runs_eagerly(device: CudaDevice) -> None:
    with bench(device, radix_key="host", cuda_graph=True) as some:
        assert some.stage.graphs.failure
        made = some.decode(PROMPTS[:3], ONE_BUCKET, lookahead=True)
        assert [len(one) for one in made] == [asked.steps for asked in PROMPTS[:3]]
        assert (some.count("graph_replays"), some.count("lookahead_steps")) == (0, 0)
