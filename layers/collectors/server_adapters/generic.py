"""Any server with OpenAI's paths: models from /v1/models, metrics from /metrics where there is such a page.

The other adapters are this one with the names and calls of their server. A quantity of which a page has
several samples (one an engine, a rank, a stage) is their sum, a share of memory the fullest of them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from layers.collectors.server_adapters.adapter import (
    MetricsSample,
    ServerCallFailed,
    ServerInfo,
    ServerState,
)
from layers.collectors.server_adapters.calls import CALL_TIMEOUT_S, Caller, require_ok
from layers.collectors.server_adapters.request_events import EventsOff, start_events, stop_events
from parsers.metrics_page import labels_of, name_of, read_page

METRICS = "/metrics"
MODELS = "/v1/models"
NOT_FOUND = frozenset({404, 405, 501})
GUARDED = frozenset({401, 403})
PLUS = " + "
SUM, COUNT = "_sum", "_count"


@dataclass(frozen=True, slots=True)
class StateNames:
    """Which samples of a page mean what. Of several names the first that a page has counts (servers rename
    theirs); `a + b` is a sum; a name may carry all its labels."""

    running: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    kv_share: tuple[str, ...] = ()
    preemptions: tuple[str, ...] = ()
    prefix_hits: tuple[str, ...] = ()
    prefix_queries: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageTime:
    """A histogram (or summary) in seconds that says how long requests were in a stage; `{label}` in `text`
    stands for that label of the sample, or for nothing where it has none."""

    histogram: str
    text: str

    def stage(self, key: str) -> str:
        """The stage that a sample of it is about."""
        return stage_name(self.text, labels_of(key))

    def named(self, labels: Mapping[str, str]) -> str:
        """The stage that samples with these labels are about."""
        return stage_name(self.text, labels)

    def sums(self, values: Mapping[str, float]) -> dict[str, tuple[float, float]]:
        """Of each stage the seconds and the number of all that passed it, over engines and ranks."""
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for key, value in values.items():
            name = name_of(key)
            if name in (self.histogram + SUM, self.histogram + COUNT):
                sums[self.stage(key)][name.endswith(COUNT)] += value
        return {name: (sum_s, count) for name, (sum_s, count) in sums.items()}


@dataclass(frozen=True, slots=True)
class StageTotal:
    """A counter of the seconds that requests together were in a stage, whatever number of pieces each came
    in, and the counter of requests that were served: their quotient is the time of one request."""

    seconds: str
    text: str
    requests: str

    def sums(self, values: Mapping[str, float]) -> dict[str, tuple[float, float]]:
        """Of each stage that was ever passed the seconds, and the requests that were served."""
        served = total(values, (self.requests,)) or 0.0
        spent = ((key, value) for key, value in values.items() if name_of(key) == self.seconds and value)
        return {stage_name(self.text, labels_of(key)): (value, served) for key, value in spent}


@dataclass(frozen=True, slots=True)
class StageWork:
    """Counters of a stage that works in batches: seconds in which it did, batches, and items of them; one
    sample a stage each, told apart by `label`."""

    seconds: str
    batches: str
    items: str
    label: str = "stage"

    def totals(self, values: Mapping[str, float]) -> dict[str, tuple[float, float, float]]:
        """Of each stage seconds, batches and items so far."""
        names = (self.seconds, self.batches, self.items)
        found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        for key, value in values.items():
            if (name := name_of(key)) in names:
                found[labels_of(key).get(self.label, "")][names.index(name)] += value
        return {stage: (seconds, batches, items) for stage, (seconds, batches, items) in found.items()}


class GenericAdapter:
    """A server that no other adapter knows."""

    kind: ClassVar[str] = "openai-like"
    owner: ClassVar[str] = ""
    """`owned_by` of its models."""
    has_events: ClassVar[bool] = False
    retries: ClassVar[str] = ""
    """A counter of allocations that failed and were tried again, by stage; empty where there is none."""
    names: ClassVar[StateNames] = StateNames(
        running=("llamacpp:requests_processing", "tgi_batch_current_size"),
        waiting=("llamacpp:requests_deferred", "tgi_queue_size"),
        kv_share=("llamacpp:kv_cache_usage_ratio",),
        finished=("tgi_request_success",),
    )
    stages: ClassVar[Sequence[StageTime | StageTotal]] = (
        StageTime("tgi_request_queue_duration", "queue"),
        StageTime("tgi_request_inference_duration", "inference"),
    )
    work: ClassVar[StageWork | None] = None
    end_to_end: ClassVar[str] = "tgi_request_duration"
    """The histogram of whole requests, which the times of stages are shares of; empty where there is none."""
    enclosing: ClassVar[Sequence[StageTime]] = ()
    """Histograms of times that hold others of them: told beside the stages and added to none."""
    nested: ClassVar[frozenset[str]] = frozenset()
    """Texts of `stages` that lie inside other ones, or repeat them."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller

    def recognise(self) -> bool:
        """By who owns its models; what answers HTTP at all is at least this kind."""
        return not self.owner or any(one.get("owned_by") == self.owner for one in self._models())

    def info(self) -> ServerInfo:
        models = tuple(str(one.get("id", "")) for one in self._models())
        settings = self._settings()
        version, cap, bundles = self._version(settings), self._cap(settings), self._bundles()
        return ServerInfo(self.kind, version, models, cap, settings, bundles)

    def scrape(self) -> MetricsSample | None:
        return scrape(self.caller)

    def state(self, sample: MetricsSample) -> ServerState:
        names, values = self.names, sample.values
        return ServerState(
            running=total(values, names.running),
            waiting=total(values, names.waiting),
            kv_share=fullest(values, names.kv_share),
            preemptions=total(values, names.preemptions),
            prefix_hits=total(values, names.prefix_hits),
            prefix_queries=total(values, names.prefix_queries),
            finished=total(values, names.finished),
        )

    def flush_caches(self) -> bool:
        return False

    def start_events(self, folder: Path, run: str) -> None:
        self._require_events()
        start_events(self.caller, folder, run)

    def stop_events(self, folder: Path, run: str) -> Sequence[Path]:
        self._require_events()
        return stop_events(self.caller, folder, run)

    def _require_events(self) -> None:
        if not self.has_events:
            raise ServerCallFailed(f"{self.caller.base}: perfkit knows no request events of {self.kind}")

    def profile_off(self, run: str) -> EventsOff:
        """The call that ends a profile."""
        return EventsOff("/stop_profile", {})

    def start_profile(self, folder: Path, run: str) -> None:
        raise ServerCallFailed(f"{self.caller.base}: perfkit knows no profiler of this kind of server")

    def stop_profile(self, run: str) -> Sequence[Path]:
        raise ServerCallFailed(f"{self.caller.base}: perfkit knows no profiler of this kind of server")

    def _models(self) -> list[dict[str, Any]]:
        document = self.caller.json_or_none(MODELS)
        entries = document.get("data") if isinstance(document, dict) else None
        return [one for one in entries or [] if isinstance(one, dict)]

    def _settings(self) -> Mapping[str, Any]:
        return {}

    def _bundles(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        return {}

    def _version(self, settings: Mapping[str, Any]) -> str:
        return ""

    def _cap(self, settings: Mapping[str, Any]) -> int | None:
        return None

    def _tell(self, path: str, body: Any = None, timeout_s: float = CALL_TIMEOUT_S) -> bytes:
        """POST that must succeed; its answer."""
        answer = self.caller.post(path, body, timeout_s)
        require_ok(self.caller.base + path, answer)
        return answer.body

    def _did(self, path: str) -> bool:
        """POST of something that not every server can do; False where this one cannot."""
        return self.caller.post(path).ok


def scrape(caller: Caller, timeout_s: float = CALL_TIMEOUT_S) -> MetricsSample | None:
    """The page of metrics now, stamped in the middle of the call; None where the server has none."""
    began_ns, wall_ns = time.monotonic_ns(), time.time_ns()
    answer = caller.get(METRICS, timeout_s)
    call_ns = time.monotonic_ns() - began_ns
    if answer.status in NOT_FOUND:
        return None
    if answer.status in GUARDED:
        key = "the key that was given does not open it" if caller.headers else "give its key with --header"
        raise ServerCallFailed(f"{caller.base}{METRICS}: behind a key (HTTP {answer.status}): {key}")
    require_ok(caller.base + METRICS, answer)
    page = read_page(answer.body.decode(errors="replace"))
    if page.bad and not page.values:
        raise ServerCallFailed(f"{caller.base}{METRICS}: this is no page of metrics")
    return MetricsSample(began_ns + call_ns // 2, wall_ns + call_ns // 2, call_ns, page.values)


def stage_name(text: str, labels: Mapping[str, str]) -> str:
    """`{label}` in the text stands for that label of a sample, or for nothing where it has none."""
    return " ".join(text.format_map(defaultdict(str, labels)).split())


def total(values: Mapping[str, float], names: Sequence[str]) -> float | None:
    """The sum of all samples of the first of these names that is there."""
    found = _found(values, names)
    return sum(found) if found else None


def fullest(values: Mapping[str, float], names: Sequence[str]) -> float | None:
    """The largest sample of the first of these names that is there."""
    return max(_found(values, names), default=None)


def _found(values: Mapping[str, float], names: Sequence[str]) -> list[float]:
    for name in names:
        wanted = name.split(PLUS)
        found = [value for key, value in values.items() if key in wanted or name_of(key) in wanted]
        if found:
            return found
    return []
