"""The bundled engine (docs/engine.md): settings and processes from /server_info, metrics, profiler, settings
that change while nothing runs.

Its content cache is that of encoded audio; a share of hits in its state is that cache's. A request is worked
on in steps and chunks: its time in a stage is what all of them took, over the requests that were served.
Stages overlap (a vocoder speaks while the decoder goes on), so their times may add up to more than its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from layers.collectors.server_adapters.adapter import ServerCallFailed
from layers.collectors.server_adapters.calls import parsed, without_secrets
from layers.collectors.server_adapters.generic import GenericAdapter, StageTotal, StageWork, StateNames
from layers.collectors.server_adapters.request_events import EventsOff
from layers.collectors.server_adapters.sglang_omni import profile_body

STOP_TIMEOUT_S = 300.0
CONFIGURE = "/configure"
RESTART = "a restart is needed"
"""In the reason of a refusal."""
CACHE = "encoder_cache"
SERVED = 'engine_requests_total{end="done"}'
ENCODED = 'engine_encoder_cache_total{{result="{}"}}'


class NeedsRestart(ServerCallFailed):
    """Settings that a server takes only when it starts."""


class BundledAdapter(GenericAdapter):
    """One server of the bundled engine."""

    kind = "sample-engine"
    owner = "sample_engine"
    has_events = True
    retries = "engine_allocation_retries_total"
    names = StateNames(
        running=("engine_requests_running",),
        waiting=("engine_requests_waiting + engine_requests_building",),
        prefix_hits=(ENCODED.format("hit"),),
        prefix_queries=(f"{ENCODED.format('hit')} + {ENCODED.format('miss')}",),
        finished=('engine_requests_total{end="done"}',),
    )
    stages = (
        StageTotal("engine_queue_wait_seconds_sum", "{stage} queue", SERVED),
        StageTotal("engine_held_seconds_total", "{stage}", SERVED),
    )
    work = StageWork("engine_busy_seconds_total", "engine_step_seconds_count", "engine_batch_items_sum")
    end_to_end = ""
    """Its events tell more."""

    def processes(self) -> dict[str, int]:
        """Process ids by name: front, engine and device."""
        found = self.caller.json_of("/server_info").get("processes", {})
        return {str(name): int(pid) for name, pid in found.items()}

    def configure(self, changes: Mapping[str, Any]) -> Any:
        """Change settings by their flat names; ServerCallFailed, with the reason, where that is refused, and
        NeedsRestart where waiting changes nothing."""
        try:
            return parsed(self.caller.base + CONFIGURE, self.caller.post(CONFIGURE, dict(changes)))
        except ServerCallFailed as error:
            raise (NeedsRestart(str(error)) if RESTART in str(error) else error) from None

    def flush_caches(self) -> bool:
        """Only while nothing runs. Off means empty: the cache is turned off and on."""
        if not self._settings().get(CACHE):
            return False
        if not self.caller.post(CONFIGURE, {CACHE: False}).ok:
            return False
        self.configure({CACHE: True})
        return True

    def profile_off(self, run: str) -> EventsOff:
        return EventsOff("/stop_profile", {"run_id": run})

    def start_profile(self, folder: Path, run: str) -> None:
        self._tell("/start_profile", profile_body(folder, run))

    def stop_profile(self, run: str) -> Sequence[Path]:
        path = "/stop_profile"
        answer = self.caller.post(path, {"run_id": run}, STOP_TIMEOUT_S)
        document = parsed(self.caller.base + path, answer)
        return [Path(one) for one in (document["trace_path"], *document["event_files"])]

    def _settings(self) -> Mapping[str, Any]:
        return self._told("settings")

    def _bundles(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        return self._told("bundles")

    def _told(self, part: str) -> Mapping[str, Any]:
        """A part of /server_info; empty where there is none."""
        document = self.caller.json_or_none("/server_info")
        found = document.get(part) if isinstance(document, dict) else None
        return without_secrets(found) if isinstance(found, dict) else {}

    def _cap(self, settings: Mapping[str, Any]) -> int | None:
        """Requests beyond it wait, and are refused beyond the waiting room."""
        cap = settings.get("max_running_requests")
        return cap if isinstance(cap, int) else None
