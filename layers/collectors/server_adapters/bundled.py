"""The bundled engine (docs/engine.md): settings and processes from /server_info, metrics, profiler, settings
that change while nothing runs.

Its content cache is that of encoded audio; a share of hits in its state is that cache's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from layers.collectors.server_adapters.calls import parsed, without_secrets
from layers.collectors.server_adapters.generic import GenericAdapter, StageTime, StateNames
from layers.collectors.server_adapters.sglang_omni import profile_body

STOP_TIMEOUT_S = 300.0
CONFIGURE = "/configure"
CACHE = "encoder_cache"
ENCODED = 'engine_encoder_cache_total{{result="{}"}}'


class BundledAdapter(GenericAdapter):
    """One server of the bundled engine."""

    kind = "sample-engine"
    owner = "sample_engine"
    has_events = True
    names = StateNames(
        running=("engine_requests_running",),
        waiting=("engine_requests_waiting + engine_requests_building",),
        prefix_hits=(ENCODED.format("hit"),),
        prefix_queries=(f"{ENCODED.format('hit')} + {ENCODED.format('miss')}",),
    )
    stages = (
        StageTime("engine_queue_wait_seconds", "{stage} queue"),
        StageTime("engine_step_seconds", "{stage} step"),
    )

    def processes(self) -> dict[str, int]:
        """Process ids by name: front, engine and device."""
        found = self.caller.json_of("/server_info").get("processes", {})
        return {str(name): int(pid) for name, pid in found.items()}

    def configure(self, changes: Mapping[str, Any]) -> Any:
        """Change settings by their flat names; ServerCallFailed, with the reason, where that is refused."""
        return parsed(self.caller.base + CONFIGURE, self.caller.post(CONFIGURE, dict(changes)))

    def flush_caches(self) -> bool:
        """Only while nothing runs. Off means empty: the cache is turned off and on."""
        if not self._settings().get(CACHE):
            return False
        if not self.caller.post(CONFIGURE, {CACHE: False}).ok:
            return False
        self.configure({CACHE: True})
        return True

    def start_profile(self, folder: Path, run: str) -> None:
        self._tell("/start_profile", profile_body(folder, run))

    def stop_profile(self, run: str) -> Sequence[Path]:
        path = "/stop_profile"
        answer = self.caller.post(path, {"run_id": run}, STOP_TIMEOUT_S)
        document = parsed(self.caller.base + path, answer)
        return [Path(one) for one in (document["trace_path"], *document["event_files"])]

    def _settings(self) -> Mapping[str, Any]:
        document = self.caller.json_or_none("/server_info")
        found = document.get("settings") if isinstance(document, dict) else None
        return without_secrets(found) if isinstance(found, dict) else {}

    def _cap(self, settings: Mapping[str, Any]) -> int | None:
        """Requests beyond it wait, and are refused beyond the waiting room."""
        cap = settings.get("max_running_requests")
        return cap if isinstance(cap, int) else None
