"""Which PyTorch is installed: the CPU build without a GPU, where there is a way to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sample_engine import install_torch as module
from sample_engine.install_torch import CPU_INDEX, MAY_BE_LARGE, can_reach, install_torch


class Pip:
    """Remembers what it was asked."""

    def __init__(self, works: bool = True) -> None:
        self.asked: list[tuple[str, ...]] = []
        self._works = works

    def __call__(self, *arguments: str) -> bool:
        self.asked.append(arguments)
        return self._works


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux, no GPU, no torch."""
    monkeypatch.setattr(module, "GPU_FILES", ())
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setattr("sys.platform", "linux")


def test_the_cpu_build_is_taken_where_its_index_can_be_reached() -> None:
    pip = Pip()
    assert CPU_INDEX in install_torch("limits.txt", lambda url: url.startswith(CPU_INDEX), pip)
    [asked] = pip.asked
    assert asked == ("install", "--no-deps", "--constraint", "limits.txt", "--index-url", CPU_INDEX, "torch")


@pytest.mark.parametrize(("reachable", "works"), [(False, True), (True, False)])
def test_where_it_cannot_be_had_the_size_is_told_before_the_download(reachable: bool, works: bool) -> None:
    assert install_torch("limits.txt", lambda url: reachable, Pip(works)) == MAY_BE_LARGE


def test_a_gpu_needs_the_other_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "GPU_FILES", (tmp_path,))
    pip = Pip()
    assert "there is a GPU" in install_torch("limits.txt", lambda url: True, pip)
    assert pip.asked == []


def test_what_is_installed_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    pip = Pip()
    assert "already" in install_torch("limits.txt", lambda url: True, pip)
    assert pip.asked == []


def test_an_index_that_nobody_answers_for_cannot_be_reached() -> None:
    assert not can_reach("http://127.0.0.1:1/torch/")
