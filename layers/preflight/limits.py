"""What a container may use: CPU time, memory and cores, from cgroups of version 1 or 2.

A limit holds for a group and for all below it, so the tightest one on the way up is the one that counts. In a
container the way up may end at its own root: a limit above that is not to be seen from inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")

NO_MEMORY_LIMIT_V1 = 1 << 60
"""Version 1 writes the largest page-aligned number for "no limit"; nobody has an exbibyte."""


@dataclass(frozen=True, slots=True)
class Limits:
    """None: no limit. `cpus` is CPU time in cores; `throttled` counts periods in which it was used up."""

    version: int
    cpus: float | None
    memory_bytes: int | None
    cpuset: str | None
    throttled: int | None


def read_limits(root: Path = CGROUPS, own: Path = OWN_GROUPS) -> Limits:
    """The limits of this process; OSError where there are no cgroups."""
    groups = _groups(own)
    if (root / "cgroup.controllers").exists():
        return _version_2(root, groups.get("", "/"))
    return _version_1(root, groups)


def _groups(own: Path) -> dict[str, str]:
    """Controller → path of the group that this process is in; version 2 has one path, under ""."""
    groups = {}
    for line in own.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups


def _version_2(root: Path, path: str) -> Limits:
    folders = list(_upwards(root, path))
    quotas = [_quota_v2(text) for folder in folders if (text := _read(folder / "cpu.max"))]
    memory = [int(text) for folder in folders if (text := _read(folder / "memory.max")) and text != "max"]
    return Limits(
        version=2,
        cpus=min((quota for quota in quotas if quota is not None), default=None),
        memory_bytes=min(memory, default=None),
        cpuset=_first(folders, "cpuset.cpus.effective"),
        throttled=_throttled(folders),
    )


def _version_1(root: Path, groups: dict[str, str]) -> Limits:
    cpu, memory, cpuset = (
        list(_upwards(root / controller, groups.get(controller, "/")))
        for controller in ("cpu", "memory", "cpuset")
    )
    quotas = [_quota_v1(folder) for folder in cpu]
    bytes_ = [int(text) for folder in memory if (text := _read(folder / "memory.limit_in_bytes"))]
    return Limits(
        version=1,
        cpus=min((quota for quota in quotas if quota is not None), default=None),
        memory_bytes=min((limit for limit in bytes_ if limit < NO_MEMORY_LIMIT_V1), default=None),
        cpuset=_first(cpuset, "cpuset.cpus"),
        throttled=_throttled(cpu),
    )


def _upwards(root: Path, path: str) -> Iterator[Path]:
    """The group's folder and those above it, as far as they can be seen."""
    folder = root / path.lstrip("/")
    while folder != root and folder.is_relative_to(root):
        yield folder
        folder = folder.parent
    yield root


def _quota_v2(text: str) -> float | None:
    quota, period = text.split()
    return None if quota == "max" else int(quota) / int(period)


def _quota_v1(folder: Path) -> float | None:
    quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota and period and int(quota) > 0 else None


def _throttled(folders: list[Path]) -> int | None:
    lines = (_first(folders, "cpu.stat") or "").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("nr_throttled ")), None)


def _first(folders: list[Path], name: str) -> str | None:
    return next((text for folder in folders if (text := _read(folder / name))), None)


def _read(path: Path) -> str:
    """The file's text without blanks around it; empty where this group has no such file."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
