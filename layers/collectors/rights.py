"""What this process may look at: other processes' memory (ptrace) and the CPU's counters (perf).

py-spy needs the first. It is the kernel's `ptrace_scope` together with the capabilities that decides, and in
a container also a seccomp filter, which cannot be read, only tried.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
PERF_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
STATUS = Path("/proc/self/status")

CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON = 19, 21, 38
"""linux/capability.h."""
SCOPE_WORDS = {
    0: "any process of the same user",
    1: "descendants only",
    2: "with CAP_SYS_PTRACE only",
    3: "nobody",
}
"""kernel.org, Yama."""
SAFE_SCOPES = (0, None)
NOBODY = 3
BYTES_READ = 8


@dataclass(frozen=True, slots=True)
class Rights:
    """`scope` is None where the kernel has no Yama (as scope 0). `reads_child`: reading one's own child's
    memory was tried and worked."""

    user: int
    group: int
    scope: int | None
    may_trace: bool
    may_perf: bool
    perf_paranoid: int | None
    reads_child: bool

    @property
    def reads_strangers(self) -> bool:
        """Whether a server that perfkit did not start can be sampled by py-spy."""
        free = self.scope in SAFE_SCOPES or (self.may_trace and self.scope != NOBODY)
        return free and self.reads_child


def read_rights() -> Rights:
    """The rights of this process."""
    capabilities = _capabilities()
    return Rights(
        user=os.geteuid(),
        group=os.getegid(),
        scope=_number(PTRACE_SCOPE),
        may_trace=_has(capabilities, CAP_SYS_PTRACE),
        may_perf=_has(capabilities, CAP_PERFMON) or _has(capabilities, CAP_SYS_ADMIN),
        perf_paranoid=_number(PERF_PARANOID),
        reads_child=_try_reading_a_child(),
    )


def _capabilities() -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("CapEff:"))
    return int(line.split()[1], 16)


def _has(capabilities: int, bit: int) -> bool:
    return bool(capabilities >> bit & 1)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except OSError:
        return None


class _Piece(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _try_reading_a_child() -> bool:
    """Read a few bytes of a child's memory, as py-spy does; a seccomp filter forbids it without a trace."""
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        return _reads(child.pid)
    finally:
        child.kill()
        child.communicate()


def _reads(pid: int) -> bool:
    try:
        start = int(Path(f"/proc/{pid}/maps").read_text().partition("-")[0], 16)
        read = ctypes.CDLL(None, use_errno=True).process_vm_readv
    except (OSError, ValueError, AttributeError):  # no right to the maps; no such call in this libc
        return False
    here = ctypes.create_string_buffer(BYTES_READ)
    local = _Piece(ctypes.cast(here, ctypes.c_void_p), BYTES_READ)
    remote = _Piece(start, BYTES_READ)
    got = read(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    return bool(got == BYTES_READ)
