"""From what was found in the traces to one verdict, its guards, measurements and findings.

Every device of every trace is judged by itself and ratios are never averaged. The verdict of the command is
the word that all of them share; where they differ it is undecided and says how. Guards act per device: a
void one takes the device out of the verdict, a directional one leaves it a hint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from layers.evidence.finding import Finding
from layers.evidence.guard import Checked, Effect, apply_guards, strongest_effect
from layers.evidence.measurement import Measurement
from layers.evidence.result import Result
from layers.evidence.strength import exit_code_for
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import pct
from layers.layer1_gpu_busy.collect import Unread
from layers.layer1_gpu_busy.findings import device_findings
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.guards import TRACE_GUARDS
from layers.layer1_gpu_busy.guards_run import RUN_GUARDS, RunFacts
from layers.layer1_gpu_busy.model import DeviceAnalysis
from layers.layer1_gpu_busy.ranks import UNKNOWN_RANK, RankTable, rank_table
from layers.layer1_gpu_busy.sections import DeviceRow, sections
from layers.layer1_gpu_busy.thresholds import Thresholds, Word, word_of
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis

CAPTURES_AGREE_WITHIN = 0.05
"""Captures of one workload whose ratios lie this close repeat each other. perfkit's choice: a fifth of the
distance from a threshold to the middle of the undecided range."""


NEXT = {
    Word.HOST_BOUND: "Layer 2: which stage holds requests, then py-spy --idle on the scheduler thread",
    Word.DEVICE_BOUND: "kernels: perfkit roofline, then the ncu command of the top kernels",
    Word.UNDECIDED: "a longer steady capture, or a second method (dcgmi dmon, nvidia-smi dmon)",
}
"""Where each verdict leads."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One device of one trace with its word and the guards on it."""

    trace: TraceAnalysis
    device: DeviceAnalysis | None
    word: Word
    scope: str
    guards: tuple[Checked, ...]


def judge_traces(
    traces: Sequence[TraceAnalysis], thresholds: Thresholds, unread: Sequence[Unread] = ()
) -> Result:
    """The result of `perfkit layer1 --trace` for one or more analysed traces; `unread` files weaken it."""
    judged = _judge_all(traces, thresholds)
    of_run = apply_guards(RUN_GUARDS, RunFacts(traces, unread))
    captures = count_captures(judged)
    rows = [DeviceRow(j.scope, j.word, j.trace, j.device) for j in judged if j.device is not None]
    return Result(
        command="layer1",
        verdict=_verdict(judged, of_run, thresholds),
        guards=[*of_run, *(checked for j in judged for checked in j.guards)],
        measurements=[m for j in judged for m in _measurements(j)],
        findings=_findings(judged, captures),
        sections=sections(traces, rows, thresholds, ranks_of(traces)),
    )


def ranks_of(traces: Sequence[TraceAnalysis]) -> RankTable | None:
    """The table of ranks, None unless several different ranks were given and read whole."""
    ranks = [rank for trace in traces for rank in trace.ranks]
    return rank_table(ranks) if len({rank.rank for rank in ranks} - {UNKNOWN_RANK}) > 1 else None


def _judge_all(traces: Sequence[TraceAnalysis], thresholds: Thresholds) -> list[Judged]:
    pairs = [(trace, device) for trace in traces for device in trace.devices or (None,)]
    names = _scopes(pairs)
    judged = []
    for (trace, device), scope in zip(pairs, names, strict=True):
        facts = TraceFacts(trace, device, thresholds)
        guards = tuple(apply_guards(TRACE_GUARDS, facts, scope if len(pairs) > 1 else ""))
        judged.append(Judged(trace, device, _word(facts, guards), scope, guards))
    return judged


def _scopes(pairs: Sequence[tuple[TraceAnalysis, DeviceAnalysis | None]]) -> list[str]:
    """How each device is named: by its trace's rank where that tells the traces apart, else by the file."""
    short = [_short_name(trace) for trace, _ in pairs]
    paths_of_name: dict[str, set[str]] = {}
    for name, (trace, _) in zip(short, pairs, strict=True):
        paths_of_name.setdefault(name, set()).add(trace.artifact.path)
    unique = [
        n if len(paths_of_name[n]) == 1 else t.artifact.path for n, (t, _) in zip(short, pairs, strict=True)
    ]
    return [f"{n}, device {d.busy.device}" if d else n for n, (_, d) in zip(unique, pairs, strict=True)]


def _short_name(trace: TraceAnalysis) -> str:
    return f"rank {trace.meta.rank}" if trace.meta.rank >= 0 else trace.artifact.path.rsplit("/", 1)[-1]


def _word(facts: TraceFacts, guards: Sequence[Checked]) -> Word:
    """The word for one device. Void guards void it; windows that disagree leave it undecided."""
    if facts.device is None or facts.ratio is None or strongest_effect(guards) is Effect.VOID:
        return Word.VOID
    if any(c.fired and c.name == "window-decides" for c in guards):
        return Word.UNDECIDED
    return word_of(facts.ratio, facts.thresholds)


