"""POST /v1/audio/transcriptions: an audio file to text, whole or word by word."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import File, Form, UploadFile
from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response, StreamingResponse

from sample_engine.scheduling.request import Request
from sample_engine.server.asking import Front, chained, first_of, new_id, now_ns, unless_gone, whole
from sample_engine.server.client import NotDone
from sample_engine.server.problems import Problem, code_of, error_body
from sample_engine.server.wav import samples_of

SAMPLE_RATE_HZ = 16_000
"""What the encoder takes."""


class Transcriptions:
    """The route."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def post(
        self,
        http: HttpRequest,
        file: Annotated[UploadFile, File()],
        model: Annotated[str, Form()] = "",
        response_format: Annotated[str, Form()] = "json",
        stream: Annotated[bool, Form()] = False,
    ) -> Response:
        pipeline = self._front.settings.pipeline
        if pipeline != "asr":
            text = f"this server runs the {pipeline} pipeline, which cannot transcribe"
            raise Problem(501, text, "pipeline")
        self._front.check_model(model)
        if response_format not in ("json", "text"):
            raise Problem(400, f"response_format is json or text, not {response_format!r}")
        pieces = self._front.ask(_request(await file.read(), stream))
        if stream:
            first = await unless_gone(http, first_of(pieces))
            return StreamingResponse(_events(chained(first, rest=pieces)), media_type="text/event-stream")
        text = (await unless_gone(http, whole(pieces))).decode()
        if response_format == "text":
            return Response(text, media_type="text/plain")
        return JSONResponse({"text": text})


def _request(data: bytes, stream: bool) -> Request:
    try:
        samples = samples_of(data, SAMPLE_RATE_HZ)
    except ValueError as error:
        raise Problem(400, str(error)) from None
    return Request(new_id(), "transcription", samples=samples, stream=stream, arrived_ns=now_ns())


async def _events(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """As OpenAI streams transcripts."""
    text = ""
    try:
        async for piece in pieces:
            delta = piece.decode()
            text += delta
            yield _event({"type": "transcript.text.delta", "delta": delta})
        yield _event({"type": "transcript.text.done", "text": text})
    except NotDone as error:
        yield _event(error_body(str(error), code_of(error.ending), "server_error"))


def _event(data: dict[str, object]) -> str:
    return f"data: {json.dumps(data)}\n\n"
