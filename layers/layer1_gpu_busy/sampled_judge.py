"""From sampled series to words, guards, measurements and findings: every card of every log by itself.

A card's word rests on all that the given logs know of it. Void cards are left out, and idle ones among
working ones are not missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from layers.evidence.finding import Finding
from layers.evidence.guard import Checked, Effect, apply_guards, strongest_effect
from layers.evidence.measurement import Measurement
from layers.evidence.strength import exit_code_for
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted, first_clause, first_few
from layers.layer1_gpu_busy.captures import Capture, count_captures
from layers.layer1_gpu_busy.guards_sampled import IDLE_THROUGHOUT, NO_SAMPLED_VALUES, SAMPLED_GUARDS
from layers.layer1_gpu_busy.sampled_cards import SHARES, judged_entities, known_shares, processes_on
from layers.layer1_gpu_busy.sampled_checks import SampledFacts, scarcest
from layers.layer1_gpu_busy.sampled_findings import Samples, card_findings
from layers.layer1_gpu_busy.sampled_model import BUSY_METRICS, PERCENT, EntitySamples, SampledAnalysis
from layers.layer1_gpu_busy.sampled_word import Reading, Shares, read_shares
from layers.layer1_gpu_busy.thresholds import Thresholds, Word
from parsers.series_model import Metric

NOTHING = "nothing was sampled"

EACH = "each card by itself: --json lists them"


@dataclass(frozen=True, slots=True)
class JudgedCard:
    """One entity of one log with its word and the guards on it; `entity` is None where the log holds none."""

    file: SampledAnalysis
    entity: EntitySamples | None
    scope: str
    reading: Reading
    shares: Shares
    guards: tuple[Checked, ...]

    @property
    def word(self) -> Word:
        return self.reading.word

    @property
    def idle(self) -> bool:
        """Whether nothing ran on the card; where another card worked, it is not missed."""
        return IDLE_THROUGHOUT.fired_in(self.guards) is not None


def judge_samples(files: Sequence[SampledAnalysis], thresholds: Thresholds) -> list[JudgedCard]:
    """Every entity of every log. A log of processes alone is judged only where there is no other."""
    pairs = [(file, entity) for file in files for entity in judged_entities(file)]
    empty = [file for file in files if not file.entities and not (pairs and file.processes)]
    all_pairs: list[tuple[SampledAnalysis, EntitySamples | None]] = [
        *pairs,
        *((file, None) for file in empty),
    ]
    several = len(all_pairs) > 1
    return [_judge(file, entity, files, thresholds, several) for file, entity in all_pairs]


def _judge(
    file: SampledAnalysis,
    entity: EntitySamples | None,
    files: Sequence[SampledAnalysis],
    thresholds: Thresholds,
    several: bool,
) -> JudgedCard:
    shares = known_shares(entity, file, files) if entity else {}
    processes = processes_on(entity.device, files) if entity else 0
    scope = _scope(file, entity, len(files))
    facts = SampledFacts(file, entity, shares, processes, thresholds)
    guards = tuple(apply_guards(SAMPLED_GUARDS, facts, scope if several else ""))
    return JudgedCard(file, entity, scope, _reading(shares, guards, thresholds), shares, guards)


def _reading(shares: Shares, guards: Sequence[Checked], thresholds: Thresholds) -> Reading:
    idle = IDLE_THROUGHOUT.fired_in(guards)
    if strongest_effect(guards) is Effect.VOID or idle or not shares:
        reasons = "; ".join(c.message for c in guards if voids(c) or c is idle)
        return Reading(Word.VOID, reasons or NOTHING, "")
    return read_shares(shares, thresholds)


def voids(checked: Checked) -> bool:
    """Whether a guard says that its card measured nothing."""
    return checked.fired and checked.effect is Effect.VOID


def _scope(file: SampledAnalysis, entity: EntitySamples | None, files: int) -> str:
    name = file.artifact.path.rsplit("/", 1)[-1]
    if entity is None:
        return name
    return f"{name}, {entity.entity}" if files > 1 else entity.entity


def verdict_of_samples(cards: Sequence[JudgedCard]) -> Verdict:
    """The word that all standing cards share; undecided where they differ."""
    standing = [card for card in cards if card.word is not Word.VOID]
    if not standing:
        return _void(cards)
    words = Counter(card.word for card in standing)
    word = next(iter(words)) if len(words) == 1 else Word.UNDECIDED
    guards = [checked for card in standing for checked in card.guards]
    lost = [card for card in cards if card.word is Word.VOID and not card.idle]
    weakened = bool(lost) or strongest_effect(guards) is Effect.DIRECTIONAL
    directional = weakened and word is not Word.UNDECIDED
    reached = Exit.OK if word is not Word.UNDECIDED else Exit.NO_CONCLUSION
    return Verdict(
        word=word,
        directional=directional,
        because=_because(standing, words) + _left_out(cards, lost),
        exit_code=exit_code_for(reached, guards, directional=directional),
        next_step=standing[0].reading.next_step if len(words) == 1 else EACH,
    )


def _void(cards: Sequence[JudgedCard]) -> Verdict:
    checked = [c for card in cards for c in card.guards if voids(c)]
    reasons = dict.fromkeys(f"{c.scope}: {c.message}" if c.scope else c.message for c in checked)
    because = first_few(reasons) or NOTHING
    code = checked[0].code if checked else NO_SAMPLED_VALUES.code
    remedy = next(first_clause(guard.remedy) for guard in SAMPLED_GUARDS if guard.code == code)
    return Verdict(Word.VOID, False, because, Exit.INVALID, f"{remedy} (perfkit explain {code})")


def _because(standing: Sequence[JudgedCard], words: Counter[Word]) -> str:
    first, cards = standing[0], len({card.entity.entity for card in standing if card.entity})
    if len(words) > 1:
        return f"{counted(cards, 'card')} differ: " + ", ".join(f"{n} {word}" for word, n in words.items())
    alike = f"{cards} cards alike, the first: " if cards > 1 else ""
    return f"{alike}{first.reading.because} ({_counted(first)})"


def _counted(card: JudgedCard) -> str:
    samples = samples_of(card)
    length = f" in {samples.seconds:,.0f} s" if samples.seconds is not None else ""
    return f"{counted(samples.n, 'sample')}{length}"


def _left_out(cards: Sequence[JudgedCard], lost: Sequence[JudgedCard]) -> str:
    idle = sum(card.idle for card in cards)
    parts = [counted(idle, "idle card")] * bool(idle) + [counted(len(lost), "void card")] * bool(lost)
    return f"; {' and '.join(parts)} left out" if parts else ""


def samples_of(card: JudgedCard, cards: Sequence[JudgedCard] = ()) -> Samples:
    """What the word of a standing card rests on; `cards` are those that may repeat it."""
    assert card.entity is not None
    captures = [_capture(other, card) for other in cards if _repeats(other, card)]
    windows = count_captures(_capture(card, card), captures) if captures and card.entity.timed else 1
    return Samples(scarcest(card.entity.active_stats), card.entity.seconds, windows)


def _repeats(other: JudgedCard, card: JudgedCard) -> bool:
    """Whether another log says the same kind of thing of the same card, at a known time."""
    a, b = other.entity, card.entity
    if a is None or b is None or other.word is Word.VOID or not a.timed:
        return False
    return a.entity == b.entity and _primary(other) == _primary(card)


def _primary(card: JudgedCard) -> Metric | None:
    return next((metric for metric in BUSY_METRICS if metric in card.shares), None)


def _capture(card: JudgedCard, of: JudgedCard) -> Capture:
    entity, primary = card.entity, _primary(of)
    assert entity is not None and entity.active is not None and primary is not None
    return Capture(-1, entity.device, entity.active.start, entity.active.end, card.word, card.shares[primary])


def findings_of_samples(cards: Sequence[JudgedCard]) -> list[Finding]:
    """The findings of every card that is not void."""
    return [
        finding
        for card in cards
        if card.word is not Word.VOID
        for finding in card_findings(
            card.scope,
            card.reading,
            samples_of(card, cards),
            card.guards,
            sampled_measurements(card),
        )
    ]


def sampled_measurements(card: JudgedCard) -> list[Measurement]:
    """The mean of every share over the active stretch, or over the whole log of a card that did nothing."""
    if card.entity is None:
        return []
    stats_of = card.entity.active_stats or card.entity.whole_stats
    return [
        Measurement(
            name=str(metric),
            value=stats.mean,
            unit="%" if metric in PERCENT else "share",
            n=stats.n,
            n_unit="samples",
            method=f"{card.file.source} {stats.field}: mean from the first to the last sample above 0",
            artifact=card.file.artifact,
            scope=card.scope,
        )
        for metric in (*SHARES, Metric.MEMORY_UTIL_PCT)
        if (stats := stats_of.get(metric)) is not None
    ]