def count_captures(judged: Sequence[Judged]) -> int:
    """How many independent captures say the same of one workload: distinct files of one rank (or none) whose
    ratios agree. Ranks of one run are one capture, and so is a file given twice."""
    ratios = {
        j.trace.artifact.sha256: (j.trace.meta.rank, j.device.busy.device_window.device_op_ratio or 0.0)
        for j in judged
        if j.device is not None and j.word is not Word.VOID
    }
    ranks = {rank for rank, _ in ratios.values()}
    values = [ratio for _, ratio in ratios.values()]
    if len(ranks) > 1 or not values or max(values) - min(values) > CAPTURES_AGREE_WITHIN:
        return 1
    return len(values)


def _verdict(judged: Sequence[Judged], of_run: Sequence[Checked], thresholds: Thresholds) -> Verdict:
    standing = [j for j in judged if j.word is not Word.VOID]
    if not standing:
        return Verdict(
            Word.VOID, False, _why_void(judged), Exit.INVALID, "perfkit explain " + _first_code(judged)
        )
    words = Counter(j.word for j in standing)
    word = next(iter(words)) if len(words) == 1 else Word.UNDECIDED
    guards = [*of_run, *(checked for j in standing for checked in j.guards)]
    weakened = len(standing) < len(judged) or strongest_effect(guards) is Effect.DIRECTIONAL
    directional = weakened and word is not Word.UNDECIDED
    reached = Exit.OK if word is not Word.UNDECIDED else Exit.NO_CONCLUSION
    because = _because(standing, words, thresholds) + _left_out(len(judged) - len(standing))
    return Verdict(
        word,
        directional,
        because,
        exit_code_for(reached, guards, directional=directional),
        _next(word, standing),
    )


def _next(word: Word, standing: Sequence[Judged]) -> str:
    """Where to look, and for a host-bound device what kernel work could win at most."""
    ratios = [j.device.busy.device_window.device_op_ratio or 0.0 for j in standing if j.device]
    at_most = f". Kernel tuning can win at most {pct(max(ratios))}" if word is Word.HOST_BOUND else ""
    return NEXT[word] + at_most


def _because(standing: Sequence[Judged], words: Counter[Word], thresholds: Thresholds) -> str:
    if len(standing) == 1:
        return _one_device(standing[0], thresholds)
    ratios = [j.device.busy.device_window.device_op_ratio or 0.0 for j in standing if j.device]
    spread = f"{pct(min(ratios))} to {pct(max(ratios))} over {len(ratios)} devices, each of its own window"
    split = ", ".join(f"{n} {word}" for word, n in words.items())
    return f"device busy {spread}" + (f": {split}" if len(words) > 1 else f" ({thresholds})")


def _one_device(j: Judged, thresholds: Thresholds) -> str:
    assert j.device is not None
    window = j.device.busy.device_window
    ratio = window.device_op_ratio or 0.0
    base = f"device busy {pct(ratio)} of its own window ({window.window.length_ns / 1e6:,.1f} ms, "
    disagree = next((c.message for c in j.guards if c.fired and c.name == "window-decides"), "")
    return base + f"{j.device.busy.events:,} operations; {disagree or thresholds})"


def _why_void(judged: Sequence[Judged]) -> str:
    voids = [c for j in judged for c in j.guards if c.fired and c.effect is Effect.VOID]
    return "; ".join(dict.fromkeys(c.message for c in voids)) or "the device window has no length"


def _first_code(judged: Sequence[Judged]) -> str:
    codes = [c.code for j in judged for c in j.guards if c.fired and c.effect is Effect.VOID]
    return codes[0] if codes else "PK105"


def _left_out(void: int) -> str:
    return f"; {void} void {'device' if void == 1 else 'devices'} left out" if void else ""


def _measurements(j: Judged) -> list[Measurement]:
    if j.device is None:
        return []
    busy, artifact = j.device.busy, j.trace.artifact
    rows = [("device", busy.device_window), ("steps", busy.steps_window), ("recorded", busy.recorded_window)]
    made = []
    for window_name, ratios in rows:
        if ratios is None or ratios.device_op_ratio is None or ratios.kernel_ratio is None:
            continue
        method = f"chrome trace: union of intervals over the {window_name} window"
        for name, value in (
            ("device_op_ratio", ratios.device_op_ratio),
            ("kernel_time_ratio", ratios.kernel_ratio),
        ):
            full_name = name if window_name == "device" else f"{name}_{window_name}"
            made.append(
                Measurement(
                    full_name, value, "share", busy.events, "device operations", method, artifact, j.scope
                )
            )
    return made


def _findings(judged: Sequence[Judged], captures: int) -> list[Finding]:
    return [
        finding
        for j in judged
        if j.device is not None and j.word is not Word.VOID
        for finding in device_findings(j.device, j.word, j.guards, captures, _measurements(j), j.scope)
    ]
