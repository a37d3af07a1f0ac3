"""A core for the device alone: claimed once, kept off by the rest of the engine, given up with the device."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from sample_engine.emulated.host import cores
from sample_engine.emulated.host.cores import claim_core, go_first
from sample_engine.errors import DeviceError
from tests.engine_builders import small_device
from tests.engine_servers import serving

USABLE = os.sched_getaffinity(0)
several = pytest.mark.skipif(len(USABLE) < 2, reason="one core: nobody can have one alone")


@pytest.fixture(autouse=True)
def names_of_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines of others on this machine do not count."""
    monkeypatch.setattr(cores, "CLAIM", f"\0sample_engine.test.{os.getpid()}.")


@pytest.fixture
def affinity() -> Iterator[None]:
    """What the test binds is free afterwards."""
    yield
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), USABLE)


def test_every_device_has_its_core_until_there_are_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 5, 7})
    claims = [claim_core() for _ in range(4)]
    assert [one and one.core for one in claims] == [7, 5, 7, 7]  # never 2: that is for hosts
    assert claims[1]
    claims[1].give_up()
    claims.append(claim_core())
    assert claims[-1] and claims[-1].core == 5
    for one in claims:
        assert one
        one.give_up()


def test_where_there_is_one_core_no_device_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3})
    assert claim_core() is None
    with pytest.raises(DeviceError, match="only one core"):
        go_first(os.getpid(), None)


@several
def test_device_and_host_run_on_different_cores_and_the_claim_ends_with_the_device(affinity: None) -> None:
    with small_device() as device:
        assert device.claimed_core is None
        device.claim_core()
        assert os.sched_getaffinity(device.process_id) == {device.claimed_core}
        for thread in os.listdir("/proc/self/task"):
            assert os.sched_getaffinity(int(thread)) == USABLE - {device.claimed_core}
    os.sched_setaffinity(0, USABLE)
    claim = claim_core()
    assert claim and claim.core == device.claimed_core
    claim.give_up()


@several
def test_who_may_not_go_first_is_told_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    claim = claim_core()
    with pytest.raises(DeviceError, match="ulimit"):
        go_first(os.getpid(), claim)
    assert claim
    claim.give_up()


@pytest.mark.parametrize("where", ["own", "any"])
def test_a_server_says_which_core_its_device_has(where: str) -> None:
    with serving("--set", f"device_core={where}") as server:
        core = server.get("/server_info").json["device_core"]
        bound = {name: os.sched_getaffinity(pid) for name, pid in server.processes.items()}
    own = where == "own" and len(USABLE) > 1
    others = USABLE - {core}
    assert bound == ({"device": {core}} if own else {"device": USABLE}) | {"engine": others, "front": others}
    assert (core is None) == (not own)
