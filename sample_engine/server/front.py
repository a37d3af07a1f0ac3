"""The front process: HTTP in, the control channel out. It holds no model and waits for no device."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from sample_engine.server.admin import Admin
from sample_engine.server.asking import Front
from sample_engine.server.body_limit import MAX_BODY_BYTES, BodyLimit
from sample_engine.server.client import CommandRefused, NotDone
from sample_engine.server.completions import Completions
from sample_engine.server.problems import (
    ClientGone,
    Problem,
    on_client_gone,
    on_command_refused,
    on_http,
    on_invalid,
    on_not_done,
    on_problem,
    problem_response,
)
from sample_engine.server.profiling import Profiling
from sample_engine.server.speech import Speech
from sample_engine.server.transcriptions import Transcriptions
from sample_engine.server.watchdog import watch

HANDLERS: dict[int | type[Exception], Callable[..., Any]] = {
    Problem: on_problem,
    NotDone: on_not_done,
    CommandRefused: on_command_refused,
    ClientGone: on_client_gone,
    RequestValidationError: on_invalid,
    HTTPException: on_http,
}


def make_app(front: Front, on_start: Callable[[], None]) -> BodyLimit:
    """The whole application; `on_start` is called when it is about to take requests."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await front.client.connect()
        watching = asyncio.create_task(watch(front.client, front.metrics, front.settings.watchdog_s))
        on_start()
        yield
        watching.cancel()

    app = FastAPI(title="sample_engine", lifespan=lifespan, exception_handlers=HANDLERS)
    _add_routes(app, front)
    text = f"the body is larger than {MAX_BODY_BYTES} bytes"
    return BodyLimit(app, problem_response(413, text, "body_too_large"))


def _add_routes(app: FastAPI, front: Front) -> None:
    admin, profiling = Admin(front), Profiling(front)
    post: dict[str, Callable[..., Any]] = {
        "/v1/audio/speech": Speech(front).post,
        "/v1/audio/transcriptions": Transcriptions(front).post,
        "/v1/completions": Completions(front).post,
        "/configure": admin.configure,
        "/start_profile": profiling.start_profile,
        "/stop_profile": profiling.stop,
        "/start_request_profile": profiling.start_request_profile,
        "/stop_request_profile": profiling.stop,
    }
    get: dict[str, Callable[..., Any]] = {
        "/health": admin.health,
        "/v1/models": admin.models,
        "/server_info": admin.server_info,
        "/metrics": admin.metrics,
    }
    for method, routes in (("POST", post), ("GET", get)):
        for path, route in routes.items():
            app.add_api_route(path, route, methods=[method], response_model=None)
