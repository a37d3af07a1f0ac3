"""Audio through the whole asr pipeline: texts, caches, threads, limits, events."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine_builders import paused
from tests.engine_listening import LENGTHS_S, NAMES, audio, hear, listening, texts
from tests.engine_service import Service

POSITION_S = 0.08
LETTERS_A_SYLLABLE = 2


@pytest.fixture(scope="module")
def plain() -> Iterator[Service]:
    with listening() as running:
        yield running


@pytest.fixture(scope="module")
def alone(plain: Service) -> list[str]:
    """What each audio becomes when it is the only one."""
    return [plain.data(hear(plain, name, audio(index))).decode() for index, name in enumerate(NAMES)]


def test_a_text_is_as_long_as_its_audio_asks_for(plain: Service, alone: list[str]) -> None:
    for index, (name, text) in enumerate(zip(NAMES, alone, strict=True)):
        positions = -(-round(LENGTHS_S[index % len(LENGTHS_S)] * 100) // 8)
        assert plain.ending(name).steps == 1 + -(-positions // 2)
        assert len(text.replace(" ", "")) == LETTERS_A_SYLLABLE * (plain.ending(name).steps - 1)


def test_different_audios_become_different_texts(alone: list[str]) -> None:
    assert len(set(alone)) > len(NAMES) * 2 // 3


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"encoder_thread": True},
        {"encoder_thread": True, "encoder_cache": True, "encoder_max_batch": 1},
        {"encoder_thread": False, "encoder_cache": False, "encoder_max_batch": 7},
        {"lookahead": True},
        {"prefill_chunks": 1},
        {"batching": "static", "static_wait_ms": 5.0},
        {"batching": "continuous", "prefill_coalesce": 4, "prefill_coalesce_wait_ms": 5.0},
        {"policy": "per-stage-length-aware", "encoder_thread": True},
        {"cuda_graph": True},
        {"cuda_graph": True, "lookahead": False},
    ],
    ids=lambda changes: " ".join(f"{name}={value}" for name, value in changes.items()) or "as it is",
)
def test_no_neighbour_and_no_switch_changes_a_text(
    plain: Service, alone: list[str], changes: dict[str, object]
) -> None:
    plain.settle()
    plain.engine.configure(changes)
    assert texts(plain) == alone
    plain.settle()


@pytest.mark.parametrize(
    "options",
    [
        {"max_running_requests": 2, "encoder_queue": 1, "build_workers": 1},
        {"handoff_bytes": 0, "encoder_thread": True},
        {"prefill_chunk": 4},
        {"prefill_chunk": 40},
    ],
    ids=str,
)
def test_few_slots_host_memory_and_other_chunks_change_no_text(
    alone: list[str], options: dict[str, Any]
) -> None:
    with listening(**options) as running:
        assert texts(running) == alone
        running.settle()


def test_with_graphs_every_step_is_a_replay() -> None:
    with listening(cuda_graph=True, lookahead=True) as running:
        texts(running)
        assert running.count("graph_replays_total", "decode") == running.count("steps_total", "decode") > 0
        assert running.count("lookahead_steps_total", "decode") > 0


def test_equal_audio_is_encoded_once_and_the_counters_say_so() -> None:
    with listening(encoder_cache=True) as running:
        texts(running)
        assert running.count("encoder_cache_total", "miss") == len(NAMES)
        texts(running)
        assert running.count("encoder_cache_total", "hit") == len(NAMES)
        assert running.count("encoder_cache_entries") == len(NAMES)
        running.settle()
        running.engine.configure({"encoder_cache": False})
        texts(running)
        assert running.count("encoder_cache_total", "off") == len(NAMES)
        running.settle()
        running.engine.configure({"encoder_cache": True})
        texts(running)
        assert running.count("encoder_cache_total", "miss") == 2 * len(NAMES)


@pytest.mark.parametrize(("switch", "thread"), [(True, "own"), (False, "scheduler")])
def test_the_encoder_runs_in_its_own_thread_or_the_schedulers(switch: bool, thread: str) -> None:
    with listening(encoder_thread=switch) as running:
        texts(running)
        batches = {one: running.count("encoder_batches_total", one) for one in ("own", "scheduler")}
        assert batches.pop(thread) > 0
        assert set(batches.values()) == {0}


@pytest.mark.parametrize(
    ("seconds", "what"), [(0.0, "no samples"), (60.0, "60.0 s of audio; 3.2 s always fit")]
)
def test_audio_that_cannot_be_served_is_rejected(plain: Service, seconds: float, what: str) -> None:
    ending = plain.ending(hear(plain, "odd", audio(1, seconds)))
    assert (ending.end, ending.reason) == ("rejected", what if seconds else "the audio has no samples")


def test_the_other_pipelines_requests_are_rejected(plain: Service) -> None:
    ending = plain.ending(plain.ask("odd", kind="speech"))
    assert (ending.end, ending.reason) == ("rejected", "the asr pipeline has no speech")


def test_cancelled_requests_leave_the_others_alone_and_memory_comes_back(
    plain: Service, alone: list[str]
) -> None:
    plain.settle()
    plain.engine.configure({"encoder_cache": False, "cuda_graph": False, "encoder_thread": True})
    texts(plain)
    plain.settle()
    before = plain.engine.device.memory().used_bytes
    gone = [f"{name}-gone" for name in NAMES]
    with paused(plain.engine.device):  # type: ignore[arg-type]
        for index, name in enumerate(gone):
            hear(plain, name, audio(index + 100))
        for name in gone[::2]:
            plain.engine.cancel(name)
    for name in gone[1::2]:
        plain.engine.cancel(name)
    assert texts(plain) == alone
    assert {plain.ending(name).end for name in gone} <= {"cancelled", "done"}
    assert {plain.ending(name).end for name in gone[::2]} == {"cancelled"}
    plain.settle()
    texts(plain)
    plain.settle()
    assert plain.engine.device.memory().used_bytes == before


def test_every_stage_tells_what_it_does_in_order(plain: Service, tmp_path: Path) -> None:
    plain.settle()
    plain.engine.configure({"encoder_thread": True})
    plain.engine.events.start("run", tmp_path)
    plain.data(hear(plain, "told", audio(2)))
    plain.settle()
    path = plain.engine.events.stop()
    told: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text().splitlines():
        row = json.loads(line)
        told[row["stage"]].append(row["event_name"])
    middle = {
        "preprocess": ["preprocess_start", "preprocess_end", "stage_hop_sent"],
        "encoder": ["encoder_start", "encoder_end", "stage_hop_sent"],
        "decode": ["scheduler_first_emit"],
    }
    build = ["scheduler_request_build_start", "scheduler_request_build_end"]
    prefill = ["scheduler_queue_enter", "scheduler_prefill_start", "scheduler_prefill_end", "stage_hop_sent"]
    ends = "stage_input_received", "stage_complete"
    expected = {stage: [ends[0], *events, ends[1]] for stage, events in middle.items()}
    assert told == {**expected, "prefill": [*build, ends[0], *prefill, ends[1]]}
