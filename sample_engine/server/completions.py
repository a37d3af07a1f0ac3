"""POST /v1/completions: the decoder's text channel, in the shape that generic load tools speak."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request as HttpRequest
from fastapi.responses import JSONResponse, Response, StreamingResponse

from sample_engine.scheduling.request import Request
from sample_engine.server.asking import Front, chained, first_of, new_id, now_ns, unless_gone
from sample_engine.server.checks import checked_seed, checked_temperature, checked_text
from sample_engine.server.client import NotDone
from sample_engine.server.problems import Problem, code_of, error_body

END_STEPS = 1
"""The step that says the end has no text."""


@dataclass(frozen=True, slots=True)
class CompletionBody:
    """One prompt; a list may hold one. Without `max_tokens` the length is a function of the prompt."""

    prompt: str | list[str]
    model: str = ""
    max_tokens: int = 0
    temperature: float = 0.0
    seed: int = 0
    n: int = 1
    stream: bool = False
    stream_options: dict[str, Any] | None = field(default=None)


class Completions:
    """The route."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def post(self, http: HttpRequest, body: CompletionBody) -> Response:
        self._front.check_model(body.model)
        asked = _request(body)
        answer = CompletionAnswer(asked, self._front.model)
        pieces = self._front.ask(asked)
        if body.stream:
            first = await unless_gone(http, first_of(pieces))
            counts = bool((body.stream_options or {}).get("include_usage"))
            events = answer.events(chained(first, rest=pieces), counts)
            return StreamingResponse(events, media_type="text/event-stream")
        texts = await unless_gone(http, _all(pieces))
        return JSONResponse(answer.chunk("".join(texts), _finish(asked)) | answer.usage(len(texts)))


@dataclass(frozen=True, slots=True)
class CompletionAnswer:
    """The JSON of one response."""

    asked: Request
    model: str
    created_s: int = field(default_factory=lambda: int(time.time()))

    async def events(self, pieces: AsyncIterator[bytes], counts: bool) -> AsyncIterator[str]:
        """Server-sent events; an error after the first piece is one of them."""
        tokens = 0
        try:
            async for one in pieces:
                tokens += 1
                yield _event(self.chunk(one.decode(), None))
            yield _event(self.chunk("", _finish(self.asked)))
            if counts:
                yield _event(self.chunk("", None) | {"choices": []} | self.usage(tokens))
            yield "data: [DONE]\n\n"
        except NotDone as error:
            yield _event(error_body(str(error), code_of(error.ending), "server_error"))

    def chunk(self, text: str, finish: str | None) -> dict[str, Any]:
        choice = {"index": 0, "text": text, "finish_reason": finish, "logprobs": None}
        return {
            "id": f"cmpl-{self.asked.request_id}",
            "object": "text_completion",
            "created": self.created_s,
            "model": self.model,
            "choices": [choice],
        }

    def usage(self, tokens: int) -> dict[str, Any]:
        """A token is a word in, a syllable out."""
        words = len(self.asked.text.split())
        return {
            "usage": {"prompt_tokens": words, "completion_tokens": tokens, "total_tokens": words + tokens}
        }


def _request(body: CompletionBody) -> Request:
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    if len(prompts) != 1 or body.n != 1:
        raise Problem(400, "one prompt and one completion of it at a time (n=1)")
    if body.max_tokens < 0:
        raise Problem(400, f"max_tokens is a number of tokens, not {body.max_tokens}")
    return Request(
        request_id=new_id(),
        kind="completion",
        text=checked_text(prompts[0]),
        temperature=checked_temperature(body.temperature),
        seed=checked_seed(body.seed),
        max_steps=body.max_tokens + END_STEPS if body.max_tokens else 0,
        stream=body.stream,
        arrived_ns=now_ns(),
    )


def _finish(asked: Request) -> str:
    return "length" if asked.max_steps else "stop"


async def _all(pieces: AsyncIterator[bytes]) -> list[str]:
    return [one.decode() async for one in pieces]


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"
