"""The guards of Layer 1 on methods that were given together: do they say the same of one time?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, limit, pct
from layers.layer1_gpu_busy.cross_check import AGREE_WITHIN, Comparison, Times, disagreements
from layers.layer1_gpu_busy.methods import Instrument


@dataclass(frozen=True, slots=True)
class CrossFacts:
    """All pairs of methods of one command. `void` are traced devices (source, number) that say nothing by
    themselves: what differs from them is explained, and no contradiction."""

    comparisons: Sequence[Comparison]
    void: Collection[tuple[str, int]] = ()

    @property
    def against(self) -> list[Comparison]:
        """Those that contradict each other: of one time, and none of them void."""
        of_one_time = [c for c in disagreements(self.comparisons) if c.times is Times.SAME]
        return [c for c in of_one_time if (c.a.source, c.a.device) not in self.void]


def _disagree(facts: CrossFacts) -> Outcome | None:
    asked = [c for c in facts.comparisons if c.agree is not None]
    if not asked:
        return None
    against = disagreements(asked)
    if not against:
        pairs = counted(len(asked), "pair")
        return Outcome(False, f"{pairs} of independent methods within {limit(AGREE_WITHIN)}")
    first = said((facts.against or against)[0])
    more = f" (and {counted(len(against) - 1, 'other pair')})" if len(against) > 1 else ""
    return Outcome(True, first + more, None if facts.against else Effect.NOTE)


def said(c: Comparison) -> str:
    """Both values, and why they are as they are."""
    return (
        f"{c.a.measures} of {c.a.method} {pct(c.a.value)}, {c.b.measures} of {c.b.method} {pct(c.b.value)} "
        f"(n = {c.b.n:,}): {c.why}"
    )


def _not_comparable(facts: CrossFacts) -> Outcome | None:
    asked = [c for c in facts.comparisons if c.a.instrument is not c.b.instrument]
    asked = [c for c in asked if c.times is not Times.SAME or c.agree is not None]
    if not asked:
        return None
    other = [c for c in asked if c.times is not Times.SAME]
    if not other:
        return Outcome(False, "every pair looked at one time")
    first = other[0]
    why = f": {first.why}" if first.agree is None and first.a.question is first.b.question else ""
    return Outcome(True, f"{first.a.measures} and {first.b.measures}: {first.times}{why}")


def _taken_for_one(facts: CrossFacts) -> Outcome | None:
    asked = [c for c in facts.comparisons if c.a.instrument is Instrument.RECORDS and c.b.samples]
    assumed = [c for c in asked if c.assumed]
    if not asked:
        return None
    if not assumed:
        return Outcome(False, "both sides call the card by one number")
    first = assumed[0]
    names = f"device {first.a.device} of {first.a.method} and {first.b.scope} of {first.b.method}"
    return Outcome(
        True, f"{names} are taken for one card, since there is no other: neither confirms the other"
    )


METHODS_DISAGREE = Guard(
    code="PK158",
    name="methods-disagree",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A trace says 30 % busy, the sampler 95 %, of one card and one time.",
    cause="One of them is blind: a trace to graph replays and dropped kernels, a sampler to copies and to "
    "which process ran. Or they looked at two cards.",
    detection="Two instruments that ask for the resident time, in one window, differ by more than "
    f"{limit(AGREE_WITHIN)}; a trace answers with the band from kernel time to device-op time.",
    remedy="Do what the explanation says; never average them. There is no verdict while they differ.",
    source="SGLang-Omni methodology 1.3 (replays only as cudaGraphLaunch); NVIDIA/DCGM issue 303.",
    check=_disagree,
)

METHODS_NOT_OF_ONE_TIME = Guard(
    code="PK159",
    name="methods-not-of-one-time",
    layer="layer1",
    effect=Effect.NOTE,
    sees="Two methods side by side that cannot confirm each other.",
    cause="They ran at different times, one keeps no time (dcgmi dmon), or the trace is shorter than the "
    "period that the driver averages over.",
    detection="Windows on the wall clock that do not meet, are unknown, or are shorter than 1 s for NVML.",
    remedy="Sample while the trace records, for some seconds; stamp dcgmi's rows (dcgmi dmon … | ts "
    "'%Y-%m-%d %H:%M:%.S'); say --utc-offset where the log's clock was not on UTC.",
    source="NVML, nvmlUtilization_t: the period is 1/6 s to 1 s, depending on the product.",
    check=_not_comparable,
)

CARDS_TAKEN_FOR_ONE = Guard(
    code="PK168",
    name="cards-taken-for-one",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A trace of device 0 beside a log of gpu 3.",
    cause="A process counts the devices that CUDA_VISIBLE_DEVICES leaves it from 0, samplers count all "
    "cards in PCI order. The log may be of the same card, or of a neighbour that does something like it.",
    detection="One traced device and one sampled card whose numbers or names differ.",
    remedy="Look up CUDA_VISIBLE_DEVICES of the process; sample all cards (no --id), and see which moves.",
    source="CUDA C++ programming guide, CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER.",
    check=_taken_for_one,
)

CROSS_GUARDS: tuple[Guard[CrossFacts], ...] = (
    METHODS_DISAGREE,
    METHODS_NOT_OF_ONE_TIME,
    CARDS_TAKEN_FOR_ONE,
)
