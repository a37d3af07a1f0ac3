"""CPU and memory limits of containers, from cgroup trees of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.preflight.limits import Limits, read_limits
from layers.preflight.machine import governor


def tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def limits(tmp_path: Path, own: str, files: dict[str, str]) -> Limits:
    tree(tmp_path / "cgroup", files)
    (tmp_path / "own").write_text(own)
    return read_limits(tmp_path / "cgroup", tmp_path / "own")


def test_version_2_takes_the_tightest_limit_on_the_way_up(tmp_path: Path) -> None:
    found = limits(
        tmp_path,
        "0::/pod/container\n",
        {
            "cgroup.controllers": "cpu memory",
            "pod/cpu.max": "200000 100000",
            "pod/container/cpu.max": "max 100000",
            "pod/memory.max": "max",
            "pod/container/memory.max": str(8 << 30),
            "pod/container/cpuset.cpus.effective": "0-3",
            "pod/container/cpu.stat": "usage_usec 5\nnr_throttled 17",
        },
    )
    assert found == Limits(2, 2.0, 8 << 30, "0-3", 17)


def test_version_2_without_limits_has_none(tmp_path: Path) -> None:
    found = limits(tmp_path, "0::/\n", {"cgroup.controllers": "cpu", "cpu.max": "max 100000"})
    assert found == Limits(2, None, None, None, None)


def test_version_1_reads_each_controller_in_its_own_tree(tmp_path: Path) -> None:
    found = limits(
        tmp_path,
        "4:cpu,cpuacct:/docker/abc\n5:memory:/docker/abc\n2:cpuset:/docker/abc\n",
        {
            "cpu/docker/abc/cpu.cfs_quota_us": "150000",
            "cpu/docker/abc/cpu.cfs_period_us": "100000",
            "cpu/docker/abc/cpu.stat": "nr_periods 9\nnr_throttled 4",
            "memory/docker/abc/memory.limit_in_bytes": str(2 << 30),
            "cpuset/docker/abc/cpuset.cpus": "0,2",
        },
    )
    assert found == Limits(1, 1.5, 2 << 30, "0,2", 4)


def test_version_1_spells_no_limit_in_two_ways(tmp_path: Path) -> None:
    found = limits(
        tmp_path,
        "4:cpu:/\n5:memory:/\n",
        {
            "cpu/cpu.cfs_quota_us": "-1",
            "cpu/cpu.cfs_period_us": "100000",
            "memory/memory.limit_in_bytes": "9223372036854771712",
        },
    )
    assert (found.cpus, found.memory_bytes) == (None, None)


def test_without_cgroups_it_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_limits(tmp_path, tmp_path / "own")


def test_governors_are_named_once_each(tmp_path: Path) -> None:
    tree(tmp_path, {f"cpu{n}/cpufreq/scaling_governor": "powersave" for n in range(4)})
    tree(tmp_path, {"cpu9/cpufreq/scaling_governor": "performance"})
    assert governor(tmp_path) == "performance, powersave"


def test_a_kernel_without_governors_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sets no CPU frequency"):
        governor(tmp_path)
