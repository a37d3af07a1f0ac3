"""What somebody should do about one device: findings with their strength, negative ones included.

The first finding is the verdict in a sentence. Idle time and symptoms follow: a trace shows a phenomenon
and never its cause in the code, so those are weak by rule until another layer confirms them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.finding import Finding
from layers.evidence.guard import Checked
from layers.evidence.measurement import Measurement
from layers.evidence.strength import Judgement, judge_strength
from layers.evidence.strength_table import Trace
from layers.evidence.wording import counted, pct
from layers.layer1_gpu_busy.kernel_groups import KernelGroup
from layers.layer1_gpu_busy.model import DeviceAnalysis, Symptom
from layers.layer1_gpu_busy.next_steps import BY_CAUSE, next_step
from layers.layer1_gpu_busy.thresholds import Word

STACKS = "Python stacks were recorded, which slows the host (PK129)"
PHENOMENON = "a trace shows the phenomenon, not its cause in the code"
NO_KERNELS = (KernelGroup.MEMCPY, KernelGroup.MEMSET, KernelGroup.GRAPH)
SHORT_NAME_CHARACTERS = 60
WORTH_A_FINDING = 0.25
"""Idle causes below this share of the idle time are left to the table. perfkit's choice."""


def work_was_queued(guards: Sequence[Checked]) -> bool:
    """Whether the device was idle although the host had already given it work."""
    return any(c.fired and c.name == "idle-while-queued" for c in guards)


def device_findings(
    device: DeviceAnalysis,
    word: Word,
    guards: Sequence[Checked],
    captures: int,
    measurements: Sequence[Measurement],
    scope: str,
    *,
    supported: bool = False,
) -> list[Finding]:
    """All findings for one device whose verdict is not void; `supported`: another method says the same."""
    steps = len(device.steps.steps) if device.steps else 0
    facts = Trace(steps=steps, operations=device.busy.events, captures=captures, supported=supported)
    doubt = STACKS if any(c.fired and c.name == "stacks-slow-the-host" for c in guards) else ""
    judged = judge_strength(facts, guards, clear=word is not Word.UNDECIDED, doubt=doubt)
    hinted = judge_strength(facts, guards, clear=False, doubt=PHENOMENON)
    if judged is None or hinted is None:
        return []
    rests_on = tuple(m for m in measurements if m.name in ("device_op_ratio", "kernel_time_ratio"))
    queued = work_was_queued(guards)
    return [
        *_verdict(device, word, judged, rests_on, scope, queued),
        *_idle(device, word, hinted, rests_on, scope),
        *(_symptom(s, hinted, rests_on, scope) for s in device.symptoms if s.present),
    ]


def _verdict(
    device: DeviceAnalysis,
    word: Word,
    judged: Judgement,
    rests_on: tuple[Measurement, ...],
    scope: str,
    queued: bool,
) -> Iterator[Finding]:
    ratio = device.busy.device_window.device_op_ratio or 0.0
    window_ms = device.busy.device_window.window.length_ns / 1e6
    window = f"{window_ms:,.1f} ms, n = {counted(device.busy.events, 'operation')}"
    base = f"{scope}: busy {pct(ratio)} of its own window ({window})"
    if word is Word.HOST_BOUND:
        why = "it was idle with work already queued" if queued else "the host does not keep it busy"
        yield _finding(f"{base}: {why}", judged, next_step(word, device), rests_on)
        limit = f"{scope}: kernels are not the limit: making all of them free would save at most {pct(ratio)}"
        yield _finding(limit, judged, "leave kernels and attention back end alone", rests_on, negative=True)
    elif word is Word.DEVICE_BOUND:
        limit = (
            f"{scope}: the host is not the limit: without idle time at most {pct(1 - ratio)} would be saved"
        )
        yield _finding(f"{base}: the device is the limit", judged, top_kernel_advice(device), rests_on)
        yield _finding(limit, judged, "leave scheduling and launch overhead alone", rests_on, negative=True)
    else:
        yield _finding(f"{base}: between the thresholds", judged, next_step(word, device), rests_on)


def top_kernel_advice(device: DeviceAnalysis) -> str:
    """Where device time goes, and the command that looks into it."""
    if not device.kernels:
        return "perfkit roofline; run without --busy-only for the kernel table"
    top = device.kernels[0]
    if top.group == KernelGroup.MEMCPY:
        return f"copies before kernels: {top.name} takes {pct(top.share)} of busy time (symptom S12)"
    if top.group == KernelGroup.GRAPH:
        return f"perfkit roofline; then record graph nodes to see what {short_name(top.name)} consists of"
    return f"perfkit roofline, then the ncu command of {short_name(top.name)} ({pct(top.share)} of busy time)"


def short_name(name: str) -> str:
    """A kernel's name without return type, template arguments and parameters, for sentences."""
    plain = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    cut = min((at for at in (plain.find("<"), plain.find("(")) if at > 0), default=len(plain))
    return plain[:cut].strip()[:SHORT_NAME_CHARACTERS]


def ncu_command(device: DeviceAnalysis, top: int = 3) -> str | None:
    """The Nsight Compute command for the kernels that take the most time; None without any kernel."""
    names = [short_name(k.name).split("::")[-1] for k in device.kernels if k.group not in NO_KERNELS]
    wanted = [n for n in dict.fromkeys(names) if n and all(c.isalnum() or c == "_" for c in n)][:top]
    if not wanted:
        return None
    pattern = "|".join(wanted)
    return (
        f"ncu --set full --kernel-name 'regex:{pattern}' --launch-skip 100 --launch-count 3 -- YOUR COMMAND"
    )


def _idle(
    device: DeviceAnalysis, word: Word, hinted: Judgement, rests_on: tuple[Measurement, ...], scope: str
) -> Iterator[Finding]:
    idle = device.idle
    if idle is None or not idle.idle_ns or word is Word.DEVICE_BOUND:
        return
    cause, cause_ns = max(idle.by_cause_ns.items(), key=lambda item: item[1])
    place, place_ns = max(idle.by_place_ns.items(), key=lambda item: item[1])
    if cause_ns / idle.idle_ns < WORTH_A_FINDING:
        return
    of_what = f"{idle.idle_ns / 1e6:,.1f} ms in {idle.gaps:,} gaps"
    what = f"{scope}: {pct(cause_ns / idle.idle_ns)} of the idle time ({of_what})"
    where = f"; most of it lies {place} ({pct(place_ns / idle.idle_ns)})"
    yield _finding(f"{what}: {cause}{where}", hinted, BY_CAUSE[cause], rests_on)


def _symptom(symptom: Symptom, hinted: Judgement, rests_on: tuple[Measurement, ...], scope: str) -> Finding:
    statement = f"{scope}: {symptom.code} {symptom.title}: {symptom.numbers}"
    advice = f"usual cause: {symptom.usual_cause}; look next: {symptom.look_next}"
    return _finding(statement, hinted, advice, rests_on, disproof=symptom.disproof)


def _finding(
    statement: str,
    judged: Judgement,
    recommendation: str,
    rests_on: tuple[Measurement, ...],
    negative: bool = False,
    disproof: str = "",
) -> Finding:
    return Finding(statement, judged.strength, judged.rule, recommendation, negative, rests_on, disproof)
