"""POST /v1/audio/speech: text to audio, whole or as it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fastapi import Request as HttpRequest
from fastapi.responses import Response, StreamingResponse

from sample_engine.models.vocoder_sizes import SAMPLE_RATE_HZ
from sample_engine.scheduling.request import Request
from sample_engine.server.asking import Front, chained, first_of, new_id, now_ns, unless_gone, whole
from sample_engine.server.checks import checked_seed, checked_temperature, checked_text
from sample_engine.server.wav import wav_header

MEDIA_TYPES = {"wav": "audio/wav", "pcm": "audio/pcm"}


@dataclass(frozen=True, slots=True)
class SpeechBody:
    """`stream` (or OpenAI's `stream_format` "audio") sends audio as it is made. What is not listed here is
    ignored, as `voice` is: the engine has one.
    """

    input: str
    model: str = ""
    voice: str = ""
    response_format: Literal["wav", "pcm"] = "wav"
    stream: bool = False
    stream_format: Literal["", "audio"] = ""
    temperature: float = 0.0
    seed: int = 0


class Speech:
    """The route."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def post(self, http: HttpRequest, body: SpeechBody) -> Response:
        self._front.check_model(body.model)
        asked = _request(body)
        media_type, headers = MEDIA_TYPES[body.response_format], {"X-Request-Id": asked.request_id}
        pieces = self._front.ask(asked)
        if asked.stream:
            first = await unless_gone(http, first_of(pieces))
            audio = chained(_header(body, None), first, rest=pieces)
            return StreamingResponse(audio, media_type=media_type, headers=headers)
        pcm = await unless_gone(http, whole(pieces))
        return Response(_header(body, len(pcm)) + pcm, media_type=media_type, headers=headers)


def _request(body: SpeechBody) -> Request:
    return Request(
        request_id=new_id(),
        kind="speech",
        text=checked_text(body.input),
        temperature=checked_temperature(body.temperature),
        seed=checked_seed(body.seed),
        stream=body.stream or body.stream_format == "audio",
        arrived_ns=now_ns(),
    )


def _header(body: SpeechBody, data_bytes: int | None) -> bytes:
    return wav_header(SAMPLE_RATE_HZ, data_bytes) if body.response_format == "wav" else b""
