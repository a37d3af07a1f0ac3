"""The machine: kernel, CPU, memory, limits, rights."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from layers.collectors.rights import read_rights
from layers.preflight.facts import Gathering, Section
from layers.preflight.limits import read_limits

NAME = "machine"
CPUS = Path("/sys/devices/system/cpu")
CPU_INFO = Path("/proc/cpuinfo")
MEMORY_INFO = Path("/proc/meminfo")
OS_RELEASE = Path("/etc/os-release")
INITIAL_PID_NAMESPACE = 0xEFFFFFFC
"""linux/proc_ns.h: PROC_PID_INIT_INO."""
KIBIBYTE = 1024


def machine_section() -> Section:
    """Facts that stay the same between two runs on one machine, if nobody changed anything."""
    facts = Gathering(NAME)
    facts.take("host", platform.node)
    facts.take("kernel", platform.release)
    facts.take("system", lambda: _field(OS_RELEASE, "PRETTY_NAME", "=").strip('"'))
    facts.take("cpu", lambda: _field(CPU_INFO, "model name", ":"))
    facts.take("cpus", lambda: os.cpu_count() or 0)
    facts.take("cpus_usable", lambda: len(os.sched_getaffinity(0)))
    facts.take("memory_bytes", lambda: KIBIBYTE * int(_field(MEMORY_INFO, "MemTotal", ":").split()[0]))
    facts.take("cpu_governor", governor)
    facts.take("pid_namespace_is_the_hosts", sees_host_pids)
    _take_limits(facts)
    _take_rights(facts)
    return facts.section()


def governor(cpus: Path = CPUS) -> str:
    """The frequency governors in use, each once; ValueError where the kernel (a guest's, often) has none."""
    files = cpus.glob("cpu[0-9]*/cpufreq/scaling_governor")
    found = sorted({file.read_text().strip() for file in files})
    if not found:
        raise ValueError("this kernel sets no CPU frequency (a virtual machine, often)")
    return ", ".join(found)


def sees_host_pids() -> bool:
    """Whether process ids here are those of the host, which are the ones that the GPU driver names."""
    return Path("/proc/self/ns/pid").stat().st_ino == INITIAL_PID_NAMESPACE


def _take_limits(facts: Gathering) -> None:
    try:
        limits = read_limits()
    except OSError as error:
        facts.miss("cgroup", f"no cgroups: {error.strerror}")
        return
    facts.know("cgroup.version", limits.version)
    facts.know("cgroup.cpus", limits.cpus)
    facts.know("cgroup.memory_bytes", limits.memory_bytes)
    facts.know("cgroup.cpuset", limits.cpuset)
    facts.know("cgroup.throttled_periods", limits.throttled)


def _take_rights(facts: Gathering) -> None:
    rights = read_rights()
    facts.know("ptrace_scope", rights.scope)
    facts.know("cap_sys_ptrace", rights.may_trace)
    facts.know("reads_childs_memory", rights.reads_child)
    facts.know("perf_event_paranoid", rights.perf_paranoid)


def _field(path: Path, name: str, separator: str) -> str:
    """The value of the first line of this name; ValueError where there is none."""
    for line in path.read_text().splitlines():
        key, found, value = line.partition(separator)
        if found and key.strip() == name:
            return value.strip()
    raise ValueError(f"{path} has no {name}")
