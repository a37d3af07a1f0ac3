"""What somebody should do about one device: findings with their strength, negative ones included.

The first finding is the verdict in a sentence. Idle time, exposed communication and symptoms follow: a trace
shows a phenomenon and never its cause in the code, so those are weak by rule until another layer confirms
them. Each rests on numbers of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layers.evidence.finding import Finding, FindingKind
from layers.evidence.guard import Checked, Effect, strongest_effect
from layers.evidence.measurement import Measurement
from layers.evidence.strength import Judgement, judge_strength
from layers.evidence.strength_table import Trace
from layers.evidence.symptom import Symptom
from layers.evidence.wording import counted, pct
from layers.layer1_gpu_busy.anatomy_measurements import EXPOSED_COMMUNICATION, idle_share
from layers.layer1_gpu_busy.doubt_steps import without_doubt
from layers.layer1_gpu_busy.exposed import ALL_RANKS
from layers.layer1_gpu_busy.guards import IDLE_WHILE_QUEUED, STACKS_SLOW_THE_HOST
from layers.layer1_gpu_busy.idle_model import Place
from layers.layer1_gpu_busy.kernel_groups import KernelGroup
from layers.layer1_gpu_busy.kernel_names import short_name
from layers.layer1_gpu_busy.model import DeviceAnalysis
from layers.layer1_gpu_busy.next_steps import BY_CAUSE, DEVICE_BOUND, next_step
from layers.layer1_gpu_busy.overlap import EXPOSED_SHARE
from layers.layer1_gpu_busy.symptoms.communication import S5, S6
from layers.layer1_gpu_busy.symptoms.device import S4, S8, S12
from layers.layer1_gpu_busy.thresholds import Word

STACKS = f"Python stacks were recorded, which slows the host ({STACKS_SLOW_THE_HOST.code})"
PHENOMENON = "a trace shows the phenomenon, not its cause in the code"
NOT_PROFILED = (KernelGroup.MEMCPY, KernelGroup.MEMSET, KernelGroup.GRAPH, KernelGroup.COMMUNICATION)
"""Groups that Nsight Compute is not pointed at: some are no kernels, and it runs a kernel several times, at
which a collective waits for ranks that never come (Nsight Compute documentation, kernel replay)."""
AFTER_HOST = "once the host keeps the device busy: "
WORTH_A_FINDING = 0.25
"""Idle causes below this share of the idle time are left to the table. perfkit's choice."""
COMMUNICATION_SYMPTOMS = (S5.code, S6.code)
"""They say more of the same exposed communication."""
KERNEL_SYMPTOMS = (S4.code, S8.code)
"""Those of the kernels themselves: worth nothing yet where the device mostly waits for the host."""


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
    steps = len(device.steps.working) if device.steps else 0
    facts = Trace(steps=steps, operations=device.busy.events, captures=captures, supported=supported)
    doubt = STACKS if STACKS_SLOW_THE_HOST.fired_in(guards) else ""
    judged = judge_strength(facts, guards, clear=word is not Word.UNDECIDED, doubt=doubt)
    hinted = judge_strength(facts, guards, clear=False, doubt=PHENOMENON)
    if judged is None or hinted is None:
        return []
    found = _Found(device, word, scope, tuple(measurements), judged, hinted, tuple(guards))
    return [
        *found.verdict(queued=IDLE_WHILE_QUEUED.fired_in(guards) is not None),
        *found.idle(),
        *found.exposed_communication(),
        *(found.symptom(s) for s in device.symptoms if s.present),
    ]


