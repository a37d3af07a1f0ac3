"""What to try in Layer 4: switches of known servers, proposed where the evidence points at what they switch.

Each switch is one entry: where it is, what must have been seen, what it changes. Nothing is proposed without
evidence, and a server that perfkit does not know gets what was found and no switch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layers.collectors.server_adapters.bundled import BundledAdapter
from layers.collectors.server_adapters.sglang import SglangAdapter
from layers.collectors.server_adapters.sglang_omni import SglangOmniAdapter
from layers.collectors.server_adapters.vllm import VllmAdapter
from perfkit.walk.model import Candidate, Outcome, Part

LEAST_SHARE = 0.05
"""Of the thread's ticks: a line below it explains no slow service. perfkit's choice."""
SLOW_LAUNCHES, WAITS_FOR_RESULTS = "S1", "S3"

Seen = Callable[[Mapping[Part, Outcome]], Iterable[str]]
"""The evidence for a switch in what the parts printed, in words; none where there is none."""


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch of one kind of server (the adapters' names). The rest is as in `Candidate`."""

    kind: str
    name: str
    why: str
    seen: Seen
    how: str
    set_: str = ""
    vs: str = ""
    common: tuple[str, ...] = ()
    ran: str = ""
    unblocks: str = ""


def candidates(kind: str, outcomes: Mapping[Part, Outcome]) -> tuple[Candidate, ...]:
    """The switches of this kind of server for which there is evidence, those with most of it first."""
    found = []
    for switch in SWITCHES:
        evidence = tuple(switch.seen(outcomes)) if switch.kind == kind else ()
        if evidence:
            arms = (switch.how, switch.set_, switch.vs, switch.common, switch.ran, switch.unblocks)
            found.append(Candidate(switch.name, switch.why, evidence, *arms))
    return tuple(sorted(found, key=lambda one: -len(one.evidence)))


def _lines(pattern: str) -> Seen:
    """A line of the judged thread, or of the one that serves the stage that holds the requests, or who called
    that line, is called so."""
    wanted = re.compile(pattern)

    def seen(outcomes: Mapping[Part, Outcome]) -> Iterator[str]:
        for thread, leaf in _leaves(outcomes):
            names = [f"{leaf['where']} ({leaf['function']})", *_callers(leaf)]
            named = next((name for name in names if wanted.search(name)), None)
            if named is not None and leaf["share"] >= LEAST_SHARE:
                share = f"{100 * leaf['share']:.1f} % [{100 * leaf['low']:.1f}, {100 * leaf['high']:.1f}]"
                yield f"Layer 2: {share} of {leaf['n']} ticks of {thread} at {names[0]}, by way of {named}"

    return seen


def _callers(leaf: Mapping[str, Any]) -> list[str]:
    """Who called the line in most of its ticks."""
    return [caller["name"] for caller in leaf.get("callers", []) if 2 * caller["n"] >= leaf.get("hits", 0)]


