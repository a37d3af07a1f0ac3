"""What the engine finds that it may promise about a row's result."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sample_engine.device import Buffer
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.kernel import Kernel
from sample_engine.models.weights import Weights
from sample_engine.primitives.ops import Ops
from sample_engine.primitives.promise import Probe, Promise, find_promise
from tests.engine_builders import small_device
from tests.engine_decoding import bench
from tests.engine_kernels import add_row_count, add_row_number, add_sum, double

BUCKETS = [4, 8, 16]


@pytest.fixture(scope="module")
def device() -> Iterator[EmulatedDevice]:
    with small_device() as opened:
        yield opened


def probe_of(kernel: Kernel) -> Probe:
    return Probe(kernel.name.partition(":")[2], 8, lambda ops, x: ops.run(kernel, x.shape, x))


def found(device: EmulatedDevice, *kernels: Kernel) -> Promise:
    return find_promise(device, device.streams[0], [probe_of(one) for one in kernels], BUCKETS)


def test_what_works_row_by_row_keeps_every_promise(device: EmulatedDevice) -> None:
    assert found(device, double) == Promise("any shape", ())


def test_what_looks_at_the_number_of_rows_keeps_it_at_equal_shape(device: EmulatedDevice) -> None:
    assert found(device, double, add_row_count) == Promise("equal shape", ("add_row_count",))


@pytest.mark.parametrize("kernel", [add_sum, add_row_number], ids=["neighbours", "place"])
def test_what_looks_at_neighbours_or_places_keeps_none(device: EmulatedDevice, kernel: Kernel) -> None:
    name = kernel.name.partition(":")[2]
    assert found(device, add_row_count, kernel) == Promise("none", (name,))


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (64, 256), (128, 64), (16, 16), (1920, 48)])
def test_a_product_in_tiles_keeps_every_promise(device: EmulatedDevice, rows: int, columns: int) -> None:
    weight = Weights(device.streams[0], 1).matrix("any", rows, columns)

    def run(ops: Ops, x: Buffer) -> Buffer:
        return ops.linear(x, weight)

    probe = Probe("linear", rows, run)
    assert find_promise(device, device.streams[0], [probe], BUCKETS) == Promise("any shape", ())


def test_the_decoder_says_what_it_promises() -> None:
    with bench() as made:
        assert made.stage.promise == Promise("any shape", ())
