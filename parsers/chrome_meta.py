"""What a trace says of its own making: rank, clock base, devices, versions, and who wrote it."""

from __future__ import annotations

import re
from typing import Any

from parsers.chrome_categories import Producer
from parsers.chrome_parts import Parts
from parsers.trace_model import TraceMeta

LARGEST_INT = 1 << 62
_HIP_CALL = re.compile(r"hip[A-Z]")
_CUDA_CATEGORIES = frozenset(
    {"cuda_runtime", "cuda_driver", "Runtime", "kernel", "Kernel", "gpu_memcpy", "gpu_memset"}
)
_CPU_CATEGORIES = frozenset({"cpu_op", "Operator", "user_annotation", "python_function"})


def read_meta(around: dict[str, Any], producer: Producer, *, fractions: bool) -> TraceMeta:
    """From the keys beside the event array; anything missing or of a wrong type is left unknown.

    `fractions`: some event has a time that is no whole microsecond.
    """
    distributed = around.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    versions = {key: value for key, value in around.items() if key.endswith("_version")}
    return TraceMeta(
        rank=_int(distributed.get("rank"), -1),
        world_size=_int(distributed.get("world_size"), -1),
        base_time_ns=_int(around.get("baseTimeNanoseconds"), 0),
        device_names=_device_names(around.get("deviceProperties")),
        versions={key: _text(value) for key, value in versions.items() if isinstance(value, int | str)},
        producer=str(producer),
        nanosecond_resolution=fractions or "baseTimeNanoseconds" in around,
    )


def _int(value: Any, default: int) -> int:
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_INT
    return value if fits else default


def _text(value: Any) -> str:
    """Printable text: half a surrogate pair, which JSON can hold and UTF-8 cannot, is replaced."""
    return str(value).encode("utf-8", "replace").decode()


def _device_names(properties: Any) -> dict[int, str]:
    if not isinstance(properties, list):
        return {}
    rows = [p for p in properties if isinstance(p, dict) and isinstance(p.get("id"), int)]
    return {p["id"]: _text(p["name"]) for p in rows if p.get("name")}


def find_producer(parts: Parts, around: dict[str, Any]) -> Producer:
    """Who wrote the file, told by its categories, lane names and version keys, most specific first."""
    categories = {category for category, _ in parts.counts}
    processes = {name for key, (_, name) in parts.labels.items() if "/" not in key}
    if categories & {"mtia_ccp_events", "mtia_runtime"}:
        return Producer.MTIA
    if "Ascend Hardware" in processes or "async_npu" in categories:
        return Producer.ASCEND
    if any("/device:" in name or "/host:CPU" in name for name in processes):
        return Producer.JAX
    if categories & {"xpu_runtime", "xpu_driver", "xpu_sync"}:
        return Producer.XPU
    if {"hip_runtime_version", "roctracer_version"} & around.keys() or any(map(_HIP_CALL.match, parts.names)):
        return Producer.ROCM
    if categories & _CUDA_CATEGORIES:
        return Producer.CUDA
    return Producer.CPU if categories & _CPU_CATEGORIES else Producer.UNKNOWN
