"""What somebody should do about one card, by samples: findings with their strength, a negative one
included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from layers.evidence.finding import Finding, FindingKind
from layers.evidence.guard import Checked
from layers.evidence.measurement import Measurement
from layers.evidence.strength import judge_strength
from layers.evidence.strength_table import SampledSeries
from layers.evidence.wording import counted
from layers.layer1_gpu_busy.sampled_word import Reading
from layers.layer1_gpu_busy.thresholds import Word


class Samples(NamedTuple):
    """What a word rests on: samples of the active stretch, its length (None: no times), independent logs."""

    n: int
    seconds: float | None
    windows: int = 1


def card_findings(
    scope: str,
    reading: Reading,
    samples: Samples,
    guards: Sequence[Checked],
    measurements: Sequence[Measurement],
) -> list[Finding]:
    """All findings for one card whose word is not void."""
    facts = SampledSeries(samples.n, samples.windows)
    judged = judge_strength(facts, guards, clear=reading.word is not Word.UNDECIDED, doubt=reading.doubt)
    if judged is None:
        return []
    verdict = Finding(
        statement=f"{scope}: {reading.because} ({counted(samples.n, 'sample')})",
        strength=judged.strength,
        rule=judged.rule,
        recommendation=reading.next_step,
        measurements=tuple(measurements),
        kind=FindingKind.VERDICT,
    )
    if reading.word is Word.HOST_BOUND:
        return [
            verdict,
            replace(
                verdict,
                statement=f"{scope}: kernels are not the limit: the device has time without any",
                recommendation="leave kernels alone until the device has work",
                negative=True,
                kind=FindingKind.CONSEQUENCE,
            ),
        ]
    return [verdict]
