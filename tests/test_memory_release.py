"""Waiting for GPU memory to come back: it comes, it does not, and there is nothing to wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

from layers.collectors.gpu import memory_release
from layers.collectors.gpu.inventory import read_inventory
from layers.collectors.gpu.inventory_model import Gpu, Inventory
from layers.collectors.gpu.memory_release import memory_used, wait_for_memory
from tests import fake_nvml

GIB = 1 << 30


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_release, "LOOK_S", 0)


def reads(*levels: int) -> Callable[[], Inventory]:
    """An inventory of one GPU that uses these bytes one after the other, the last for ever."""
    coming: Iterator[int] = chain(levels, repeat(levels[-1]))
    return lambda: Inventory("1", "13.0", (gpu(next(coming)),))


def gpu(used: int | None) -> Gpu:
    nothing = dict.fromkeys(
        ("capability", "power_limit_w", "max_sm_clock_mhz", "max_memory_clock_mhz", "persistence")
    )
    more = dict.fromkeys(("mig", "ecc_uncorrected", "slowdowns", "processes"))
    return Gpu(0, "GPU-a", "Board", memory_total_bytes=80 * GIB, memory_used_bytes=used, **nothing, **more)


def test_memory_that_comes_back_is_waited_for() -> None:
    read = reads(30 * GIB, 12 * GIB, GIB + 1)
    assert wait_for_memory({"GPU-a": GIB}, read=read).complete


def test_memory_that_stays_is_reported_with_how_much() -> None:
    release = wait_for_memory({"GPU-a": GIB}, timeout_s=0.05, read=reads(30 * GIB))
    assert release.held_bytes == {"GPU-a": 29 * GIB}
    assert not release.complete and release.waited_s >= 0.05


def test_without_a_gpu_there_is_nothing_to_ask() -> None:
    def ask() -> Inventory:
        raise AssertionError("the driver must not be asked")

    assert wait_for_memory({}, read=ask).complete


def test_a_gpu_that_does_not_say_is_left_out() -> None:
    assert memory_used(Inventory("1", "13.0", (gpu(None),))) == {}


def test_the_real_inventory_sees_memory_come_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    used_mib = tmp_path / "memory"
    library = fake_nvml.build(tmp_path_factory.mktemp("nvml"))
    fake_nvml.play(monkeypatch, library, util="0", memory_file=str(used_mib))
    used_mib.write_text("1024")
    before = memory_used(read_inventory())
    used_mib.write_text("30000")
    assert not wait_for_memory(before, timeout_s=0).complete
    used_mib.write_text("1024")
    assert wait_for_memory(before).complete
