"""A server's own account of how it is configured, where it has an endpoint for it.

Asked are the endpoints of SGLang, SGLang-Omni, vLLM and perfkit's bundled engine; which one answers says what
the server is. The answer is flattened to one fact a setting. Settings whose name speaks of a secret lose
their value, and numbers that move while a server runs are left out, so that two snapshots can be compared.
"""

from __future__ import annotations

import json
import math
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from typing import Any

from layers.collectors.bounded import ProbeFailed
from layers.collectors.servers import server_address
from layers.evidence.secrets import CREDENTIALS, SECRET
from layers.preflight.environment import NOT_KEPT
from layers.preflight.facts import Fact, Gathering, Section

NAME = "server"
ENDPOINTS = ("/server_info", "/get_server_info", "/get_model_info", "/v1/models", "/version")
TIMEOUT_S = 5.0
"""For each endpoint: a server that is loading or hangs must not hold the pre-flight."""
MAX_ANSWER_BYTES = 4 << 20
CHUNK_BYTES = 1 << 16
MAX_FACTS = 2000
MAX_DEPTH = 8
MAX_TEXT_CHARACTERS = 1000

MOVES = re.compile(
    r"(?i)internal_states|throughput|uptime|^created$|timestamp|_time$|usage|num_(running|waiting|requests)|queue_(len|size)$"
)
"""Names of what changes by itself while a server runs."""


def server_section(url: str) -> Section:
    """What the server at this address says of itself; facts of one endpoint begin with its path."""
    address = server_address(url)
    base = f"{address.scheme}://{address.netloc}{address.path.rstrip('/')}"
    facts = Gathering(NAME)
    facts.know("address", base)
    for endpoint in ENDPOINTS:
        _take_endpoint(facts, base, endpoint)
    return facts.section()


def _take_endpoint(facts: Gathering, base: str, endpoint: str) -> None:
    try:
        document = fetch_json(base + endpoint)
    except ProbeFailed as error:
        facts.miss(endpoint, str(error))
        return
    for count, (name, value) in enumerate(flatten(document)):
        if count == MAX_FACTS:
            facts.miss(f"{endpoint} (rest)", f"more than {MAX_FACTS} settings")
            return
        facts.know(f"{endpoint} {name}", value)


def fetch_json(url: str, timeout_s: float = TIMEOUT_S) -> Any:
    """GET a JSON document, without any proxy; ProbeFailed with the reason."""
    give_up = time.monotonic() + timeout_s
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())
    try:
        with opener.open(url, timeout=timeout_s) as answer:
            text = _body(answer, give_up)
    except urllib.error.HTTPError as error:
        error.close()
        raise ProbeFailed(f"HTTP {error.code}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise ProbeFailed(str(getattr(error, "reason", error)) or type(error).__name__) from error
    if len(text) > MAX_ANSWER_BYTES:
        raise ProbeFailed(f"more than {MAX_ANSWER_BYTES >> 20} MiB of answer")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProbeFailed("no JSON") from error


def _body(answer: HTTPResponse, give_up: float) -> bytes:
    """The answer, as far as it is not too long; TimeoutError where it only drips: a time limit of a socket
    begins anew with every byte."""
    text = bytearray()
    while len(text) <= MAX_ANSWER_BYTES and (chunk := answer.read1(CHUNK_BYTES)):
        text += chunk
        if time.monotonic() > give_up:
            raise TimeoutError("timed out before the answer ended")
    return bytes(text)


def flatten(document: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Fact]]:
    """(dotted name, value) of each setting; lists of plain values stay one fact."""
    last = name.rpartition(".")[2]
    if MOVES.search(last):
        return
    if SECRET.search(last) and document not in (None, "", False):
        yield name, NOT_KEPT
    elif isinstance(document, dict) and depth < MAX_DEPTH:
        for key in sorted(document, key=str):
            yield from flatten(document[key], f"{name}.{key}" if name else str(key), depth + 1)
    elif (
        isinstance(document, list) and any(isinstance(item, dict) for item in document) and depth < MAX_DEPTH
    ):
        for number, item in enumerate(document):
            yield from flatten(item, f"{name}.{number}" if name else str(number), depth + 1)
    else:
        yield name or "value", _fact(document)


def _fact(value: Any) -> Fact:
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    return CREDENTIALS.sub("//", text)[:MAX_TEXT_CHARACTERS]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A server that sends us elsewhere is not the one that was named."""

    def redirect_request(self, *_: Any) -> None:
        return None
