"""The bytes of requests, built ahead of sending where that can be.

Without a nonce each item has one request, built once; with one, each request is its own, and those of a run
of known length are built before it begins as far as PREPARED_BYTES go. The rest is built when its turn comes;
that shows as send lag.
"""

from __future__ import annotations

from collections.abc import Sequence

from layers.collectors.load.endpoints.endpoint import Body, Endpoint
from layers.collectors.load.item import Item
from layers.collectors.load.plan import Target
from layers.collectors.load.records import Phase

PREPARED_BYTES = 512 << 20
"""Of all requests built ahead in one process: 3,000 audio files of 160 kB."""
PORTS = {True: 443, False: 80}


class Stock:
    """Requests of one phase by their sequence: item `sequence modulo n`."""

    def __init__(
        self, endpoint: Endpoint, target: Target, items: Sequence[Item], phase: Phase, nonce: str
    ) -> None:
        self._endpoint, self._items = endpoint, items
        self._phase, self._nonce = phase, nonce
        self._begin = request_head(endpoint, target)
        self._built: dict[int, bytes] = {}
        self._built_bytes = 0

    def prepare(self, sequences: Sequence[int]) -> None:
        """Build the requests of these sequences, as far as memory goes."""
        for key in dict.fromkeys(map(self._key, sequences)):
            if self._built_bytes >= PREPARED_BYTES:
                return
            self._keep(key, self._build(key))

    def take(self, sequence: int) -> tuple[str, bytes]:
        """The item's id and the whole request."""
        key = self._key(sequence)
        request = self._built.get(key)
        if request is None:
            request = self._build(key)
            if not self._nonce and self._built_bytes < PREPARED_BYTES:
                self._keep(key, request)
        return self._items[sequence % len(self._items)].id, request

    def _key(self, sequence: int) -> int:
        return sequence if self._nonce else sequence % len(self._items)

    def _keep(self, key: int, request: bytes) -> None:
        self._built[key] = request
        self._built_bytes += len(request)

    def _build(self, key: int) -> bytes:
        nonce = f"{self._nonce}-{self._phase}-{key}" if self._nonce else ""
        return self._begin + _with_length(self._endpoint.build(self._items[key % len(self._items)], nonce))


def request_head(endpoint: Endpoint, target: Target) -> bytes:
    """The head of a request up to what depends on its body."""
    port = "" if target.port == PORTS[target.tls] else f":{target.port}"
    host = f"[{target.host}]" if ":" in target.host else target.host
    lines = [f"POST {endpoint.path} HTTP/1.1", f"Host: {host}{port}", "User-Agent: perfkit"]
    lines += (f"{name}: {value}" for name, value in target.headers.items())
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def _with_length(body: Body) -> bytes:
    accept = f"Accept: {body.accept}\r\n" if body.accept else ""
    head = f"{accept}Content-Type: {body.content_type}\r\nContent-Length: {len(body.data)}\r\n\r\n"
    return head.encode("latin-1") + body.data
