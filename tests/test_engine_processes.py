"""The processes of a server: how they start, what they do when one of them is killed, how they end."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.engine_servers import LONG_S, Reply, Server, serving, start

METHODS = ("fork", "spawn")


class Asking:
    """A request in the background, once it has a slot."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._reply: Reply | OSError | HTTPException | None = None
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()
        server.wait_for("requests_running", 1)

    def reply(self) -> Reply:
        outcome = self.outcome()
        assert isinstance(outcome, Reply), outcome
        return outcome

    def outcome(self) -> Reply | OSError | HTTPException | None:
        """What came back, if only an error; None if nothing ever did."""
        self._thread.join(LONG_S)
        return self._reply

    def _ask(self) -> None:
        try:
            self._reply = self._server.speak(7)
        except (OSError, HTTPException) as error:
            self._reply = error


@pytest.mark.parametrize("method", METHODS)
def test_sigterm_ends_all_of_them_with_exit_code_0(method: str) -> None:
    with serving("--start-method", method) as server:
        assert server.speak().status == 200
        server.process.terminate()
        assert server.process.wait(LONG_S) == 0
        server.wait_until_gone()


@pytest.mark.parametrize("method", METHODS)
def test_after_sigkill_of_the_front_nothing_survives(method: str) -> None:
    with serving("--start-method", method) as server:
        with server.device_stopped():
            asking = Asking(server)
            server.process.kill()
            server.process.wait(LONG_S)
        server.wait_until_gone()
        assert isinstance(asking.outcome(), (OSError, HTTPException))


def test_a_killed_device_gives_errors_at_once_and_for_good() -> None:
    with serving() as server:
        os.kill(server.processes["device"], signal.SIGSTOP)
        asking = Asking(server)
        os.kill(server.processes["device"], signal.SIGKILL)
        assert asking.reply().error == (500, "failed")
        assert "device process ended" in asking.reply().json["error"]["message"]
        assert server.speak().error == (500, "failed")
        assert server.get("/health").status == 503
        server.process.terminate()
        assert server.process.wait(LONG_S) == 0
        server.wait_until_gone()


def test_a_killed_engine_gives_errors_at_once_and_for_good() -> None:
    with serving() as server:
        with server.device_stopped():
            asking = Asking(server)
            os.kill(server.processes["engine"], signal.SIGKILL)
            assert asking.reply().error == (500, "failed")
        assert "the engine process ended (signal 9, Killed)" in asking.reply().json["error"]["message"]
        assert server.speak(stream=True).error == (500, "failed")
        assert server.get("/health").error == (503, "engine_lost")
        assert server.get("/server_info").status == 503
        server.process.terminate()
        assert server.process.wait(LONG_S) == 0
        server.wait_until_gone()


def test_requests_on_their_way_are_served_before_a_server_ends() -> None:
    with serving() as server:
        with server.device_stopped():
            asking = Asking(server)
            server.process.terminate()
        assert asking.reply().status == 200
        assert server.process.wait(LONG_S) == 0


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--set", "budget_bytes=1000"), 1, "device memory"),
        (("--set", "lookahead=maybe"), 2, "lookahead cannot be 'maybe'"),
        (("--set", "lookahead"), 2, "NAME=VALUE"),
        (("--config", "/nowhere.toml"), 2, "/nowhere.toml"),
        (("--host", "256.0.0.1"), 2, ""),
    ],
)
def test_a_server_that_cannot_start_says_why(options: tuple[str, ...], code: int, text: str) -> None:
    process = start(*options)
    stdout, stderr = process.communicate(timeout=LONG_S)
    assert (process.returncode, stdout) == (code, "")
    assert text in stderr
    assert "Traceback" not in stderr


def test_a_port_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = start("--port", str(taken.getsockname()[1]))
        _, stderr = process.communicate(timeout=LONG_S)
    assert (process.returncode, "in use" in stderr) == (2, True)


def test_a_server_can_be_ended_while_it_starts() -> None:
    process = start()
    time.sleep(0.5)
    process.terminate()
    process.communicate(timeout=LONG_S)
    assert process.returncode in (0, -signal.SIGTERM)


def test_settings_come_from_file_environment_and_options(tmp_path: Path) -> None:
    file = tmp_path / "engine.toml"
    file.write_text('lookahead = false\npolicy = "unified"\nseed = 3\n')
    options = ("--config", str(file), "--limits", "raised", "--set", "policy=per-stage")
    with serving(*options, SAMPLE_ENGINE_SEED="4") as server:
        info = server.get("/server_info").json
    settings, sources = info["settings"], info["sources"]
    assert (settings["lookahead"], settings["policy"], settings["seed"]) == (False, "per-stage", 4)
    assert settings["max_running_requests"] == 64
    assert sources["lookahead"] == f"file {file}"
    assert (sources["policy"], sources["seed"]) == ("option", "environment")


def test_profilers_are_allowed_in_all_processes_where_that_was_asked_for() -> None:
    with serving("--allow-profilers") as server:
        for name in ("engine", "device"):
            environment = Path(f"/proc/{server.processes[name]}/environ").read_bytes()
            assert (b"SAMPLE_ENGINE_ALLOW_PROFILERS=1" in environment) == (name == "device")
