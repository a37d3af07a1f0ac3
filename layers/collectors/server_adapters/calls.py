"""Control calls to a server: small, bounded in time and in bytes, without proxies and without redirects.

Not for load. Header values may be secrets: they go to the server and into no message and no file.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from layers.collectors.server_adapters.adapter import ServerCallFailed
from layers.collectors.servers import server_address
from layers.evidence.secrets import CREDENTIALS, SECRET

CALL_TIMEOUT_S = 10.0
"""For a whole call. A server whose answers take seconds may be under load; one that takes longer hangs."""
MAX_ANSWER_BYTES = 16 << 20
"""Pages of metrics are up to 1 MB, settings less."""
MAX_REASON_CHARACTERS = 300
OK = range(200, 300)
NOT_KEPT = "not recorded"
PLAIN_TEXT = {"Accept": "text/plain;version=0.0.4, application/json;q=0.9, */*;q=0.1"}


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of one call."""

    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        return self.status in OK


@dataclass(frozen=True, slots=True)
class Caller:
    """Where a server is and how to talk to it: its address, headers that it wants, whether its certificate is
    checked, and by whose (`ca_file`; "": the system's)."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    verify: bool = True
    ca_file: str = ""

    @property
    def base(self) -> str:
        """The address without name, password, and a slash at its end; UsageError where it is none."""
        address = server_address(self.url)
        return f"{address.scheme}://{address.netloc}{address.path.rstrip('/')}"

    def get(self, path: str, timeout_s: float = CALL_TIMEOUT_S) -> Answer:
        """GET; ServerCallFailed where there is no answer, whatever its status."""
        return self._call("GET", path, None, timeout_s)

    def post(self, path: str, body: Any = None, timeout_s: float = CALL_TIMEOUT_S) -> Answer:
        """POST with a JSON body, or without one; fails as `get`."""
        return self._call("POST", path, body, timeout_s)

    def json_of(self, path: str, timeout_s: float = CALL_TIMEOUT_S) -> Any:
        """The JSON document at a path; ServerCallFailed where there is none."""
        return parsed(self.base + path, self.get(path, timeout_s))

    def json_or_none(self, path: str) -> Any:
        """As `json_of`, but None where this server has no such path, or something else there."""
        answer = self.get(path)
        try:
            return json.loads(answer.body) if answer.ok else None
        except (ValueError, RecursionError):
            return None

    def _call(self, method: str, path: str, body: Any, timeout_s: float) -> Answer:
        url = self.base + path
        try:
            return asyncio.run(self._exchange(method, url, body, timeout_s))
        except TimeoutError:
            raise ServerCallFailed(f"{url}: no answer in {timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ServerCallFailed(f"{url}: {str(error) or type(error).__name__}") from error

    async def _exchange(self, method: str, url: str, body: Any, timeout_s: float) -> Answer:
        """The connection lives until the session cuts it: one that is told to close waits for TLS to end
        on both sides, for longer than the loop is there."""
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            headers={**PLAIN_TEXT, "Accept-Encoding": "identity", **self.headers},
            connector=aiohttp.TCPConnector(ssl=self._tls()),
            auto_decompress=False,
        ) as session:
            call = session.request(method, url, json=body, allow_redirects=False)
            async with call as response:
                return Answer(response.status, await _bounded(response, url))

    def _tls(self) -> ssl.SSLContext | bool:
        if not self.verify:
            return False
        return ssl.create_default_context(cafile=self.ca_file) if self.ca_file else True


async def _bounded(response: aiohttp.ClientResponse, url: str) -> bytes:
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise ServerCallFailed(f"{url}: more than {MAX_ANSWER_BYTES >> 20} MiB of answer")
    return bytes(body)


def parsed(url: str, answer: Answer) -> Any:
    """The JSON of an answer with status 2xx; ServerCallFailed otherwise."""
    require_ok(url, answer)
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise ServerCallFailed(f"{url}: the answer is no JSON") from error


def require_ok(url: str, answer: Answer) -> None:
    """ServerCallFailed, with the server's words, for any status but 2xx."""
    if not answer.ok:
        words = " ".join(answer.body.decode(errors="replace").split())
        raise ServerCallFailed(f"{url}: HTTP {answer.status}: {words[:MAX_REASON_CHARACTERS] or 'no words'}")


def without_secrets(value: Any, name: str = "") -> Any:
    """A document as it may be written down: values under names of secrets, and passwords in addresses, are
    not in it."""
    if SECRET.search(name) and value not in (None, "", False):
        return NOT_KEPT
    if isinstance(value, dict):
        return {key: without_secrets(part, str(key)) for key, part in value.items()}
    if isinstance(value, list):
        return [without_secrets(part) for part in value]
    return CREDENTIALS.sub("//", value) if isinstance(value, str) else value
