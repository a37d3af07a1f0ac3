"""From what was found in the traces to one verdict, its guards, measurements and findings.

Every device of every trace is judged by itself and ratios are never averaged. The verdict of the command is
the word that all of them share; where they differ it is undecided and says how. Guards act per device: a
void one takes the device out of the verdict, a directional one leaves it a hint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from layers.evidence.finding import Finding
from layers.evidence.guard import Checked, Effect, apply_guards, strongest_effect
from layers.evidence.measurement import Measurement
from layers.evidence.result import Result
from layers.evidence.strength import exit_code_for
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted, first_few, pct
from layers.layer1_gpu_busy.anatomy_measurements import anatomy_measurements
from layers.layer1_gpu_busy.captures import Capture, count_captures
from layers.layer1_gpu_busy.doubt_steps import void_step, without_doubt
from layers.layer1_gpu_busy.findings import device_findings
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.guards import FEW_SAMPLES, TRACE_GUARDS, WINDOW_DECIDES
from layers.layer1_gpu_busy.guards_card import CARD_GUARDS
from layers.layer1_gpu_busy.guards_doubts import DOUBT_GUARDS, SHAPES_DIFFER
from layers.layer1_gpu_busy.guards_nsys import NSYS_GUARDS
from layers.layer1_gpu_busy.guards_run import check_files
from layers.layer1_gpu_busy.guards_width import BUSY_WITH_IDLE_SMS, WIDTH_GUARDS
from layers.layer1_gpu_busy.model import DeviceAnalysis, DeviceBusy
from layers.layer1_gpu_busy.next_steps import next_step
from layers.layer1_gpu_busy.nsys_measurements import nsys_measurements
from layers.layer1_gpu_busy.runs import Run, group_runs, rank_tables, work_of
from layers.layer1_gpu_busy.sampled_word import FILL_NEXT
from layers.layer1_gpu_busy.scopes import device_scopes
from layers.layer1_gpu_busy.sections import DeviceRow, sections
from layers.layer1_gpu_busy.sm_active import SmActive
from layers.layer1_gpu_busy.symptoms.spread import spread_text, symptom_spread
from layers.layer1_gpu_busy.thresholds import Thresholds, Word, word_of
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis, Unread
from parsers.chrome_categories import Producer

DEVICE_GUARDS = (*TRACE_GUARDS, *DOUBT_GUARDS, *NSYS_GUARDS, *WIDTH_GUARDS, *CARD_GUARDS)
TraceDevice = tuple[str, int]
"""A device of a trace: the file's path and the device's number."""

UNDECIDING = (WINDOW_DECIDES, SHAPES_DIFFER)
"""Guards that find two honest ratios with different words: neither is the verdict."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One device of one trace with its primary ratio, the word for it, and the guards on it."""

    trace: TraceAnalysis
    device: DeviceAnalysis
    scope: str
    guards: tuple[Checked, ...]
    ratio: float
    word: Word


@dataclass(frozen=True, slots=True)
class Void:
    """One device of one trace that says nothing (None: the trace has no device), with the guards on it."""

    trace: TraceAnalysis
    device: DeviceAnalysis | None
    scope: str
    guards: tuple[Checked, ...]
    word: Word = Word.VOID


Judged = Standing | Void


def judge_traces(
    traces: Sequence[TraceAnalysis],
    thresholds: Thresholds,
    unread: Sequence[Unread] = (),
    supported: Collection[TraceDevice] = (),
    sampled_sm: Mapping[TraceDevice, SmActive] | None = None,
) -> Result:
    """The result of `perfkit layer1 --trace` for one or more analysed traces; `unread` files weaken it.

    `supported` names the devices of which an independent method says the same, `sampled_sm` those of which a
    sampler says how full they were.
    """
    judged, runs = _judge_all(traces, thresholds, sampled_sm or {}), group_runs(traces)
    of_files = check_files(traces, unread, runs)
    rows = [
        DeviceRow(j.scope, j.word, j.trace, j.device, _hints(j, of_files))
        for j in judged
        if j.device is not None
    ]
    return Result(
        command="layer1",
        verdict=_verdict(judged, of_files, thresholds),
        guards=[*of_files, *(checked for j in judged for checked in j.guards)],
        measurements=[m for j in judged for m in _measurements(j)],
        findings=_findings(judged, of_files, supported, runs),
        sections=sections(traces, unread, rows, thresholds, rank_tables(runs)),
    )


