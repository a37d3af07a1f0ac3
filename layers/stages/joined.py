"""Joins a stage ledger and a result of Layer 2: the stage that holds requests, the thread that serves it, and
the lines that this thread is at. Pure, over the documents of both.

Both must be of one server: a process that logs the stage's events is one that was sampled. The thread is the
one that bears the stage's name, or is known to serve it; where none can be named, the reason is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from layers.evidence.finding import Finding, Strength
from layers.evidence.measurement import Artifact
from layers.evidence.wording import counted, first_few, pct
from layers.stages.thresholds import Word

Entry = Mapping[str, Any]
LINES = 3
"""Of the thread, in the finding."""
SAME_TIME_S = 3600.0
"""perfkit's choice: a load that has changed since is what another ledger would show."""
SERVED_BY = {"prefill": ("decode",), "preprocess": ("build",), "preprocessing": ("build",)}
"""Threads that serve stages of other names: the bundled engine decodes and prefills on one thread, and build
workers preprocess (docs/engine.md)."""
UNDER_LOAD = "perfkit layer2 --server URL --load N"
ORDER = list(Strength)
BOTH = (Word.SCHEDULING, Word.STAGE)


@dataclass(frozen=True, slots=True)
class Joined:
    """The stage that holds requests and the thread that serves it, or `why_not`. `doubt`: what the claim was
    inferred from."""

    stage: str = ""
    waits: bool = False
    ledger: str = ""
    thread: str = ""
    by: str = ""
    doubt: str = ""
    lines: tuple[Entry, ...] = ()
    waiting: float | None = None
    ticks: int = 0
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Sides:
    """The two documents; from when to when each was recorded (None: not told)."""

    ledger: Entry
    stacks: Entry
    ledger_time: tuple[datetime, datetime] | None = None
    stacks_time: tuple[datetime, datetime] | None = None
    artifacts: tuple[Artifact, ...] = field(default=())


def join(sides: Sides) -> Joined | None:
    """None where one of the two concluded nothing that could be joined."""
    run = _chosen(sides.ledger)
    if run is None or run["word"] not in BOTH or not sides.stacks.get("thread"):
        return None
    waits = run["word"] == Word.SCHEDULING
    held = max(run["waiting"], key=lambda q: q["share"] + q["hop_share"] if waits else q["work_share"])
    joined = Joined(held["stage"], waits, _ledger_text(run, held, waits=waits))
    if (apart := _apart_s(sides)) is not None and apart > SAME_TIME_S:
        return _not(joined, f"ledger and stacks were recorded {apart / 3600:.1f} hours apart")
    if not _saw_requests(sides.stacks):
        return _not(joined, f"nobody saw a request while the stacks were recorded: {UNDER_LOAD}")
    return _with_thread(joined, run, sides)


def _saw_requests(stacks: Entry) -> bool:
    """Whether somebody counted a request during a recording of perfkit's own; of files that were found
    nothing is known, and their guards say so."""
    recording = stacks.get("recording")
    if recording is None:
        return True
    loads = [attempt["load"] for attempt in recording["attempts"] if attempt["load"]]
    return any((one["completed"] or 0) > 0 or (one["in_flight_mean"] or 0.0) > 0.0 for one in loads)


def _chosen(ledger: Entry) -> Entry | None:
    return next((one for one in ledger["runs"] if one["run"] == ledger["run"]), None)


def _ledger_text(run: Entry, held: Entry, *, waits: bool) -> str:
    n = run["requests"]["complete"]
    of = f"{counted(n, 'request')}, {_load(run):.3g} in flight" if n else f"{_load(run):.3g} in flight"
    if waits:
        share = pct(held["share"] + held["hop_share"])
        return f"requests wait for {held['stage']} for {share} of their time ({of})"
    return f"{held['stage']} works for {pct(held['work_share'])} of requests' time ({of})"


def _load(run: Entry) -> float:
    return float(run["concurrency"] or run["in_flight"] or 0.0)


def _not(joined: Joined, why: str) -> Joined:
    return Joined(joined.stage, joined.waits, joined.ledger, why_not=why)


def _with_thread(joined: Joined, run: Entry, sides: Sides) -> Joined:
    stacks = sides.stacks
    mode = stacks["thread"]["mode"]
    scopes = [scope for scope in stacks["scopes"] if scope["mode"] == mode]
    logged = set(run.get("pids", {}).get(joined.stage, ()))
    if not logged:
        return _not(joined, f"the events of {joined.stage} name no process")
    sampled = {pid for scope in scopes for pid in scope["pids"]} | _target_pids(stacks)
    if not sampled:
        return _not(joined, "the captures name no process (py-spy record --subprocesses, or perfkit's own)")
    if not logged & sampled:
        told = f"process {_ids(logged)} logs {joined.stage}, process {_ids(sampled)} was sampled"
        return _not(joined, f"{told}: another server, or another process of it")
    own = [scope for scope in scopes if not scope["pids"] or logged & set(scope["pids"])]
    found, by, doubt = _thread_of(joined.stage, own, stacks["thread"])
    if found is None:
        return _not(joined, by)
    unknown = "" if _apart_s(sides) is not None else "when the captures were made is not told"
    return Joined(
        stage=joined.stage,
        waits=joined.waits,
        ledger=joined.ledger,
        thread=found["scope"],
        by=by,
        doubt="; ".join(filter(None, (doubt, unknown))),
        lines=tuple(found["leaves"][:LINES]),
        waiting=found["waiting"]["share"] if mode == "idle" else None,
        ticks=found["ticks"],
    )


