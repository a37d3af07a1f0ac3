"""The engine as a program: `python -m sample_engine serve` on a free port, with a tiny model."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import REPOSITORY

for needed in ("torch", "fastapi", "uvicorn", "multipart"):
    pytest.importorskip(needed)

LONG_S = 60.0
TINY = {"SAMPLE_ENGINE_SIZE": "tiny", "SAMPLE_ENGINE_CUDA_GRAPH": "off"}
"""Captures take longer than most tests."""
SPEECH = "/v1/audio/speech"


@dataclass(frozen=True)
class Reply:
    """An HTTP response."""

    status: int
    data: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def error(self) -> tuple[int, str]:
        """Status and code."""
        return self.status, self.json["error"]["code"]


@dataclass
class Server:
    """A running server. `processes`: front, engine and device by name."""

    process: subprocess.Popen[str]
    port: int
    processes: dict[str, int] = field(default_factory=dict)

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        """One request; a body that is no bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG_S)
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        try:
            connection.request(method, path, data, headers or {"Content-Type": "application/json"})
            response = connection.getresponse()
            return Reply(response.status, response.read(), dict(response.getheaders()))
        finally:
            connection.close()

    def get(self, path: str) -> Reply:
        return self.call("GET", path)

    def post(self, path: str, body: Any = None) -> Reply:
        return self.call("POST", path, body)

    def speak(self, words: int = 2, **more: Any) -> Reply:
        return self.post(SPEECH, {"input": "word " * words, **more})

    def metric(self, name: str, **labels: str) -> float:
        """A sample of /metrics."""
        for family in text_string_to_metric_families(self.get("/metrics").data.decode()):
            for one in family.samples:
                if one.name == f"engine_{name}" and one.labels == labels:
                    return one.value
        raise KeyError(name)

    def wait_for(self, name: str, at_least: float, **labels: str) -> None:
        """Until a metric is so high."""
        deadline_s = time.monotonic() + LONG_S
        while self.metric(name, **labels) < at_least:
            assert time.monotonic() < deadline_s, f"{name} {labels} stays at {self.metric(name, **labels)}"
            time.sleep(0.01)

    def wait_for_gauges(self) -> None:
        """Until those of the device are newer than this call: by the second sign of life from now on, what
        followed the first one is done.
        """
        for _ in range(2):
            self.wait_for("alive_seconds", self.metric("alive_seconds") + 1e-3)

    def wait_until_is(self, name: str, value: float, **labels: str) -> None:
        """Until a metric has this value: memory is given back a moment after an answer is complete."""
        deadline_s = time.monotonic() + LONG_S
        while (found := self.metric(name, **labels)) != value:
            assert time.monotonic() < deadline_s, f"{name} {labels} stays at {found}, not {value}"
            time.sleep(0.01)

    def settle(self) -> None:
        """Until nothing is on its way, on the device neither: only then can settings be changed."""
        deadline_s = time.monotonic() + LONG_S
        while (reply := self.post("/configure", {})).status != 200:
            assert time.monotonic() < deadline_s, reply.error
            time.sleep(0.01)

    @contextmanager
    def device_stopped(self) -> Iterator[None]:
        """The device process stands still, so that whatever is asked stays on its way."""
        os.kill(self.processes["device"], signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.processes["device"], signal.SIGCONT)

    def alive(self) -> set[str]:
        """Which of its processes are there."""
        return {name for name, pid in self.processes.items() if _is_alive(pid)}

    def wait_until_gone(self) -> None:
        deadline_s = time.monotonic() + LONG_S
        while self.alive():
            assert time.monotonic() < deadline_s, f"still there: {self.alive()}"
            time.sleep(0.02)


def start(*options: str, **environment: str) -> subprocess.Popen[str]:
    """The program, started."""
    return subprocess.Popen(
        [sys.executable, "-m", "sample_engine", "serve", "--port", "0", *options],
        cwd=REPOSITORY,
        env={**os.environ, **TINY, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def serving(*options: str, **environment: str) -> Iterator[Server]:
    """A server, once it serves; ended afterwards if it has not ended by then."""
    with start(*options, **environment) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            assert "serving" in line, process.stderr.read()
            server = Server(process, int(line.rsplit(":", 1)[1]))
            server.processes = server.get("/server_info").json["processes"]
            yield server
        finally:
            process.kill()


def _is_alive(pid: int) -> bool:
    """One that nobody reaps is gone."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
