"""What each event category of a chrome trace is: the one table that decides what counts as device work.

Names are those of libkineto's activity types (2026), of the first Kineto (torch 1.8 to 1.11) and of the other
producers that write the format. A category that is not here is reported as unknown, and as device-like when
its events carry a device: never counted, never hidden.
"""

from __future__ import annotations

import re
from enum import StrEnum

from parsers.trace_model import KERNEL, MEMCPY, MEMSET


class Role(StrEnum):
    """What perfkit takes a category for."""

    DEVICE = "device work"
    DEVICE_SPAN = "device row, not work"
    RUNTIME = "host runtime call"
    OPERATOR = "host operator"
    PYTHON = "Python frame"
    ANNOTATION = "annotation"
    OVERHEAD = "profiler overhead"
    PROFILER = "profiler span"
    FLOW = "arrow"
    OTHER_DEVICE = "other accelerator"
    UNNAMED = "no category"
    UNKNOWN = "unknown"
    UNKNOWN_DEVICE = "unknown, device-like"


DEVICE_KINDS = {
    "kernel": KERNEL,
    "gpu_memcpy": MEMCPY,
    "gpu_memset": MEMSET,
    "Kernel": KERNEL,
    "Memcpy": MEMCPY,
    "Memset": MEMSET,
}

_ROLES = {
    Role.DEVICE: tuple(DEVICE_KINDS),
    Role.DEVICE_SPAN: ("gpu_user_annotation", "cuda_sync", "cuda_event", "cuda_profiler_range", "xpu_sync"),
    Role.RUNTIME: (
        *("cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime", "xpu_driver", "mtia_runtime"),
        *("privateuse1_runtime", "privateuse1_driver", "glow_runtime", "Runtime"),
    ),
    Role.OPERATOR: (
        *("cpu_op", "Operator", "hpu_op", "cpu_instant_event"),
        *("collective_comm", "external_correlation"),
    ),
    Role.PYTHON: ("python_function",),
    Role.ANNOTATION: ("user_annotation",),
    Role.OVERHEAD: ("overhead",),
    Role.PROFILER: ("Trace",),
    Role.FLOW: (
        *("ac2g", "fwdbwd", "async", "async_cpu_to_gpu", "async_gpu"),
        *("async_npu", "HostToDevice", "async_task_queue"),
    ),
    Role.OTHER_DEVICE: ("mtia_ccp_events", "enqueue", "dequeue"),
    Role.UNNAMED: ("",),
}

ROLE_OF = {category: role for role, categories in _ROLES.items() for category in categories}

GRAPH_LAUNCH, STEP, PROFILER_SPAN = "GraphLaunch", "ProfilerStep#", "PyTorch Profiler ("
_MARKS = (GRAPH_LAUNCH.encode(), STEP.encode(), PROFILER_SPAN.encode())
BUSY_ONLY_LITERALS = (b'"kernel"', b'"gpu_mem', *_MARKS)
"""Mark the events that a busy ratio needs: device work, graph launches, steps, the recorded window."""
OLD_BUSY_ONLY_LITERALS = (b'"Kernel"', b'"Memcpy"', b'"Memset"', *BUSY_ONLY_LITERALS)
"""The same for files that use the category names of the first Kineto."""
_OLD_NAME = re.compile(rb'"(?:Operator|Runtime|Kernel|Memcpy|Memset)"')


def busy_only_literals(head: bytes) -> tuple[bytes, ...]:
    """What to look for in a file that begins like this."""
    return OLD_BUSY_ONLY_LITERALS if _OLD_NAME.search(head) else BUSY_ONLY_LITERALS


def for_busy_ratio(category: str, name: str) -> bool:
    """Whether a busy ratio needs this host event: the one rule, however the file is read."""
    role = ROLE_OF.get(category)
    if role is Role.RUNTIME:
        return GRAPH_LAUNCH in name
    if role is Role.PROFILER:
        return PROFILER_SPAN in name
    return role in (Role.ANNOTATION, Role.OPERATOR) and STEP in name


DEVICE_LITERAL = re.compile(rb'"(?:kernel|gpu_memcpy|gpu_memset|Kernel|Memcpy|Memset)"')
"""Marks text that holds device work."""

_HOST = (
    *(Role.RUNTIME, Role.OPERATOR, Role.PYTHON, Role.ANNOTATION, Role.DEVICE_SPAN),
    *(Role.OVERHEAD, Role.PROFILER, Role.FLOW),
)
HOST_LITERAL = re.compile(
    rb'"cat"\s*:\s*"(?:%s)"|"ph"\s*:\s*"[^XBE]"' % "|".join(c for r in _HOST for c in _ROLES[r]).encode()
)
"""Marks text that says that it is something else."""


class Producer(StrEnum):
    """Who wrote the file, as far as its content says."""

    CUDA = "PyTorch profiler on CUDA"
    ROCM = "PyTorch profiler on ROCm"
    XPU = "PyTorch profiler on Intel XPU"
    MTIA = "PyTorch profiler on Meta MTIA"
    ASCEND = "Ascend NPU profiler"
    JAX = "JAX/XLA profiler"
    NSYS = "NVIDIA Nsight Systems"
    CPU = "PyTorch profiler, CPU only"
    UNKNOWN = "unknown producer"
