"""Refuses request bodies over a size before they are held in memory (413), as ASGI middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

MAX_BODY_BYTES = 25 << 20
"""As OpenAI's API allows for an audio file."""


class BodyTooLarge(Exception):
    """More bytes came than a body may have."""


class BodyLimit:
    """Counts what is received; `refuse` is the application that answers instead."""

    def __init__(self, app: App, refuse: App, limit_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._refuse = refuse
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._announced_bytes(scope) > self._limit_bytes:
            await self._refuse(scope, receive, send)
        else:
            await self._counted(scope, receive, send)

    async def _counted(self, scope: Message, receive: Receive, send: Send) -> None:
        """Without an announced length; what the application says of its broken body is not sent."""
        received_bytes = 0

        async def counting() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            if received_bytes > self._limit_bytes:
                raise BodyTooLarge
            return message

        async def sending(message: Message) -> None:
            if received_bytes <= self._limit_bytes:
                await send(message)

        with suppress(BodyTooLarge):
            await self._app(scope, counting, sending)
        if received_bytes > self._limit_bytes:
            await self._refuse(scope, receive, send)

    @staticmethod
    def _announced_bytes(scope: Message) -> int:
        length = dict(scope["headers"]).get(b"content-length", b"0")
        return int(length) if length.isdigit() else 0
