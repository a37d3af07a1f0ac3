"""A server is profiled over HTTP under load, and `perfkit layer1` reads its trace: eager, and with graphs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfkit.cli.app import main
from tests.engine_servers import Server, serving

pytestmark = pytest.mark.alone

CLIENTS, REQUESTS_A_CLIENT, WORDS = 4, 3, 8
SWITCHES = {"eager": ("--preset", "baseline"), "graph": ("--preset", "optimized")}


def load(server: Server) -> None:
    """The same each time."""

    def client() -> None:
        for _ in range(REQUESTS_A_CLIENT):
            assert server.speak(WORDS).status == 200

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Of the same load on both servers."""
    made = {}
    for name, options in SWITCHES.items():
        folder = tmp_path_factory.mktemp(name)
        with serving(*options, SAMPLE_ENGINE_CUDA_GRAPH="on" if name == "graph" else "off") as server:
            load(server)
            body = {"trace_path_template": f"{folder}/{{stage}}", "event_dir": str(folder)}
            assert server.post("/start_profile", body).status == 200
            load(server)
            made[name] = Path(server.post("/stop_profile").json["trace_path"])
    yield made


def layer1(trace: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    main(["layer1", "--trace", str(trace), "--no-record", "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def busy(document: dict[str, Any]) -> float:
    (device,) = document["devices"]
    ratio: float = device["device_op_ratio"]
    return ratio


def test_the_eager_trace_is_host_bound_and_the_graph_trace_is_busier(
    traces: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    eager, graph = (layer1(traces[name], capsys) for name in SWITCHES)
    assert eager["verdict"]["word"] == "host-bound"
    assert busy(graph) > busy(eager)


def test_replays_in_the_graph_trace_show_their_kernels(
    traces: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert layer1(traces["graph"], capsys)["verdict"]["word"] != "void"
