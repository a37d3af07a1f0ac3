"""The inventory of GPUs: facts that are there, facts that are not, and a driver that hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.collectors.gpu.inventory import read_inventory
from layers.collectors.gpu.inventory_model import GpuProcess
from layers.preflight.doctor import examine
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


LISTED = "0, GPU-a, NVIDIA H100 80GB HBM3, 590.48, 81559, 1000, 700.00, 1980, 2619, Enabled, [N/A]"


@pytest.fixture
def nvidia_smi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine where nvidia-smi runs and nobody finds its library."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho 'Warning: something'\necho '{LISTED}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_a_missing_library_is_no_missing_gpu(
    monkeypatch: pytest.MonkeyPatch, library: Path, nvidia_smi: None
) -> None:
    fake_nvml.play(monkeypatch, library, init="18")
    inventory = read_inventory()
    (gpu,) = inventory.gpus
    assert (gpu.index, gpu.uuid, gpu.name) == (0, "GPU-a", "NVIDIA H100 80GB HBM3")
    assert (gpu.memory_total_bytes, gpu.memory_used_bytes) == (81559 << 20, 1000 << 20)
    assert (gpu.persistence, gpu.mig, gpu.processes, gpu.capability) == (True, None, None, None)
    assert (inventory.driver, inventory.through) == ("590.48", "nvidia-smi")
    assert "reload it, or reboot" in inventory.problem


def test_doctor_says_what_a_missing_library_costs(
    monkeypatch: pytest.MonkeyPatch, library: Path, nvidia_smi: None, tmp_path: Path
) -> None:
    fake_nvml.play(monkeypatch, library, init="18")
    check = next(check for check in examine(tmp_path) if check.name == "GPU through NVML")
    assert not check.there and "nvidia-smi lists 0 NVIDIA H100" in check.seen
    assert "utilisation and memory come from nvidia-smi" in check.costs


def test_a_driver_that_answers_is_believed(
    monkeypatch: pytest.MonkeyPatch, library: Path, nvidia_smi: None
) -> None:
    fake_nvml.play(monkeypatch, library)
    assert read_inventory().gpus == ()


def test_a_driver_without_gpus_says_so(monkeypatch: pytest.MonkeyPatch, library: Path) -> None:
    fake_nvml.play(monkeypatch, library)
    assert read_inventory().problem == "the driver is there and sees no GPU"


def test_a_driver_that_was_updated_under_a_running_kernel_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, library: Path
) -> None:
    fake_nvml.play(monkeypatch, library, init="18")
    assert "reload it, or reboot" in read_inventory().problem
