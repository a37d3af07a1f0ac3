"""What a trace says of its own making: rank, clock base, devices, versions, and who wrote it."""

from __future__ import annotations

from typing import Any

from parsers.chrome_categories import Producer
from parsers.chrome_columns import Parts
from parsers.chrome_model import TraceMeta, Track


def read_meta(around: dict[str, Any], producer: Producer) -> TraceMeta:
    """From the keys beside the event array; anything missing or of a wrong type is left unknown."""
    distributed = around.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    return TraceMeta(
        rank=_int(distributed.get("rank"), -1),
        world_size=_int(distributed.get("world_size"), -1),
        base_time_ns=_int(around.get("baseTimeNanoseconds"), 0),
        device_names=_device_names(around.get("deviceProperties")),
        versions={
            k: str(v) for k, v in around.items() if k.endswith("_version") and isinstance(v, int | str)
        },
        producer=str(producer),
        nanosecond_resolution="baseTimeNanoseconds" in around,
    )


def _int(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _device_names(properties: Any) -> dict[int, str]:
    if not isinstance(properties, list):
        return {}
    rows = [p for p in properties if isinstance(p, dict) and isinstance(p.get("id"), int)]
    return {p["id"]: str(p["name"]) for p in rows if p.get("name")}


def find_producer(parts: Parts, tracks: list[Track], around: dict[str, Any]) -> Producer:
    """Who wrote the file, told by its categories, lane names and version keys, most specific first."""
    categories = set(parts.categories)
    if "mtia_ccp_events" in categories or "mtia_runtime" in categories:
        return Producer.MTIA
    if any(t.process_name == "Ascend Hardware" for t in tracks) or "async_npu" in {
        c for c, _ in parts.counts
    }:
        return Producer.ASCEND
    if any("/device:" in t.process_name for t in tracks):
        return Producer.JAX
    if categories & {"xpu_runtime", "xpu_driver", "xpu_sync"}:
        return Producer.XPU
    if (
        "hip_runtime_version" in around
        or "roctracer_version" in around
        or any(n.startswith("hip") for n in parts.names)
    ):
        return Producer.ROCM
    if categories & {
        "cuda_runtime",
        "cuda_driver",
        "Runtime",
        "kernel",
        "Kernel",
        "gpu_memcpy",
        "gpu_memset",
    }:
        return Producer.CUDA
    if categories & {"cpu_op", "Operator", "user_annotation", "python_function"}:
        return Producer.CPU
    return Producer.UNKNOWN