@dataclass(frozen=True, slots=True)
class _Found:
    """One device with its word and its measurements, and how far a verdict and a hint carry."""

    device: DeviceAnalysis
    word: Word
    scope: str
    measurements: tuple[Measurement, ...]
    judged: Judgement
    hinted: Judgement
    guards: tuple[Checked, ...]

    def verdict(self, *, queued: bool) -> Iterator[Finding]:
        """What the verdict says, and what it says is not worth looking at."""
        device, word = self.device, self.word
        ratio = device.busy.device_window.device_op_ratio or 0.0
        window_ms = device.busy.device_window.window.length_ns / 1e6
        window = f"{window_ms:,.1f} ms, n = {counted(device.busy.events, 'operation')}"
        base = f"busy {pct(ratio)} of its own window ({window})"
        if word is Word.HOST_BOUND:
            why = "it was idle with work already queued" if queued else "the host does not keep it busy"
            yield self._verdict(f"{base}: {self._hint}{why}", next_step(word, device))
            codes = [s.code for s in device.symptoms if s.present and s.code in KERNEL_SYMPTOMS]
            these = f", {' and '.join(codes)} included" if codes else ""
            limit = f"kernels are not the limit: making all of them free would save at most {pct(ratio)}"
            yield self._ruled_out(f"{self._hint}{limit}{these}", "leave kernels alone")
        elif word is Word.DEVICE_BOUND:
            limit = (
                f"the host is not the limit: without idle time at most {pct(1 - ratio)} of it would be saved"
            )
            yield self._verdict(f"{base}: {self._hint}the device is the limit", top_kernel_advice(device))
            yield self._ruled_out(f"{self._hint}{limit}", "leave scheduling and launch overhead alone")
        else:
            yield self._verdict(f"{base}: between the thresholds", next_step(word, device))

    def idle(self) -> Iterator[Finding]:
        """The chief cause of the idle time, where idle time is the question."""
        idle = self.device.idle
        if idle is None or not idle.idle_ns or self.word is Word.DEVICE_BOUND:
            return
        (cause, cause_ns), (place, place_ns) = idle.causes[0], idle.places[0]
        if cause_ns / idle.idle_ns < WORTH_A_FINDING:
            return
        of_what = f"{idle.idle_ns / 1e6:,.1f} ms in {counted(idle.gaps, 'gap')}"
        what = f"{pct(cause_ns / idle.idle_ns)} of the idle time ({of_what}): {cause}"
        if place is Place.UNPLACED:
            yield self._hinted(what, BY_CAUSE[cause], idle_share(cause))
            return
        where = f"{what}; most of it lies {place} ({pct(place_ns / idle.idle_ns)})"
        yield self._hinted(where, BY_CAUSE[cause], idle_share(cause), idle_share(place))

    def exposed_communication(self) -> Iterator[Finding]:
        """Communication that nothing hides, where no symptom says so already."""
        exposed = next((m for m in self.measurements if m.name == EXPOSED_COMMUNICATION), None)
        told = any(s.present and s.code in COMMUNICATION_SYMPTOMS for s in self.device.symptoms)
        if exposed is None or exposed.value <= EXPOSED_SHARE or told:
            return
        what = f"communication that no computation hides is {pct(exposed.value)} of the window"
        yield self._hinted(what, ALL_RANKS, EXPOSED_COMMUNICATION)

    def symptom(self, symptom: Symptom) -> Finding:
        """A symptom with its numbers in words, and the file that shows them."""
        later = symptom.code in KERNEL_SYMPTOMS and self.word is Word.HOST_BOUND
        advice = (AFTER_HOST if later else "") + symptom.look_next.rstrip(".")
        return replace(
            self._hinted(f"{symptom.code} {symptom.title}", advice),
            disproof=symptom.disproof,
            evidence=symptom.numbers,
            artifacts=tuple(dict.fromkeys(m.artifact for m in self.measurements if m.artifact)),
        )

    @property
    def _hint(self) -> str:
        """Before what a verdict says, where it hints and does not conclude."""
        return "a hint that " if strongest_effect(self.guards) is Effect.DIRECTIONAL else ""

    def _verdict(self, statement: str, cure: str) -> Finding:
        """The verdict, on the busy ratios, with what removes a doubt before its cure."""
        found = self._on_ratios(statement, without_doubt(self.guards, cure, self.guards))
        return replace(found, kind=FindingKind.VERDICT)

    def _on_ratios(self, statement: str, recommendation: str) -> Finding:
        return self._finding(self.judged, statement, recommendation, "device_op_ratio", "kernel_time_ratio")

    def _ruled_out(self, statement: str, recommendation: str) -> Finding:
        """What the verdict says is not worth looking at."""
        found = self._on_ratios(statement, recommendation)
        return replace(found, kind=FindingKind.CONSEQUENCE, negative=True)

    def _hinted(self, statement: str, recommendation: str, *names: str) -> Finding:
        """A finding on a phenomenon, with the measurements of these names."""
        return self._finding(self.hinted, statement, recommendation, *names)

    def _finding(self, judged: Judgement, statement: str, recommendation: str, *names: str) -> Finding:
        return Finding(
            statement=f"{self.scope}: {statement}",
            strength=judged.strength,
            rule=judged.rule,
            recommendation=recommendation,
            measurements=tuple(m for name in names for m in self.measurements if m.name == name),
            scope=self.scope,
        )


def top_kernel_advice(device: DeviceAnalysis) -> str:
    """Where device time goes, and the command that looks into it."""
    if not device.kernels:
        return DEVICE_BOUND
    top = device.kernels[0]
    if top.group == KernelGroup.COMMUNICATION:
        return f"communication before kernels: {short_name(top.name)} takes {pct(top.share)}; {ALL_RANKS}"
    if top.group == KernelGroup.MEMCPY:
        return f"copies before kernels: {top.name} takes {pct(top.share)} of busy time (symptom {S12.code})"
    if top.group == KernelGroup.GRAPH:
        return f"perfkit roofline; then record graph nodes to see what {short_name(top.name)} consists of"
    return f"perfkit roofline, then the ncu command of {short_name(top.name)} ({pct(top.share)} of busy time)"


def ncu_command(device: DeviceAnalysis, top: int = 3) -> str | None:
    """The Nsight Compute command for the kernels that take the most time, communication left out; None
    without any."""
    names = [_function_name(k.name) for k in device.kernels if k.group not in NOT_PROFILED]
    wanted = [n for n in dict.fromkeys(names) if n and all(c.isalnum() or c == "_" for c in n)][:top]
    if not wanted:
        return None
    chosen = f"--kernel-name 'regex:(^|::)({'|'.join(wanted)})$'"
    return f"ncu --set full {chosen} --launch-skip 100 --launch-count 3 -- YOUR COMMAND"


def _function_name(name: str) -> str:
    """A kernel's bare function name, which is what ncu compares: no namespaces, arguments or types."""
    plain = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", plain, maxsplit=1)[0].split("::")[-1].strip()
