"""A device or an engine that is stopped, not killed: clients get an error after a stated time."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from sample_engine.stillness import Stillness
from tests.engine_servers import LONG_S, Reply, serving

LIMIT_S = 1.0


class Clock:
    """Moves when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        monkeypatch.setattr("sample_engine.stillness.time.monotonic", lambda: self.now_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def looks(watched: Stillness, clock: Clock, seen: list[int], every_s: float) -> list[bool]:
    said = []
    for one in seen:
        clock.now_s += every_s
        said.append(watched.lasts(one))
    return said


def test_what_does_not_change_for_the_limit_stands_still(clock: Clock) -> None:
    assert looks(Stillness(2.0), clock, [1] * 6, 0.5) == [False] * 5 + [True]


def test_every_change_starts_anew(clock: Clock) -> None:
    assert not any(looks(Stillness(2.0), clock, [1, 1, 1, 2, 2, 2, 3, 3], 0.9))


def test_time_in_which_nobody_looked_proves_nothing(clock: Clock) -> None:
    """A machine that was suspended for an hour, or a watcher that was stopped."""
    watched = Stillness(2.0)
    assert looks(watched, clock, [1, 1, 1], 3600.0) == [False] * 3
    assert looks(watched, clock, [1], 3600.0) == [True]


def test_without_a_limit_nothing_is_ever_said(clock: Clock) -> None:
    assert not any(looks(Stillness(0.0), clock, [1] * 100, 1.0))


@pytest.mark.parametrize(
    ("stopped", "text"),
    [
        ("device", f"the device completed nothing for {LIMIT_S:g} s"),
        ("engine", f"the engine stood still for {2 * LIMIT_S:g} s"),
    ],
)
def test_clients_of_a_stopped_process_get_an_error_and_nothing_is_left(stopped: str, text: str) -> None:
    with serving("--set", f"watchdog_s={LIMIT_S:g}") as server:
        assert server.speak().status == 200
        os.kill(server.processes[stopped], signal.SIGSTOP)
        replies: list[Reply] = []
        clients = [threading.Thread(target=lambda: replies.append(server.speak())) for _ in range(4)]
        for one in clients:
            one.start()
        for one in clients:
            one.join(LONG_S)
        assert [one.error for one in replies] == [(500, "failed")] * 4
        assert all(text in one.json["error"]["message"] for one in replies)
        assert server.speak().error == (500, "failed")
        assert server.get("/health").status == 503
        server.process.terminate()
        assert server.process.wait(LONG_S) == 0
        server.wait_until_gone()


def test_a_device_that_works_or_has_nothing_to_do_is_left_alone() -> None:
    with serving("--set", "watchdog_s=0.3") as server:
        for _ in range(3):
            assert server.speak(7).status == 200
            threading.Event().wait(0.7)
        assert server.get("/health").status == 200
