"""The profiler's routes, with the bodies and file names of SGLang-Omni's.

A run is a trace of the device and stage events of requests, or the events alone. Paths are the server's. The
front writes its own event file (`coordinator`), the engine another.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sample_engine.server.asking import Front
from sample_engine.server.problems import Problem

DIRECTORY = "SGLANG_TORCH_PROFILER_DIR"
"""Environment variable: where runs are written whose request names no place."""
STAGE = "engine"
"""All stages share one device and one trace."""
SUFFIX = "_pid{pid}_rank0.trace.json.gz"


@dataclass(frozen=True, slots=True)
class StartBody:
    """`trace_path_template` may hold {run_id} and {stage}."""

    run_id: str = ""
    trace_path_template: str = ""
    event_dir: str = ""
    enable_torch: bool = True


@dataclass(frozen=True, slots=True)
class StopBody:
    """No id stops whatever runs."""

    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """What is being recorded; `trace` None: events alone."""

    run_id: str
    event_dir: Path
    trace: Path | None


class Profiling:
    """The routes. One run at a time."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._run: Run | None = None

    async def start_profile(self, body: StartBody | None = None) -> dict[str, Any]:
        return await self._start(body or StartBody(), with_trace=(body or StartBody()).enable_torch)

    async def start_request_profile(self, body: StartBody | None = None) -> dict[str, Any]:
        return await self._start(body or StartBody(), with_trace=False)

    async def stop(self, body: StopBody | None = None) -> dict[str, Any]:
        """The reply comes when all files are complete."""
        run, wanted = self._run, (body or StopBody()).run_id
        if run is None or wanted not in ("", run.run_id):
            raise Problem(400, f"run {wanted or '(any)'} is not being recorded", "no_run")
        self._run = None
        files = [str(self._front.events.stop()), await self._front.client.command("stop_events")]
        if run.trace is not None:
            await self._front.client.command("stop_profile", path=str(run.trace))
        return _described(run) | {"event_files": files, "trace_path": str(run.trace or "")}

    async def _start(self, body: StartBody, with_trace: bool) -> dict[str, Any]:
        if self._run is not None:
            raise Problem(409, f"run {self._run.run_id} is being recorded", "run_in_progress")
        self._run = run = _run(body, await self._engine_pid(), with_trace)
        try:
            self._front.events.start(run.run_id, run.event_dir)
            await self._front.client.command("start_events", run_id=run.run_id, directory=str(run.event_dir))
            if with_trace:
                await self._front.client.command("start_profile")
        except OSError as error:
            self._run = None
            raise Problem(400, f"{run.event_dir}: {error.strerror}", "not_writable") from None
        return _described(run)

    async def _engine_pid(self) -> int:
        info = await self._front.client.command("info")
        return int(info["processes"]["engine"])


def _run(body: StartBody, engine_pid: int, with_trace: bool) -> Run:
    run_id = body.run_id or datetime.now().strftime("run_%Y%m%d_%H%M%S")
    event_dir = body.event_dir or _default(run_id, "events")
    if not with_trace:
        return Run(run_id, Path(event_dir), None)
    template = body.trace_path_template or _default(run_id, "trace")
    name = template.replace("{run_id}", run_id).replace("{stage}", STAGE)
    if "{" in name or "}" in name:
        raise Problem(400, f"{template}: a trace path may hold {{run_id}} and {{stage}} alone")
    return Run(run_id, Path(event_dir), Path(name + SUFFIX.format(pid=engine_pid)))


def _default(run_id: str, what: str) -> str:
    directory = os.environ.get(DIRECTORY)
    if not directory:
        raise Problem(400, f"say where to write (event_dir, trace_path_template), or set {DIRECTORY}")
    return str(Path(directory, run_id, what))


def _described(run: Run) -> dict[str, Any]:
    return {"run_id": run.run_id, "event_dir": str(run.event_dir), "enable_torch": run.trace is not None}
