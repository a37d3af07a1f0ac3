"""The walk decides by what the parts printed: where to go on, what to leave out, what to try, and why."""

from __future__ import annotations

from typing import Any

import pytest

from layers.evidence.verdict import Exit
from perfkit.walk.candidates import SWITCHES, candidates
from perfkit.walk.decide import RULES, decide
from perfkit.walk.model import Outcome, Part, Way

HOST_KEY = "HostKeys.write (/x/sample_engine/stages/frame_keys.py:61)"


def outcome(part: Part, word: str, code: int = 0, directional: bool = False, **document: Any) -> Outcome:
    verdict = {"word": word, "directional": directional, "because": "it is so", "exit_code": code}
    return Outcome(part, code, {"verdict": verdict, **document})


def stacks(share: float = 0.8, **scope: Any) -> Outcome:
    """A thread that was judged, and another one; the key of frames is hashed on the host."""
    leaf = {
        "where": "/x/waiting.py:78",
        "function": "_nap",
        "share": share,
        "low": share / 2,
        "high": 1.0,
        "n": 300,
        "hits": 240,
        "callers": [{"name": HOST_KEY, "n": 200}, {"name": "Staging.read (/x/staging.py:58)", "n": 40}],
    }
    chosen = {"scope": "ar in _run", "mode": "idle", "chosen": True, "leaves": [leaf]} | scope
    other = {"scope": "vocoder in _run", "mode": "idle", "chosen": False, "leaves": []}
    thread = {"scope": "ar in _run"}
    return outcome(Part.LAYER2, "blocked", scopes=[other, chosen], thread=thread, joined=None)


def test_every_part_has_a_rule() -> None:
    assert set(RULES) == set(Part)


@pytest.mark.parametrize(
    ("word", "directional", "way"),
    [
        ("device-bound", False, Way.KERNELS),
        ("device-bound", True, Way.ON),
        ("host-bound", False, Way.ON),
        ("undecided", False, Way.ON),
        ("void", False, Way.ON),
    ],
)
def test_only_a_firm_device_bound_ends_the_search_for_host_time(
    word: str, directional: bool, way: Way
) -> None:
    assert decide(outcome(Part.LAYER1, word, directional=directional)).way is way


@pytest.mark.parametrize(
    ("word", "way"), [("improvement", Way.ON), ("equivalent", Way.END), ("regression", Way.END)]
)
def test_answers_are_compared_only_where_there_is_a_gain_to_keep(word: str, way: Way) -> None:
    assert decide(outcome(Part.LAYER4, word)).way is way


@pytest.mark.parametrize("part", list(Part))
def test_a_part_that_could_not_be_run_is_said_and_weakens_what_follows(part: Part) -> None:
    for failed in (Outcome(part, Exit.INTERNAL, {}), outcome(part, "error", Exit.USAGE)):
        decision = decide(failed)
        assert decision.way is Way.ON and "could not be run" in decision.because
    assert Outcome(part, Exit.INTERNAL, {}).word == "failed"


def test_a_wait_below_the_hosts_key_proposes_the_key_on_the_device() -> None:
    (proposed, *rest) = candidates("sample-engine", {Part.LAYER2: stacks()})
    assert (proposed.set_, proposed.vs) == ("radix_key=host", "radix_key=device")
    assert proposed.unblocks == 'engine_graph_replays_total{stage="ar"}'
    (evidence,) = proposed.evidence
    assert "80.0 % [40.0, 100.0] of 300 ticks of ar in _run" in evidence and HOST_KEY in evidence
    assert rest == []


def test_a_line_is_evidence_only_where_it_has_a_share_and_its_caller_most_of_it() -> None:
    assert candidates("sample-engine", {Part.LAYER2: stacks(share=0.04)}) == ()
    assert candidates("sample-engine", {Part.LAYER2: stacks(chosen=False, scope="other")}) == ()


def test_the_thread_of_the_stage_that_holds_the_requests_is_looked_at_too() -> None:
    found = stacks()
    document = {**found.document, "thread": {"scope": "vocoder in _run"}, "joined": {"thread": "ar in _run"}}
    (proposed,) = candidates("sample-engine", {Part.LAYER2: Outcome(Part.LAYER2, 0, document)})
    assert proposed.vs == "radix_key=device"


def test_requests_that_wait_to_be_let_in_propose_the_limits_of_each_known_server() -> None:
    waiting = {
        Part.STAGES: outcome(Part.STAGES, "scheduling-bound"),
        Part.LAYER3: outcome(Part.LAYER3, "plateau-limit"),
    }
    assert [one.set_ for one in candidates("sample-engine", waiting)] == ["limits=stock"]
    for kind in ("sglang", "sglang-omni", "vllm"):
        (limit,) = candidates(kind, waiting)
        assert len(limit.evidence) == 2 and not limit.runs and "perfkit ab --launch" in limit.how
    assert candidates("openai-like", waiting) == ()


def test_slow_launches_propose_graphs() -> None:
    symptom = {"code": "S1", "title": "Gaps between small kernels", "present": True, "numbers": "idle 40 %"}
    trace = outcome(Part.LAYER1, "host-bound", anatomy=[{"symptoms": [symptom]}])
    for kind, name in (("sample-engine", "cuda_graph"), ("sglang", "CUDA graphs"), ("vllm", "CUDA graphs")):
        (proposed,) = candidates(kind, {Part.LAYER1: trace})
        assert name in proposed.name and "S1" in proposed.evidence[0]
    absent = outcome(Part.LAYER1, "host-bound", anatomy=[{"symptoms": [symptom | {"present": False}]}])
    assert candidates("vllm", {Part.LAYER1: absent}) == ()


def test_nothing_is_proposed_without_evidence() -> None:
    assert all(candidates(switch.kind, {}) == () for switch in SWITCHES)