def _judge_all(
    traces: Sequence[TraceAnalysis], thresholds: Thresholds, sampled_sm: Mapping[TraceDevice, SmActive]
) -> list[Judged]:
    pairs = [(trace, device) for trace in traces for device in trace.devices or (None,)]
    names = device_scopes(pairs)
    judged = []
    for (trace, device), scope in zip(pairs, names, strict=True):
        sm = sampled_sm.get((trace.artifact.path, device.busy.device)) if device else None
        facts = TraceFacts(trace, device, thresholds, sm)
        guards = tuple(apply_guards(DEVICE_GUARDS, facts, scope if len(pairs) > 1 else ""))
        judged.append(_judge(facts, scope, guards))
    return judged


def _judge(facts: TraceFacts, scope: str, guards: tuple[Checked, ...]) -> Judged:
    """Void guards void a device; ratios that disagree leave it undecided."""
    trace, device, ratio = facts.trace, facts.device, facts.ratio
    if device is None or ratio is None or strongest_effect(guards) is Effect.VOID:
        return Void(trace, device, scope, guards)
    word = Word.UNDECIDED if _disagreement(guards) else word_of(ratio, facts.thresholds)
    return Standing(trace, device, scope, guards, ratio, word)


def _standing(judged: Sequence[Judged]) -> list[Standing]:
    return [j for j in judged if isinstance(j, Standing)]


def _disagreement(guards: Sequence[Checked]) -> Checked | None:
    return next((fired for guard in UNDECIDING if (fired := guard.fired_in(guards))), None)


def _verdict(judged: Sequence[Judged], of_files: Sequence[Checked], thresholds: Thresholds) -> Verdict:
    standing = _standing(judged)
    if not standing:
        return Verdict(Word.VOID, False, _why_void(judged), Exit.INVALID, _void_step(judged))
    heard = _heard(standing)
    words = Counter(j.word for j in heard)
    word = next(iter(words)) if len(words) == 1 else Word.UNDECIDED
    guards = [*of_files, *(checked for j in heard for checked in j.guards)]
    weakened = len(standing) < len(judged) or strongest_effect(guards) is Effect.DIRECTIONAL
    directional = weakened and word is not Word.UNDECIDED
    reached = Exit.OK if word is not Word.UNDECIDED else Exit.NO_CONCLUSION
    return Verdict(
        word=word,
        directional=directional,
        because=_because(heard, words, thresholds)
        + _left_out(len(judged) - len(standing), "void")
        + _left_out(len(standing) - len(heard), "hardly used"),
        exit_code=exit_code_for(reached, guards, directional=directional),
        next_step=_next(word, heard, [*of_files, *_voided(judged)]),
    )


def _hints(j: Judged, of_files: Sequence[Checked]) -> bool:
    """Whether the word of one device is a hint."""
    decides = j.word in (Word.HOST_BOUND, Word.DEVICE_BOUND)
    return decides and strongest_effect([*of_files, *j.guards]) is Effect.DIRECTIONAL


def _next(word: Word, standing: Sequence[Standing], of_files: Sequence[Checked]) -> str:
    """What removes the doubts, then where to look, and for a host-bound device what kernel work could win.

    `of_files` are the guards on the files, and those that void what was left out."""
    least = min(standing, key=lambda j: j.ratio)
    of_others = [checked for j in standing if j is not least for checked in j.guards]
    guards = [*of_files, *least.guards, *of_others]
    return without_doubt(guards, _cure(word, least, standing), least.guards)


def _cure(word: Word, least: Standing, standing: Sequence[Standing]) -> str:
    step = next_step(least.word, least.device)
    if len({j.word for j in standing}) > 1:
        shared = spread_text(symptom_spread([(j.scope, j.device) for j in standing]))
        return f"{shared}begin with {least.scope}, the least busy one: {step}"
    empty = BUSY_WITH_IDLE_SMS.fired_in(least.guards)
    if empty is not None and empty.effect is Effect.DIRECTIONAL:
        return FILL_NEXT
    if word is not Word.HOST_BOUND:
        return step
    return f"{step}. Kernel tuning can win at most {pct(max(j.ratio for j in standing))}"


def _because(standing: Sequence[Standing], words: Counter[Word], thresholds: Thresholds) -> str:
    if len(standing) == 1:
        return _one_device(standing[0], thresholds)
    ratios = [j.ratio for j in standing]
    spread = f"{pct(min(ratios))} to {pct(max(ratios))} over {len(ratios)} devices, each of its own window"
    split = ", ".join(f"{n} {word}" for word, n in words.items())
    return f"device busy {spread}" + (f": {split}" if len(words) > 1 else f" ({thresholds})")


