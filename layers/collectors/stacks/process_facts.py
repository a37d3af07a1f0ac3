"""What /proc tells of one process before any profiler touches it: what it runs, whose it is, in which state.

Nothing is asked of the process itself. Its interpreter is told by the files that it has mapped and by the
name of its program; where neither is readable (another user's) the fields are empty, never a guess.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from layers.collectors.processes import PROC, gpu_files, read_process
from layers.evidence.secrets import masked_arguments

PYTHON = re.compile(r"(?:lib)?python(\d\.\d{1,2})(t?)(?:\.so[.\d]*)?")
"""Program or library of CPython; `t`: a free-threaded build."""
ANY_PYTHON = re.compile(r"(?:lib)?python[\w.-]*")
FRAMEWORKS = ("libtorch", "libc10", "libjax", "xla_extension", "libtensorflow", "libvllm")
DEVICES = ("libcuda.so", "libcudart", "libamdhip64", "libhsa-runtime64", "libnccl", "libcublas")
"""Beginnings of the names of libraries; a process that has none of them computes on no GPU."""
ELF = b"\x7fELF"
ELF_HEADER_BYTES = 20
MACHINE_OFFSET, CLASS_OFFSET = 18, 4
MACHINES = {3: "x86", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv"}
"""e_machine of elf.h."""
TRACER = "TracerPid"
WIDTHS = {1: "32-bit", 2: "64-bit"}


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """One process. `users`, `groups`: real, effective and saved id. `inner_pid` is its id in its own PID
    namespace, `nested` whether that is below ours. `tracer`: who traces it now, 0 for nobody.

    `python` is the version its interpreter has, "" where nothing tells; `free_threaded` a build without the
    lock; `machine` what its program is built for; `program` its file. `frameworks` and `devices`: libraries
    of machine learning, and of GPUs, that it has mapped; None where its maps may not be read.
    """

    pid: int
    start_ticks: int
    argv: tuple[str, ...]
    state: str
    threads: int
    users: frozenset[int]
    groups: frozenset[int]
    tracer: int
    inner_pid: int
    nested: bool
    program: str
    python: str
    is_python: bool | None
    free_threaded: bool
    machine: str
    frameworks: tuple[str, ...] | None
    devices: tuple[str, ...] | None
    on_gpu: bool

    @property
    def readable(self) -> bool:
        """Whether this user may look into it at all."""
        return self.is_python is not None

    @property
    def refused(self) -> bool:
        """Whether the kernel refuses to show what it has mapped (its own threads map nothing)."""
        return self.frameworks is None


def read_facts(pid: int) -> ProcessFacts | None:
    """All of it; None where there is no such process (any more)."""
    process = read_process(pid)
    status = _status(pid)
    if process is None or not status:
        return None
    program, mapped = _program(pid), _mapped(pid)
    version, free_threaded, is_python = _interpreter(program, mapped)
    inner = status.get("NSpid", str(pid)).split()
    return ProcessFacts(
        pid=pid,
        start_ticks=process.start_ticks,
        argv=_argv(pid),
        state=process.state,
        threads=int(status.get("Threads", "0")),
        users=frozenset(map(int, status["Uid"].split()[:3])),
        groups=frozenset(map(int, status["Gid"].split()[:3])),
        tracer=tracer_of(pid),
        inner_pid=int(inner[-1]),
        nested=len(inner) > 1,
        program=program,
        python=version,
        is_python=is_python,
        free_threaded=free_threaded,
        machine=machine_of(PROC / str(pid) / "exe"),
        frameworks=_named(mapped, FRAMEWORKS),
        devices=_named(mapped, DEVICES),
        on_gpu=bool(gpu_files(pid)),
    )


def tracer_of(pid: int) -> int:
    """The process that traces this one now; 0 for nobody, and where it is gone."""
    return _process_of(int(_status(pid).get(TRACER, "0")))


def _process_of(thread: int) -> int:
    """The kernel names the thread that traces."""
    return int(_status(thread).get("Tgid", str(thread)))


def machine_of(program: Path) -> str:
    """What a program is built for, such as `64-bit x86-64`; "" where it cannot be read or is no ELF file."""
    try:
        with program.open("rb") as file:
            header = file.read(ELF_HEADER_BYTES)
    except OSError:
        return ""
    if len(header) < ELF_HEADER_BYTES or not header.startswith(ELF):
        return ""
    (machine,) = struct.unpack_from("=H", header, MACHINE_OFFSET)
    width = WIDTHS.get(header[CLASS_OFFSET], "unknown width")
    return f"{width} {MACHINES.get(machine, f'machine {machine}')}"


def _status(pid: int) -> dict[str, str]:
    try:
        lines = (PROC / str(pid) / "status").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _argv(pid: int) -> tuple[str, ...]:
    try:
        text = (PROC / str(pid) / "cmdline").read_bytes().decode(errors="backslashreplace")
    except OSError:
        return ()
    return masked_arguments(part for part in text.split("\0") if part)


def _program(pid: int) -> str:
    try:
        return os.readlink(PROC / str(pid) / "exe")
    except OSError:  # another user's, or a zombie's
        return ""


def _mapped(pid: int) -> frozenset[str] | None:
    """Base names of the files that it has mapped."""
    try:
        text = (PROC / str(pid) / "maps").read_text(errors="replace")
    except OSError:
        return None
    return frozenset(_files(text))


def _files(maps: str) -> Iterator[str]:
    for line in maps.splitlines():
        _, slash, path = line.partition("/")
        if slash:
            yield path.removesuffix(" (deleted)").rpartition("/")[2]


def _interpreter(program: str, mapped: frozenset[str] | None) -> tuple[str, bool, bool | None]:
    """Version, whether free-threaded, and whether it is Python at all (None: nothing of it can be read)."""
    if mapped is None or not program:
        return "", False, None
    names = [Path(program.removesuffix(" (deleted)")).name, *sorted(mapped)]
    found = next((match for name in names if (match := PYTHON.fullmatch(name))), None)
    if found is not None:
        return found[1], bool(found[2]), True
    return "", False, any(ANY_PYTHON.fullmatch(name) for name in names)


def _named(mapped: frozenset[str] | None, beginnings: tuple[str, ...]) -> tuple[str, ...] | None:
    if mapped is None:
        return None
    return tuple(one for one in beginnings if any(name.startswith(one) for name in mapped))
