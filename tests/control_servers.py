"""A small real HTTP server whose pages a test sets, for control calls: what is asked of it is kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANG = "hang"
Page = Callable[[Any], Any] | dict[str, Any] | list[Any] | str | int


@dataclass
class ControlServer:
    """`pages` by "METHOD path": a document, text, a status alone, HANG, or a function of the body that gives
    one of these. `asked` are all calls, with their bodies and headers."""

    pages: dict[str, Page]
    url: str = ""
    asked: list[tuple[str, Any, dict[str, str]]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def calls(self, called: str) -> list[Any]:
        """The bodies of all calls of this method and path."""
        return [body for name, body, _ in self.asked if name == called]


@contextmanager
def control_server(pages: dict[str, Page]) -> Iterator[ControlServer]:
    """A server with these pages on a free port of 127.0.0.1."""
    made = ControlServer(pages)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield made
    finally:
        made.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(made: ControlServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(json.loads(data) if data else None)

        def _answer(self, body: Any) -> None:
            called = f"{self.command} {self.path}"
            made.asked.append((called, body, dict(self.headers)))
            page = made.pages.get(called, 404)
            if callable(page):
                page = page(body)
            if page == HANG:
                made.over.wait()
                return
            status, text = (page, "") if isinstance(page, int) else (200, page)
            data = (text if isinstance(text, str) else json.dumps(text)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def models(owner: str, *names: str) -> dict[str, Any]:
    """/v1/models."""
    return {"object": "list", "data": [{"id": name, "owned_by": owner} for name in names or ("m",)]}
