"""The inventory of GPUs: facts that are there, facts that are not, and a driver that hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.collectors.gpu.inventory import GpuProcess, read_inventory
from tests import fake_nvml

GIB = 1 << 30


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_nvml.build(tmp_path_factory.mktemp("nvml"))


def test_gpus_are_listed_with_their_memory_and_processes(
    monkeypatch: pytest.MonkeyPatch, library: Path
) -> None:
    fake_nvml.play(monkeypatch, library, util="90,0", memory="2048,0", processes="0:4242:1024")
    inventory = read_inventory()
    busy, idle = inventory.gpus
    assert (inventory.driver, inventory.cuda, inventory.problem) == ("999.1", "13.0", "")
    assert (busy.uuid, busy.capability) == ("GPU-fake-0", "9.0")
    assert (busy.memory_used_bytes, busy.memory_total_bytes) == (2 * GIB, 80 * GIB)
    assert (busy.power_limit_w, busy.persistence, busy.mig) == (700, True, False)
    assert busy.processes == (GpuProcess(4242, "compute", GIB),)
    assert idle.processes == ()


def test_facts_that_the_driver_does_not_have_are_none(monkeypatch: pytest.MonkeyPatch, library: Path) -> None:
    fake_nvml.play(monkeypatch, library, util="0")
    (gpu,) = read_inventory().gpus
    assert gpu.ecc_uncorrected is None and gpu.slowdowns is None


def test_a_driver_that_hangs_is_a_problem_and_no_hang(monkeypatch: pytest.MonkeyPatch, library: Path) -> None:
    fake_nvml.play(monkeypatch, library, util="0", init="-1")
    inventory = read_inventory(timeout_s=0.5)
    assert inventory.gpus == ()
    assert "no answer in 0.5 s" in inventory.problem


def test_a_driver_without_gpus_says_so(monkeypatch: pytest.MonkeyPatch, library: Path) -> None:
    fake_nvml.play(monkeypatch, library)
    assert read_inventory().problem == "the driver is there and sees no GPU"


def test_a_driver_that_was_updated_under_a_running_kernel_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, library: Path
) -> None:
    fake_nvml.play(monkeypatch, library, init="18")
    assert "reload it, or reboot" in read_inventory().problem
