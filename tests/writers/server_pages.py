"""Pages of metrics as vLLM and SGLang write them: histograms by prometheus-client, under their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, Histogram, generate_latest

BOUNDS = (0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 2.0, 5.0)
"""vLLM's begin so."""
VLLM = {
    "e2e": "vllm:e2e_request_latency_seconds",
    "queue": "vllm:request_queue_time_seconds",
    "prefill": "vllm:request_prefill_time_seconds",
    "decode": "vllm:request_decode_time_seconds",
    "inference": "vllm:request_inference_time_seconds",
    "first": "vllm:time_to_first_token_seconds",
}
SGLANG = {
    "e2e": "sglang:e2e_request_latency_seconds",
    "queue": "sglang:queue_time_seconds",
    "first": "sglang:time_to_first_token_seconds",
}
SGLANG_STAGES = "sglang:per_stage_req_latency_seconds"
Times = Mapping[str, float]
"""Seconds of one request, by phase."""


def request(queue: float, prefill: float, decode: float, front: float = 0.0) -> Times:
    """A request of vLLM; `front`: what no phase covers."""
    inference = prefill + decode
    whole = front + queue + inference
    first = front + queue + prefill
    return {
        "e2e": whole,
        "queue": queue,
        "prefill": prefill,
        "decode": decode,
        "inference": inference,
        "first": first,
    }


class Page:
    """The metrics of one server, by engine; they only grow."""

    def __init__(self, names: Mapping[str, str] = VLLM, bounds: Sequence[float] = BOUNDS) -> None:
        self._registry = CollectorRegistry()
        self._families = {
            phase: Histogram(name, "help", ["engine", "model_name"], buckets=bounds, registry=self._registry)
            for phase, name in names.items()
        }
        self._stages: Histogram | None = None
        self._bounds = bounds

    def observe(self, times: Times, engine: str = "0") -> None:
        for phase, seconds in times.items():
            if phase in self._families:
                self._families[phase].labels(engine, "m").observe(seconds)

    def observe_stages(self, times: Mapping[str, float], tp_rank: str = "0") -> None:
        """SGLang's times of its own stages."""
        self._stages = self._stages or Histogram(
            SGLANG_STAGES, "help", ["stage", "tp_rank"], buckets=self._bounds, registry=self._registry
        )
        for stage, seconds in times.items():
            self._stages.labels(stage, tp_rank).observe(seconds)

    def text(self) -> str:
        return generate_latest(self._registry).decode()

    def write(self, path: Path, first_line: str = "") -> str:
        path.write_text(f"{first_line}\n{self.text()}" if first_line else self.text(), encoding="utf-8")
        return str(path)


def around(folder: Path, page: Page, requests: Iterable[Times], engine: str = "0") -> tuple[str, str]:
    """The files of a page before and after these requests."""
    before = page.write(folder / "before.prom")
    for times in requests:
        page.observe(times, engine)
    return before, page.write(folder / "after.prom")
