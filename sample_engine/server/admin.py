"""Health, models, settings, metrics, and changing settings while nothing runs."""

from __future__ import annotations

import os
from typing import Annotated, Any

from fastapi import Body
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from sample_engine.server.asking import Front
from sample_engine.server.exposition import exposition
from sample_engine.server.problems import problem_response


class Admin:
    """The routes."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def health(self) -> Response:
        """From shared memory, so that a busy engine answers as fast as an idle one."""
        if self._front.client.lost or not self._front.metrics.get("engine_up"):
            return problem_response(503, self._front.client.lost or "the engine cannot go on", "engine_lost")
        return JSONResponse({"status": "ok"})

    async def models(self) -> dict[str, object]:
        model = {"id": self._front.model, "object": "model", "created": 0, "owned_by": "sample_engine"}
        return {"object": "list", "data": [model]}

    async def server_info(self) -> dict[str, Any]:
        """Settings in force, where each came from, limits, process ids."""
        info: dict[str, Any] = await self._front.client.command("info")
        info["processes"] = {"front": os.getpid(), **info["processes"]}
        return {"model": self._front.model, **info}

    async def metrics(self) -> Response:
        return Response(exposition(self._front.metrics), media_type=CONTENT_TYPE_LATEST)

    async def configure(self, changes: Annotated[dict[str, Any], Body()]) -> Any:
        """Settings by their flat names, as in a configuration file; `preset` and `limits` name bundles."""
        return await self._front.client.command("configure", **changes)
