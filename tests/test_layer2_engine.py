"""`perfkit layer2` on the bundled engine: the child that schedules is recorded, an idle server is void."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from layers.collectors.rights import read_rights
from layers.layer2_stacks.model import WaitKind
from tests.command_runs import document
from tests.engine_servers import Server, serving

pytestmark = [
    pytest.mark.skipif(not read_rights().reads_strangers, reason="no right to sample processes here"),
    pytest.mark.alone,
]

HOST_KEYS = "sample_engine/stages/frame_keys.py"


@pytest.fixture(autouse=True)
def few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost of a look is measured for a shorter time."""
    monkeypatch.setattr("layers.collectors.stacks.tick_cost.SECONDS", 2)


@pytest.fixture(scope="module")
def baseline() -> Iterator[Server]:
    with serving("--preset", "baseline") as server:
        yield server


def recorded(capsys: pytest.CaptureFixture[str], server: Server, *options: str) -> dict[str, Any]:
    url = f"http://127.0.0.1:{server.port}"
    return document(capsys, "layer2", "--server", url, "--repeats", "1", "--rate", "20", *options)


def test_under_load_the_engine_is_recorded_and_its_wait_for_the_host_key_is_seen(
    capsys: pytest.CaptureFixture[str], baseline: Server
) -> None:
    made = recorded(capsys, baseline, "--load", "4", "--seconds", "4")
    assert made["target"]["pid"] == baseline.processes["engine"]
    why_not = {other["pid"]: other["why_not"] for other in made["target"]["others"]}
    assert why_not.keys() == {baseline.processes["front"], baseline.processes["device"]}
    assert "HTTP server" in why_not[baseline.processes["front"]]

    assert [c["mode"] for c in made["captures"]] == ["idle", "active", "gil"]
    loads = [attempt["load"] for attempt in made["recording"]["attempts"]]
    assert all(load["completed"] > 0 and load["in_flight_mean"] > 0 for load in loads)
    assert not {"PK209", "PK210"} & {guard["code"] for guard in made["guards"]}

    assert made["thread"]["scope"].startswith("ar in ")
    leaves = next(s for s in made["scopes"] if s["chosen"] and s["mode"] == "idle")["leaves"]
    waits = [leaf for leaf in leaves[:3] if leaf.get("wait") == WaitKind.DEVICE]
    callers = {caller["name"] for leaf in waits for caller in leaf["callers"]}
    assert any(HOST_KEYS in name for name in callers), callers


def test_an_idle_server_is_void_by_its_own_counters(
    capsys: pytest.CaptureFixture[str], baseline: Server
) -> None:
    made = recorded(capsys, baseline, "--seconds", "2", "--no-gil")
    assert (made["verdict"]["word"], made["verdict"]["exit_code"]) == ("void", 4)
    assert {g["code"]: g["effect"] for g in made["guards"]}["PK209"] == "void"
    assert [c["void"] for c in made["captures"]] == [True, True]
    load = made["recording"]["attempts"][0]["load"]
    assert (load["completed"], load["in_flight_mean"]) == (0, 0.0)
    assert "counters" in load["source"]
