"""`perfkit layer1 --live --server` on the bundled engine as it is served: found by its address alone."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from perfkit.cli.app import main
from tests.conftest import REPOSITORY
from tests.process_trees import wait_until_gone

pytestmark = pytest.mark.alone

for needed in ("torch", "fastapi", "uvicorn"):
    pytest.importorskip(needed)

SERVE = [sys.executable, "-m", "sample_engine", "serve", "--port", "0", "--set", "size=tiny"]
READY = re.compile(r"serving \S+ on (http://\S+)")
BODY = json.dumps({"prompt": "a few words to speak", "max_tokens": 16}).encode()


@pytest.fixture(scope="module", params=["fork", "spawn"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a running engine, and the engine's end."""
    command = [*SERVE, "--start-method", request.param]
    server = subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert server.stdout is not None
    said = iter(server.stdout.readline, "")
    found = next((match for line in said if (match := READY.search(line))), None)
    try:
        assert found is not None, "the engine did not start"
        yield found[1]
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate()
        wait_until_gone([server.pid])


@pytest.fixture
def load(engine: str) -> Iterator[str]:
    """The engine's address, while it has work."""
    over = threading.Event()
    request = urllib.request.Request(f"{engine}/v1/completions", BODY, {"Content-Type": "application/json"})

    def ask() -> None:
        while not over.is_set():
            with urllib.request.urlopen(request) as answer:
                answer.read()

    client = threading.Thread(target=ask)
    client.start()
    yield engine
    over.set()
    client.join()


def test_its_device_is_sampled_by_the_counters_that_it_keeps(
    load: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["layer1", "--live", "3", "--server", load, "--no-record", "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    (device,) = document["devices"]
    assert (device["method"], device["device_name"]) == ("emulated", "emulated (CPU)")
    assert 0 < device["device_op_ratio"] <= 1
    assert next(m for m in document["measurements"] if m["name"] == "service_cpu")["value"] > 0


def test_its_whole_tree_is_found(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--server", engine, "--json"])
    checks = json.loads(capsys.readouterr().out)["checks"]
    found = next(check["seen"] for check in checks if check["name"] == "the service's processes")
    assert found.startswith("3 processes") or found.startswith("4 processes"), "front, engine, device"
    assert found.endswith("on an emulated device (CPU)")
