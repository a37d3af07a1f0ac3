"""Requests through the whole tts pipeline: answers, limits, cancellation, reconfiguration, a lost device."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sample_engine.config.values import SettingsError
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.engine import Refused
from sample_engine.models.vocoder_sizes import SAMPLES_A_FRAME
from sample_engine.stages.preprocess import FRAMES_A_WORD
from tests.engine_builders import paused
from tests.engine_service import Service, service

NAMES = [f"r{index}" for index in range(12)]
WORDS = [1 + index * 5 % 7 for index in range(12)]
BYTES_A_SAMPLE = 2


def ask_all(running: Service, **more: Any) -> list[bytes]:
    """The answers to all of NAMES, asked at once."""
    for name, words in zip(NAMES, WORDS, strict=True):
        running.ask(name, words, **more)
    return running.answers(NAMES)


@pytest.fixture(scope="module")
def plain() -> Iterator[Service]:
    with service() as running:
        yield running


@pytest.fixture(scope="module")
def alone(plain: Service) -> list[bytes]:
    """What each request gets when it is the only one."""
    return [plain.data(plain.ask(name, words)) for name, words in zip(NAMES, WORDS, strict=True)]


def test_speech_has_as_many_samples_as_its_text_asks_for(plain: Service, alone: list[bytes]) -> None:
    samples = [len(one) // BYTES_A_SAMPLE for one in alone]
    assert samples == [words * FRAMES_A_WORD * SAMPLES_A_FRAME for words in WORDS]
    assert plain.ending(NAMES[0]).steps == WORDS[0] * FRAMES_A_WORD
    assert len(set(alone)) == len(NAMES)


def test_a_completion_is_the_text_channel(plain: Service) -> None:
    texts = [plain.data(plain.ask(name, 2, kind="completion", max_steps=7)) for name in ("t1", "t2")]
    assert all(len(one.decode()) == 2 * 6 for one in texts)
    assert texts[0] != texts[1]


def test_together_they_get_what_each_gets_alone(plain: Service, alone: list[bytes]) -> None:
    assert ask_all(plain, stream=True) == alone


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": "unified"},
        {"policy": "per-stage-length-aware"},
        {"batching": "static"},
        {"prefill_coalesce": 4, "prefill_coalesce_wait_ms": 5.0, "recompose_interval_ms": 2.0},
        {"lookahead": True},
        {"vocoder_batch": "exact-length", "lookahead": True, "policy": "unified"},
        {"radix_key": "host"},
        {"cuda_graph": True, "lookahead": True, "radix_key": "device"},
    ],
    ids=lambda changes: " ".join(f"{name}={value}" for name, value in changes.items()),
)
def test_no_way_of_scheduling_changes_an_answer(
    plain: Service, alone: list[bytes], changes: dict[str, object]
) -> None:
    plain.settle()
    plain.engine.configure(changes)
    assert ask_all(plain) == alone
    plain.settle()


def test_more_requests_than_slots_wait_for_one(alone: list[bytes]) -> None:
    with service(max_running_requests=2, vocoder_queue=2) as running:
        assert ask_all(running) == alone
        running.settle()


def test_requests_beyond_the_backlog_are_shed_and_the_others_served() -> None:
    with service(build_workers=1, build_backlog=2) as running:
        names = [running.ask(f"r{index}") for index in range(60)]
        ends = [running.ending(name) for name in names]
        shed = [one for one in ends if one.end == "shed"]
        assert len(shed) == running.count("shed_total", "build_backlog") > 0
        assert {one.end for one in ends} == {"done", "shed"}
        assert all("build_backlog" in one.reason for one in shed)


def test_a_static_batch_lets_nobody_in_before_its_longest_member_has_ended() -> None:
    with service(batching="static", static_wait_ms=0.0) as running:
        running.ask("long", 7, stream=True)
        running.first_piece("long")
        running.ask("short", 1)
        running.data("short")
        places = [running.heard.index(one) for one in (running.said["long"][-1], running.said["short"][0])]
        assert places == sorted(places)


def test_a_cancelled_request_ends_at_once_and_gives_its_slots_back(plain: Service) -> None:
    with paused(device_of(plain)):
        plain.ask("gone", 7)
        plain.engine.cancel("gone")
        assert plain.ending("gone").end == "cancelled"
    plain.engine.cancel("gone")
    plain.settle()
    assert len(plain.said["gone"]) == 1


def test_requests_cancelled_on_their_way_leave_the_others_alone(plain: Service, alone: list[bytes]) -> None:
    for name, words in zip(NAMES, WORDS, strict=True):
        plain.ask(name, words, stream=True)
        plain.ask(f"{name}-gone", words, stream=True)
    for name in NAMES[::2]:
        plain.first_piece(f"{name}-gone")
    for name in NAMES:
        plain.engine.cancel(f"{name}-gone")
    assert plain.answers(NAMES) == alone
    assert {plain.ending(f"{name}-gone").end for name in NAMES} <= {"cancelled", "done"}
    plain.settle()


def test_memory_is_back_at_its_idle_level_after_load(plain: Service) -> None:
    plain.settle()
    before = plain.engine.device.memory().used_bytes
    ask_all(plain)
    plain.settle()
    assert plain.engine.device.memory().used_bytes == before


@pytest.mark.parametrize(("words", "what"), [(0, "no words"), (60, "words always fit")])
def test_a_text_that_cannot_be_served_is_rejected(plain: Service, words: int, what: str) -> None:
    ending = plain.ending(plain.ask("odd", words))
    assert (ending.end, what in ending.reason) == ("rejected", True)


def test_the_other_pipelines_requests_are_rejected(plain: Service) -> None:
    ending = plain.ending(plain.ask("odd", kind="transcription"))
    assert (ending.end, ending.reason) == ("rejected", "the tts pipeline has no transcription")


def test_settings_change_only_while_nothing_runs(plain: Service) -> None:
    plain.settle()
    with paused(device_of(plain)):
        plain.ask("running")
        with pytest.raises(Refused, match="1 requests are on their way"):
            plain.engine.configure({"lookahead": True})
        plain.engine.cancel("running")


def test_a_setting_that_needs_a_restart_is_refused_with_the_reason(plain: Service) -> None:
    plain.settle()
    with pytest.raises(Refused, match="max_running_requests: the slots are allocated at start"):
        plain.engine.configure({"max_running_requests": 4})
    with pytest.raises(SettingsError, match="configure: lookahead cannot be 'maybe'"):
        plain.engine.configure({"lookahead": "maybe"})


def test_a_lost_device_fails_what_is_on_its_way_and_all_that_comes_later() -> None:
    with service() as running:
        os.kill(device_of(running).process_id, signal.SIGSTOP)
        names = [running.ask(name, 7) for name in NAMES[:4]]
        os.kill(device_of(running).process_id, signal.SIGKILL)
        ends = [running.ending(name) for name in names]
        assert {one.end for one in ends} == {"failed"}
        assert all("device process ended" in one.reason for one in ends)
        assert running.ending(running.ask("later")).end == "failed"
        assert running.count("up") == 0
        with pytest.raises(Refused, match="device process ended"):
            running.engine.configure({"lookahead": True})


def test_an_idle_engine_notices_that_its_device_is_lost() -> None:
    with service() as running:
        os.kill(device_of(running).process_id, signal.SIGKILL)
        while running.count("up"):
            pass
        assert "device process ended" in running.engine.failure


def device_of(running: Service) -> EmulatedDevice:
    assert isinstance(running.engine.device, EmulatedDevice)
    return running.engine.device


def test_a_trace_shows_as_much_of_replays_as_the_settings_say(tmp_path: Path) -> None:
    with service(graph_trace="none") as running:
        running.engine.start_profile()
        running.data(running.ask("a"))
        running.engine.stop_profile(tmp_path / "trace.json")
        assert json.loads((tmp_path / "trace.json").read_text())["graphTrace"] == "none"
        with pytest.raises(Refused, match="restart"):
            running.engine.configure({"graph_trace": "node"})
