"""A sweep against a server of which a process is stopped: it says so and ends, instead of waiting it out."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from layers.collectors.load.driver import Why
from layers.collectors.load.plan import Extent, Load
from layers.collectors.load.team import Progress
from layers.evidence.verdict import Exit
from layers.layer3_sweep import silence
from layers.layer3_sweep.conclude import Ran, conclude
from layers.layer3_sweep.silence import Silence
from perfkit.cli.app import main
from tests.sweep_runs import Heard, sweep_plan, swept

SERVER = """
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_): ...

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture
def served() -> Iterator[tuple[int, int]]:
    """The process id and the port of a server in a session of its own."""
    with Popen([sys.executable, "-c", SERVER], stdout=PIPE, text=True, start_new_session=True) as server:
        assert server.stdout is not None
        try:
            yield server.pid, int(server.stdout.readline())
        finally:
            server.kill()


def test_a_server_that_is_stopped_is_named_before_anything_is_sent(
    served: tuple[int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pid, port = served
    os.kill(pid, signal.SIGSTOP)
    folder = tmp_path / "none"
    code = main(["sweep", "--server", f"http://127.0.0.1:{port}", "--investigation", str(folder)])
    said = capsys.readouterr().err
    assert code == Exit.INVALID and not folder.exists()
    assert f"process {pid} is stopped" in said and f"kill -CONT {pid}" in said


def test_a_server_that_is_stopped_in_the_middle_ends_the_pass_and_the_sweep(
    served: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, port = served
    monkeypatch.setattr(silence, "LOOK_EVERY_S", 0.2)
    heard = Heard(on_move=lambda progress: os.kill(pid, signal.SIGSTOP) if progress.ok >= 5 else None)
    plan = sweep_plan(port, extent=Extent(duration_s=600.0), loads=(Load(1), Load(2)))
    swept(tmp_path / "sweep", plan, heard)
    ((_, _, part),) = heard.ends
    assert part.ended == Why.SERVER_GONE and f"process {pid} is stopped" in part.error


def test_a_warm_up_that_is_stopped_is_the_verdict(
    served: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, port = served
    monkeypatch.setattr(silence, "LOOK_EVERY_S", 0.2)
    heard = Heard(on_move=lambda progress: os.kill(pid, signal.SIGSTOP))
    plan = sweep_plan(port, extent=Extent(duration_s=5.0, warmup_s=600.0))
    why = swept(tmp_path / "sweep", plan, heard)
    result, _ = conclude(Ran(tmp_path / "sweep", plan, "numbered", "", False, None, why))
    assert (result.verdict.headline, result.verdict.exit_code) == ("VOID", Exit.INVALID)
    assert f"process {pid} is stopped" in result.verdict.because


def at(elapsed_s: float, ok: int = 0, shed: int = 0, failed: int = 0) -> Progress:
    return Progress(elapsed_s, sent=4, ok=ok, shed=shed, failed=failed, measuring=False)


def test_what_is_waited_for_is_said_and_silence_ends_the_pass() -> None:
    said: list[str] = []
    one = Silence((), 120.0, said.append)
    assert [one.look(at(s)) for s in (1.0, 14.0, 16.0, 17.0)] == [""] * 4
    assert said == [
        "no answer to 4 requests of the warm-up for 16 s; each is given up after 120 s without a byte "
        "(--timeout)"
    ]
    assert one.look(at(121.0)) == ""  # slow, and nothing failed: a first request may compile kernels
    assert one.look(at(122.0, failed=1)) == "not one request was served in 120 s"


def test_a_server_that_serves_is_not_ended_however_long_one_answer_takes() -> None:
    one = Silence((), 120.0, lambda _: None)
    assert one.look(at(500.0, ok=1, failed=2)) == "" == one.look(at(900.0, shed=1, failed=2))
