"""Layer 2's names of the JSON contract: `captures` and `scopes`, and what stands beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from layers.collectors.stacks.recording import Target
from layers.evidence.guard import Effect
from layers.evidence.measurement import Artifact
from layers.evidence.wording import clipped, visible
from layers.layer2_stacks.choice import is_loop_scope
from layers.layer2_stacks.compare import LineChange
from layers.layer2_stacks.comparison import Comparison
from layers.layer2_stacks.model import Part, Row, ScopeAnalysis, Share, StackAnalysis
from layers.layer2_stacks.reading import Reading, RowKey
from layers.layer2_stacks.weigh import JudgedCapture

LEAVES, ROLL_UPS, LEAVES_OF_OTHERS = 100, 20, 10
"""Rows in a document: of the thread of the verdict, of its functions and packages, of every other thread."""


def sections(
    captures: Sequence[JudgedCapture],
    analyses: Sequence[StackAnalysis],
    reading: Reading | None,
    target: Target | None,
    unread: Sequence[str],
    compared: Comparison | None = None,
    later: Comparison | None = None,
    files: Iterable[Artifact] = (),
) -> dict[str, Any]:
    """`captures` are all that were given, `scopes` of the sound ones, by mode; `files` all that were read
    for it."""
    lost = [*unread, *(loss for one in captures for loss in _losses(one))]
    told = {
        "captures": [_capture(one) for one in captures],
        "scopes": [_scope(scope, a, reading) for a in analyses for scope in a.scopes],
        "thread": _thread(reading) if reading else None,
        "target": msgspec.to_builtins(target) if target else None,
        "comparison": _comparison(compared) if compared else None,
        "later": _comparison(later) if later else None,
        "files": [msgspec.to_builtins(file) for file in dict.fromkeys(files)],
        "lost": list(map(visible, lost)),
    }
    return dict(clipped(told))


def _capture(one: JudgedCapture) -> dict[str, Any]:
    facts, told, recording = one.facts, one.facts.told, one.facts.capture.recording
    entry = {
        "file": facts.capture.recorded.path,
        "mode": str(facts.mode),
        "mode_from": str(facts.capture.mode_from),
        "samples": facts.samples,
        "ticks": facts.ticks,
        "threads": len(facts.threads),
        "expected_ticks": told.expected_ticks,
        "errors": told.errors,
        "lagged": bool(told.lags_s) if facts.capture.log else None,
        "largest_lag_s": max(told.lags_s, default=None),
        "rate_hz": told.rate_hz,
        "asked_s": told.asked_s,
        "wall_s": told.wall_s,
        "profiler": told.profiler or None,
        "begun": recording.begun.isoformat() if recording else None,
        "ended": recording.ended.isoformat() if recording else None,
        "flags": sorted(told.flags) if told.flags is not None else None,
        "void": one.void,
        "why_void": [g.title for g in one.guards if g.fired and g.effect is Effect.VOID],
    }
    return _known(entry)


def _losses(one: JudgedCapture) -> list[str]:
    return [f"{one.facts.capture.recorded.path}: {loss.what}" for loss in one.facts.capture.recorded.losses]


def _thread(reading: Reading) -> dict[str, Any]:
    """The thread of the verdict: whose, why it was chosen, and its time in all modes."""
    entry = {
        "scope": reading.scope.name,
        "mode": str(reading.mode),
        "why": reading.why,
        "loop": is_loop_scope(reading.scope),
        "others": reading.others,
        "waiting": share_entry(reading.main.waiting),
        "on_cpu": share_entry(reading.on_cpu) if reading.on_cpu else None,
        "holds_lock": share_entry(reading.holds_lock) if reading.holds_lock else None,
        "smallest_visible": reading.main.smallest_visible,
    }
    return _known(entry)


def _scope(scope: ScopeAnalysis, of: StackAnalysis, reading: Reading | None) -> dict[str, Any]:
    chosen = reading is not None and reading.scopes.get(of.mode) is scope
    running = reading.lines if reading is not None and chosen else {}
    of_lock = reading is not None and reading.on_cpu is None
    leaves = scope.lines[: LEAVES if chosen else LEAVES_OF_OTHERS]
    return {
        "scope": scope.scope.name,
        "mode": str(of.mode),
        "chosen": chosen,
        "ticks": scope.total_ticks,
        "ticks_by_capture": list(scope.ticks),
        "of_all": scope.total_ticks / of.samples,
        "pids": list(scope.scope.pids),
        "thread_ids": list(scope.scope.thread_ids),
        "threads_known": scope.scope.threads_known,
        "entry": scope.scope.entry,
        "entry_ticks": scope.entry_ticks,
        "startup_ticks": scope.startup_ticks,
        "forked_ticks": scope.forked_ticks,
        "inherited_ticks": scope.inherited_ticks,
        "waiting": share_entry(scope.waiting),
        "waits": [{"for": part.name, "n": part.hits} for part in scope.waits],
        "smallest_visible": scope.smallest_visible,
        "leaves": [_row(row, running, of_lock=of_lock) for row in leaves],
        "leaves_left_out": len(scope.lines) - len(leaves),
        "functions": [_row(row, {}) for row in scope.functions[:ROLL_UPS]] if chosen else [],
        "packages": [_row(row, {}) for row in scope.packages[:ROLL_UPS]] if chosen else [],
    }


def _row(row: Row, running: Mapping[RowKey, Share], *, of_lock: bool = False) -> dict[str, Any]:
    """`n` counts the ticks that the share is of; `on_cpu` (`holds_lock` where only that was recorded) is what
    the line holds of the thread's time."""
    held = running.get((row.where, row.function))
    entry = {
        "where": row.where,
        "function": row.function,
        **share_entry(row.share),
        "of_all": row.of_all,
        "wait": str(row.wait) if row.wait else None,
        "holds_lock" if of_lock else "on_cpu": share_entry(held) if held else None,
        "callers": _parts(row.callers),
        "native": _parts(row.native),
        "merges": _parts(row.merges),
    }
    return _known(entry)


def _parts(parts: Sequence[Part]) -> list[dict[str, Any]]:
    return [{"name": part.name, "n": part.hits} for part in parts]


def share_entry(share: Share) -> dict[str, Any]:
    """A share with its interval."""
    entry = {
        "share": share.value,
        "low": share.low,
        "high": share.high,
        "n": share.ticks,
        "hits": share.hits,
        "method": share.method,
        "by_capture": list(share.per_capture),
        "agrees": share.agrees,
    }
    return _known(entry)


def _comparison(compared: Comparison) -> dict[str, Any]:
    """Both sides of a thread; no lines where a guard made it void."""
    sides = {
        side: {"ticks": scope.total_ticks, "ticks_by_capture": list(scope.ticks)}
        for side, scope in (("before", compared.before), ("after", compared.after))
        if scope is not None
    }
    return {
        "scope": compared.thread,
        "mode": str(compared.mode),
        "void": compared.void,
        **sides,
        "lines": [change_entry(change) for change in compared.lines],
        "functions": [change_entry(change) for change in compared.functions],
    }


def change_entry(change: LineChange) -> dict[str, Any]:
    """One line of a comparison."""
    return {
        "where": change.where,
        "function": change.function,
        "before": share_entry(change.before),
        "after": share_entry(change.after),
        "difference": change.difference,
        "low": change.low,
        "high": change.high,
        "clear": change.clear,
        "steadiness": str(change.steadiness),
    }


def _known(entry: dict[str, Any]) -> dict[str, Any]:
    """Without what was not measured."""
    return {name: value for name, value in entry.items() if value is not None}
