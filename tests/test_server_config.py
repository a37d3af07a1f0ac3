"""A server's own configuration: which endpoint answers, what is kept, and servers that misbehave."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.bounded import ProbeFailed
from layers.preflight import server_config
from layers.preflight.server_config import fetch_json, flatten, server_section
from parsers.errors import UsageError

Serve = Callable[[dict[str, bytes]], str]
SECRET = "hunter2-s3cr3t"
INFO = {
    "model_path": "/models/x",
    "max_total_tokens": 8192,
    "tp_size": 2,
    "api_key": SECRET,
    "hf_token": SECRET,
    "ssl_keyfile_password": SECRET,
    "tokenizer_path": f"https://me:{SECRET}@host/x",
    "admin": {"auth": {"token": SECRET}},
    "empty_secret": "",
    "internal_states": [{"last_gen_throughput": 12.5}],
    "uptime": 99,
    "cuda_graph_bs": [1, 2, 4],
    "stages": [{"name": "ar"}, {"name": "vocoder"}],
}


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server with these pages and returns its address; a page of b"hang" never comes, and one that
    begins with b"drip" never ends."""
    servers: list[ThreadingHTTPServer] = []
    released = threading.Event()

    def start(pages: dict[str, bytes]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = pages.get(self.path)
                if page == b"hang":
                    released.wait()
                    return
                self.send_response(200 if page is not None else 404)
                self.end_headers()
                self.wfile.write((page or b"").removeprefix(b"drip"))
                while page is not None and page.startswith(b"drip") and not released.wait(0.01):
                    self.wfile.write(b" ")

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    released.set()
    for server in servers:
        server.shutdown()
        server.server_close()


def test_settings_are_kept_and_secrets_are_not(serve: Serve) -> None:
    section = server_section(serve({"/server_info": json.dumps(INFO).encode()}))
    assert SECRET not in repr(section)
    facts = section.facts
    assert facts["/server_info max_total_tokens"] == 8192
    assert facts["/server_info tokenizer_path"] == "https://host/x"
    assert facts["/server_info stages.1.name"] == "vocoder"
    assert facts["/server_info cuda_graph_bs"] == "[1, 2, 4]"
    assert section.unavailable["/v1/models"] == "HTTP 404"


def test_what_moves_by_itself_is_left_out(serve: Serve) -> None:
    facts = server_section(serve({"/server_info": json.dumps(INFO).encode()})).facts
    assert not [name for name in facts if "internal_states" in name or "uptime" in name]


def test_vllm_is_known_by_its_models_and_version(serve: Serve) -> None:
    pages = {"/v1/models": b'{"data": [{"id": "m", "created": 5}]}', "/version": b'{"version": "0.13"}'}
    facts = server_section(serve(pages)).facts
    assert facts["/v1/models data.0.id"] == "m" and facts["/version version"] == "0.13"


def test_the_address_loses_user_and_password() -> None:
    facts = server_section("http://me:pw@127.0.0.1:1/v1/").facts
    assert facts == {"address": "http://127.0.0.1:1/v1"}


@pytest.mark.parametrize(
    ("page", "timeout_s", "said"),
    [(b"<html>", 60, "no JSON"), (b"hang", 0.3, "timed out"), (b"[" * 100_000, 60, "no JSON")],
)
def test_a_server_that_answers_nonsense_or_nothing_is_given_up(
    serve: Serve, page: bytes, timeout_s: float, said: str
) -> None:
    with pytest.raises(ProbeFailed, match=said):
        fetch_json(serve({"/x": page}) + "/x", timeout_s)


def test_an_endless_answer_is_cut(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_config, "MAX_ANSWER_BYTES", 10)
    with pytest.raises(ProbeFailed, match="of answer"):
        fetch_json(serve({"/x": b'"' + b"a" * 100 + b'"'}) + "/x")


def test_an_answer_that_only_drips_is_given_up(serve: Serve) -> None:
    with pytest.raises(ProbeFailed, match="timed out before the answer ended"):
        fetch_json(serve({"/server_info": b"drip{"}) + "/server_info", timeout_s=1)


def test_nobody_there_is_said() -> None:
    section = server_section("http://127.0.0.1:1")
    assert "Connection refused" in section.unavailable["/server_info"]


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x", "http://", "file:///etc/passwd"])
def test_an_address_that_is_none_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="give an address"):
        server_section(url)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_any_document_becomes_plain_facts(document: Any) -> None:
    for name, value in flatten(document):
        assert isinstance(name, str) and name
        json.dumps(value, allow_nan=False)