def _target_pids(stacks: Entry) -> set[int]:
    """Of a capture that perfkit made."""
    target = stacks.get("target")
    return {target["pid"], target["namespace_pid"]} if target else set()


def _ids(pids: set[int]) -> str:
    return ", ".join(map(str, sorted(pids)))


def _thread_of(stage: str, scopes: Sequence[Entry], judged: Entry) -> tuple[Entry | None, str, str]:
    """The thread; how it is known, or why none is; and the doubt that this leaves."""
    for names, by, doubt in (
        ((stage,), f"it bears the name of {stage}", ""),
        (SERVED_BY.get(stage, ()), f"this thread is known to serve {stage}", ""),
    ):
        named = [scope for scope in scopes if any(_bears(scope, name) for name in names)]
        if len(named) == 1:
            return named[0], by, doubt
        if named:
            several = first_few(scope["scope"] for scope in named)
            return None, f"several threads could serve {stage}: {several}", ""
    loop = next((scope for scope in scopes if scope["scope"] == judged["scope"]), None)
    if loop is not None and judged.get("loop"):  # one thread schedules and runs all that its process serves
        doubt = f"the thread is the loop of the process that logs {stage}, and not named after it"
        return loop, f"it is the loop of the process that logs {stage}", doubt
    there = first_few(scope["scope"] for scope in scopes) or "none"
    return None, f"no thread bears the name of {stage} or is an engine's known loop (there is {there})", ""


def _bears(scope: Entry, name: str) -> bool:
    """Whether a word of the thread's name or of its entry is the stage's name."""
    words = re.split(r"[^a-z0-9]+", f"{scope['scope']} {scope['entry']}".lower())
    wanted = re.split(r"[^a-z0-9]+", name.lower())
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words)))


def _apart_s(sides: Sides) -> float | None:
    """Between the two recordings; 0 where they overlap."""
    if sides.ledger_time is None or sides.stacks_time is None:
        return None
    (begin, end), (other_begin, other_end) = sides.ledger_time, sides.stacks_time
    return max(0.0, (other_begin - end).total_seconds(), (begin - other_end).total_seconds())


def statement_of(joined: Joined) -> str:
    """What is joined in one sentence, or why nothing is."""
    if joined.why_not:
        return f"{joined.ledger}; no thread can be named, because {joined.why_not}"
    lines = "; ".join(map(_line, joined.lines)) or "it was seen at no line"
    waiting = f", {pct(joined.waiting)} of it waiting" if joined.waiting is not None else ""
    seen = f"{counted(joined.ticks, 'tick')}{waiting}"
    return f"{joined.ledger}; its thread {joined.thread} ({joined.by}; {seen}) is at {lines}"


def _line(leaf: Entry) -> str:
    waits = f", waits for {leaf['wait']}" if leaf.get("wait") else ""
    bounds = f"[{100 * leaf['low']:.1f}, {100 * leaf['high']:.1f}]"
    return f"{leaf['where']} {leaf['function']} {pct(leaf['share'])} {bounds}{waits}"


def finding_of(joined: Joined, sides: Sides) -> Finding | None:
    """One finding, as strong as the weaker of the two; None where no thread can be named, or one of them has
    no strength."""
    if joined.why_not:
        return None
    judged = [_strength(document) for document in (sides.ledger, sides.stacks)]
    if None in judged:
        return None
    (ledger, of_ledger), (stacks, of_stacks) = (one for one in judged if one is not None)
    weaker = max(ledger, stacks, key=ORDER.index)
    rule = f"the weaker of both: ledger {ledger} ({of_ledger}), stacks {stacks} ({of_stacks})"
    seen = f"{'; '.join(map(_line, joined.lines))} (n = {counted(joined.ticks, 'tick')})"
    return Finding(
        statement=statement_of(joined),
        strength=Strength.WEAK if joined.doubt else weaker,
        rule=f"indirect or confounded: {joined.doubt}" if joined.doubt else rule,
        recommendation=_advice(joined),
        evidence=f"{joined.ledger}; {seen}",
        artifacts=sides.artifacts,
    )


def _strength(document: Entry) -> tuple[Strength, str] | None:
    """Of the finding that is its verdict."""
    verdict = next((one for one in document["findings"] if one["kind"] == "verdict"), None)
    return (Strength(verdict["strength"]), verdict["rule"]) if verdict is not None else None


def _advice(joined: Joined) -> str:
    first = joined.lines[0] if joined.lines else None
    if first is None:
        return f"sample {joined.thread} for longer"
    where = f"{first['where']} {first['function']}"
    if joined.waits and first.get("wait"):
        return (
            f"the thread itself waits at {where} while requests wait for it: what holds them is what it "
            "waits for, or a limit in front of it; an A/B of that"
        )
    if joined.waits:
        return f"what {where} costs each turn: requests wait until this thread takes them; an A/B without it"
    return f"{where} first: it has most of the thread that {joined.stage} works on"


def section_of(joined: Joined | None) -> dict[str, Any] | None:
    """JSON-ready; None where there was nothing to join."""
    if joined is None:
        return None
    return {
        "stage": joined.stage,
        "waits": joined.waits,
        "thread": joined.thread or None,
        "by": joined.by or None,
        "lines": [dict(line) for line in joined.lines],
        "why_not": joined.why_not or None,
        "statement": statement_of(joined),
    }
