"""Errors as OpenAI's API writes them: {"error": {"message", "type", "code"}} and a status.

400   the input cannot be served (malformed, too long, unknown names)
404   no such model
413   the body is too large
501   this server's pipeline cannot do that
503   shed: a limit is full, named in the text and in `code`; or the engine is lost
500   the engine failed while it worked on the request
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response

from sample_engine.scheduling.request import End, Ending
from sample_engine.server.client import CommandRefused, NotDone

RETRY_AFTER_S = 1
CLIENT_GONE = 499
"""nginx's status for a client that left; nobody reads it."""
_STATUS_OF_END: Mapping[End, int] = {"rejected": 400, "shed": 503, "cancelled": CLIENT_GONE, "failed": 500}
_STATUS_OF_COMMAND = {"invalid": 400, "refused": 409, "failed": 503}


class Problem(Exception):
    """What a route refuses by itself."""

    def __init__(self, status: int, message: str, code: str = "invalid_request") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class ClientGone(Exception):
    """Nobody waits for the response."""


def error_body(message: str, code: str, kind: str) -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "code": code, "param": None}}


def problem_response(status: int, message: str, code: str) -> Response:
    kind = "invalid_request_error" if status < 500 else "server_error"
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status == 503 else None
    return JSONResponse(error_body(message, code, kind), status, headers)


def code_of(ending: Ending) -> str:
    """The limit that was full, or how the request ended."""
    return ending.reason.split(" ", 1)[0] if ending.end == "shed" else ending.end


async def on_problem(request: HttpRequest, error: Problem) -> Response:
    return problem_response(error.status, str(error), error.code)


async def on_not_done(request: HttpRequest, error: NotDone) -> Response:
    return problem_response(_STATUS_OF_END[error.ending.end], str(error), code_of(error.ending))


async def on_command_refused(request: HttpRequest, error: CommandRefused) -> Response:
    return problem_response(_STATUS_OF_COMMAND[error.problem], str(error), error.problem)


async def on_client_gone(request: HttpRequest, error: ClientGone) -> Response:
    return Response(status_code=CLIENT_GONE)


async def on_invalid(request: HttpRequest, error: Any) -> Response:
    """A body that is no JSON, or not of the shape; says where."""
    text = "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in error.errors())
    return problem_response(400, text, "invalid_request")


async def on_http(request: HttpRequest, error: Any) -> Response:
    """Unknown paths and methods."""
    return problem_response(error.status_code, str(error.detail), "invalid_request")