def _leaves(outcomes: Mapping[Part, Outcome]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Thread and line: of the thread that was judged, and of the one that serves the stage that holds the
    requests, where that is another; in the captures of all ticks."""
    document = _document(outcomes, Part.LAYER2)
    joined = document.get("joined") or {}
    threads = dict.fromkeys([joined.get("thread"), (document.get("thread") or {}).get("scope")])
    for thread in threads:
        for scope in document.get("scopes", []):
            if thread and scope.get("scope") == thread and scope.get("mode") == "idle":
                yield from ((thread, leaf) for leaf in scope["leaves"])


def _symptom(*codes: str) -> Seen:
    """Layer 1 has one of these symptoms."""

    def seen(outcomes: Mapping[Part, Outcome]) -> Iterator[str]:
        for device in _document(outcomes, Part.LAYER1).get("anatomy", []):
            for symptom in device.get("symptoms", []):
                if symptom["code"] in codes and symptom["present"]:
                    yield f"Layer 1: {symptom['code']} {symptom['title']}: {symptom['numbers']}"

    return seen


def _waiting(outcomes: Mapping[Part, Outcome]) -> Iterator[str]:
    """Requests wait to be let in: the ledger's word, or the sweep's."""
    ledger, sweep = outcomes.get(Part.STAGES), outcomes.get(Part.LAYER3)
    if ledger is not None and ledger.word == "scheduling-bound":
        yield f"Stage ledger: {ledger.because}"
    if sweep is not None and sweep.word == "plateau-limit":
        yield f"Layer 3: {sweep.because}"


def _either(*several: Seen) -> Seen:
    def seen(outcomes: Mapping[Part, Outcome]) -> Iterator[str]:
        for one in several:
            yield from one(outcomes)

    return seen


def _document(outcomes: Mapping[Part, Outcome], part: Part) -> Mapping[str, Any]:
    outcome = outcomes.get(part)
    return outcome.document if outcome is not None else {}


BUNDLED, SGLANG = BundledAdapter.kind, SglangAdapter.kind
OMNI, VLLM = SglangOmniAdapter.kind, VllmAdapter.kind
ALL_ON = ("--engine-preset=optimized",)
"""The switches depend on each other: one is left out of all, never added alone where it cannot engage."""
LAUNCHED = (
    "start it with --launch and the option as {{name}}: perfkit ab --launch '… {} {{n}}' --set n={} --vs n={}"
)

SWITCHES: Sequence[Switch] = (
    Switch(
        BUNDLED,
        "radix_key: hash frames on the device",
        "The key of each frame is hashed on the host: a copy out, a wait and a copy in inside every step. "
        "By itself it costs the wait; what it prevents costs more: a step that needs the host cannot be "
        "captured as a graph, and the next one cannot be launched ahead of it.",
        _lines(r"HostKeys|frame_keys\.py"),
        "both arms with all other switches on, so that it can unblock graph and lookahead",
        set_="radix_key=host",
        vs="radix_key=device",
        common=ALL_ON,
        ran='engine_radix_keys_total{where="device"}',
        unblocks='engine_graph_replays_total{stage="ar"}',
    ),
    Switch(
        BUNDLED,
        "cuda_graph: replay captured steps",
        "Each kernel of a step is launched by itself, and the device waits for the launches.",
        _symptom(SLOW_LAUNCHES),
        "both arms with all other switches on",
        set_="cuda_graph=off",
        vs="cuda_graph=on",
        common=ALL_ON,
        ran='engine_graph_replays_total{stage="ar"}',
    ),
    Switch(
        BUNDLED,
        "lookahead: launch a step before the last one is read",
        "The host waits for the results of a step before it launches the next.",
        _lines(r"Staging\.read|execute_resolve"),
        "both arms with all other switches on",
        set_="lookahead=off",
        vs="lookahead=on",
        common=ALL_ON,
        ran='engine_lookahead_steps_total{stage="ar"}',
    ),
    Switch(
        BUNDLED,
        "limits: let in and run more requests",
        "Requests wait to be let in, while the server has room.",
        _waiting,
        "admission limits of the engine, as one named bundle",
        set_="limits=stock",
        vs="limits=raised",
    ),
    Switch(
        SGLANG,
        "CUDA graphs up to a larger batch (--cuda-graph-max-bs), and none disabled",
        "Batches above the largest captured size, or --disable-cuda-graph, run kernel by kernel.",
        _symptom(SLOW_LAUNCHES),
        LAUNCHED.format("--cuda-graph-max-bs", 32, 160),
    ),
    Switch(
        SGLANG,
        "overlap schedule (not --disable-overlap-schedule)",
        "The scheduler waits for a step's tokens before it prepares the next one.",
        _either(_symptom(WAITS_FOR_RESULTS), _lines(r"event_loop_normal|process_batch_result")),
        "perfkit ab --launch 'CMD --disable-overlap-schedule' --launch-b 'CMD'",
    ),
    Switch(
        SGLANG,
        "--max-running-requests",
        "Requests wait to be let in, while the device has time left.",
        _waiting,
        LAUNCHED.format("--max-running-requests", 32, 64),
    ),
    Switch(
        OMNI,
        "admission limits (running requests, build workers, backlog) together",
        "Requests wait to be let in, while the device has time left.",
        _waiting,
        LAUNCHED.format("--max-running-requests", 32, 64),
    ),
    Switch(
        OMNI,
        "asynchronous decode",
        "The scheduler waits for a step's results before it launches the next.",
        _either(_symptom(WAITS_FOR_RESULTS), _lines(r"execute_resolve|process_batch_result|collect")),
        "perfkit ab --launch CMD_SYNC --launch-b CMD_ASYNC",
    ),
    Switch(
        VLLM,
        "CUDA graphs (not --enforce-eager)",
        "Each kernel of a step is launched by itself, and the device waits for the launches.",
        _symptom(SLOW_LAUNCHES),
        "perfkit ab --launch 'CMD --enforce-eager' --launch-b 'CMD'",
    ),
    Switch(
        VLLM,
        "--async-scheduling",
        "The scheduler waits for a step's tokens before it prepares the next one.",
        _either(_symptom(WAITS_FOR_RESULTS), _lines(r"update_from_output|_process_engine_step")),
        "perfkit ab --launch 'CMD' --launch-b 'CMD --async-scheduling'",
    ),
    Switch(
        VLLM,
        "--max-num-seqs",
        "Requests wait to be let in, while the device has time left.",
        _waiting,
        LAUNCHED.format("--max-num-seqs", 64, 256),
    ),
)