def _one_device(j: Standing, thresholds: Thresholds) -> str:
    busy = j.device.busy
    window_ms = busy.device_window.window.length_ns / 1e6
    disagree = _disagreement(j.guards)
    base = f"device busy {pct(j.ratio)} of its own window ({window_ms:,.1f} ms, "
    decided_by = disagree.message if disagree else thresholds
    return f"{base}{counted(busy.events, 'operation')}; {_by_step(j.device)}{decided_by})"


def _by_step(device: DeviceAnalysis) -> str:
    """How far apart its steps are; empty for a device with less than two."""
    shares = [time.busy_share for time in device.step_times if time.busy_ns]
    if len(shares) < 2:
        return ""
    low, high = pct(min(shares)), pct(max(shares))
    spread = f"{low} inside each of" if low == high else f"{low} to {high} inside"
    return f"{spread} its {len(shares)} steps; "


def _why_void(judged: Sequence[Judged]) -> str:
    return first_few(dict.fromkeys(c.message for j in judged for c in j.guards if _voids(c)))


def _void_step(judged: Sequence[Judged]) -> str:
    """What would make it valid; of devices that perfkit does not read, nothing would."""
    if voided := _voided(judged):
        return void_step(voided)
    return f"perfkit explain {next(c.code for j in judged for c in j.guards if _voids(c))}"


def _voided(judged: Sequence[Judged]) -> list[Checked]:
    """The first guard that voids each void device, apart from those that perfkit does not read."""
    unread = (Producer.MTIA, Producer.ASCEND)
    void = [j for j in judged if isinstance(j, Void) and j.trace.meta.producer not in unread]
    return [voids for j in void if (voids := next(filter(_voids, j.guards), None)) is not None]


def _voids(checked: Checked) -> bool:
    return checked.fired and checked.effect is Effect.VOID


def _left_out(devices: int, why: str) -> str:
    return f"; {counted(devices, f'{why} device')} left out" if devices else ""


def _heard(standing: Sequence[Standing]) -> list[Standing]:
    """The devices that the verdict rests on: those with enough operations, where any has.

    One operation is all of its own window, whatever the service does.
    """
    enough = [j for j in standing if not FEW_SAMPLES.fired_in(j.guards)]
    return enough or list(standing)


def _measurements(j: Judged) -> list[Measurement]:
    """The ratios and what else findings rest on; none where there is no device."""
    if j.device is None:
        return []
    anatomy = anatomy_measurements(j.device, j.trace.method, j.trace.artifact, j.scope)
    of_nsys = nsys_measurements(j.trace, j.device.busy.device, j.scope)
    return [*_ratios(j, j.device.busy), *anatomy, *of_nsys]


def _ratios(j: Judged, busy: DeviceBusy) -> list[Measurement]:
    """Both ratios over every window that has a length, the device window's without a suffix."""
    return [
        Measurement(
            name + ("" if ratios is busy.device_window else f"_{ratios.window.name}"),
            value=value,
            unit="share",
            n=busy.events,
            n_unit="device operations",
            method=f"{j.trace.method}: union of intervals over the {ratios.window.name} window",
            artifact=j.trace.artifact,
            scope=j.scope,
        )
        for ratios in (busy.device_window, busy.steps_window, busy.recorded_window)
        if ratios is not None
        for name, value in (
            ("device_op_ratio", ratios.device_op_ratio),
            ("kernel_time_ratio", ratios.kernel_ratio),
        )
        if value is not None
    ]


def _findings(
    judged: Sequence[Judged],
    of_files: Sequence[Checked],
    supported: Collection[TraceDevice],
    runs: Sequence[Run],
) -> list[Finding]:
    standing = _standing(judged)
    captures = [_capture(j, work_of(j.trace, runs)) for j in standing]
    return [
        finding
        for j, capture in zip(standing, captures, strict=True)
        for finding in device_findings(
            j.device,
            j.word,
            (*of_files, *j.guards),
            count_captures(capture, captures),
            _measurements(j),
            j.scope,
            supported=(j.trace.artifact.path, j.device.busy.device) in supported,
        )
    ]


def _capture(standing: Standing, work: int | None) -> Capture:
    busy, meta = standing.device.busy, standing.trace.meta
    return Capture(
        rank=meta.rank,
        device=busy.device,
        start_ns=meta.base_time_ns + busy.device_window.window.start_ns,
        end_ns=meta.base_time_ns + busy.device_window.window.end_ns,
        word=standing.word,
        ratio=standing.ratio,
        work=work,
    )
