"""How right the answers of a pass are, judged after the run from its records.

    wer, cer               errors over words, or characters, of all that is expected (jiwer; lower is better)
    exact-match            share of answers that are what is expected, to the character or the sample
    audio-seconds-ratio    seconds of audio over those of the same items at the least load

Only requests that were answered can be judged: a server that sheds the hard ones looks better, so how many
were left out is told beside every value. Texts are compared for wer and cer as `NORMALISED` says.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import jiwer

from layers.collectors.load.item import Item
from layers.collectors.load.records import Outcome, Phase, RequestRecord, last_attempts
from layers.layer3_sweep.model import Accuracy

NORMALISED = (
    "compatibility characters folded (NFKC), lower case, no punctuation but apostrophes, single blanks"
)
APOSTROPHES = str.maketrans("’ʼ", "''")  # noqa: RUF001  (typographic ones)
LONG_WITHOUT_BLANK = 20
"""Characters: a text that is longer and has no blank is of a script without them, such as Chinese."""


class Metric(StrEnum):
    """What accuracy is measured by."""

    WER = "wer"
    CER = "cer"
    EXACT = "exact-match"
    AUDIO = "audio-seconds-ratio"


ERROR_RATES = frozenset({Metric.WER, Metric.CER})
"""Where lower is better."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What was answered, by item, and how many items were answered in more than one way."""

    of: Mapping[str, str]
    unstable: int


def answers_of(records: Iterable[RequestRecord]) -> Answers:
    """Answers that can stand as what is expected: text, or the digest of the samples. An item that was
    answered differently each time has none."""
    found: dict[str, set[str]] = defaultdict(set)
    for record in judged(records):
        if record.ok:
            found[record.item].add(answer_of(record))
    stable = {item: next(iter(answers)) for item, answers in found.items() if len(answers) == 1}
    return Answers(stable, len(found) - len(stable))


def answer_of(record: RequestRecord) -> str:
    """What one request was answered, in a form that can be compared."""
    return record.audio.sha256 if record.audio is not None else record.text


def usual_metric(endpoint: str, items: Collection[Item], recurring: bool) -> Metric | None:
    """What accuracy is measured by where nobody said; None where nothing can be expected of the answers.

    `items` with what is expected of them; `recurring`: whether they are the same at every load, as they are.
    """
    expected = [item.expected for item in items if item.expected]
    if endpoint == "transcriptions":
        return (Metric.CER if _without_blanks(expected) else Metric.WER) if expected else None
    if endpoint == "speech":
        return Metric.EXACT if expected and recurring else Metric.AUDIO
    return Metric.EXACT if expected else None


def accuracy_of(
    metric: Metric,
    records: Iterable[RequestRecord],
    items: Mapping[str, Item],
    least: Iterable[RequestRecord] = (),
) -> Accuracy | None:
    """The accuracy of the measured requests of a pass; None where not one can be judged.

    `items` by id, of both loads; `least`: the records of the least load, to which seconds of audio are
    compared.
    """
    if metric is Metric.AUDIO:
        return _audio_ratio(judged(records), judged(least), items)
    asked = [(items[r.item].expected, r) for r in judged(records) if r.item in items]
    pairs = [(expected, r) for expected, r in asked if _says(metric, expected)]
    answered = [(expected, answer_of(r)) for expected, r in pairs if r.ok]
    if not answered:
        return None
    value = _exact(answered) if metric is Metric.EXACT else error_rate(metric, answered)
    return Accuracy(str(metric), value, len(answered), len(pairs) - len(answered))


def judged(records: Iterable[RequestRecord]) -> list[RequestRecord]:
    """The last attempts of measured requests; those that the end of the run cut off are no answers."""
    last = last_attempts([record for record in records if record.phase is Phase.MEASURED])
    return [record for record in last if record.outcome is not Outcome.UNFINISHED]


def error_rate(metric: Metric, answered: Sequence[tuple[str, str]]) -> float:
    """Errors of all answers over words (wer) or characters (cer) of all that is expected."""
    expected = [normalised(one) for one, _ in answered]
    said = [normalised(one) for _, one in answered]
    if metric is Metric.CER:
        return float(jiwer.process_characters(expected, said).cer)
    return float(jiwer.process_words(expected, said).wer)


def normalised(text: str) -> str:
    """The text as it is compared: see `NORMALISED`."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(APOSTROPHES)
    kept = (c if c == "'" or unicodedata.category(c)[0] not in "PS" else " " for c in folded)
    return " ".join("".join(kept).split())


def _says(metric: Metric, expected: str) -> bool:
    """Whether something is left of what is expected."""
    return bool(expected if metric is Metric.EXACT else normalised(expected))


def _exact(answered: Sequence[tuple[str, str]]) -> float:
    return sum(expected == said for expected, said in answered) / len(answered)


def _without_blanks(texts: Sequence[str]) -> bool:
    long = [text for text in texts if len(text) > LONG_WITHOUT_BLANK]
    return bool(long) and not any(" " in text for text in long)


def _audio_ratio(
    records: Sequence[RequestRecord], least: Sequence[RequestRecord], items: Mapping[str, Item]
) -> Accuracy | None:
    """Over the items that both loads answered; where they have none in common (fresh items for each load),
    seconds a character of text over the same at the least load."""
    here, there = audio_seconds(records), audio_seconds(least)
    both = here.keys() & there.keys()
    if both:
        ratio = sum(here[item] for item in both) / sum(there[item] for item in both)
    else:
        here_each, there_each = _a_character(here, items), _a_character(there, items)
        if here_each is None or there_each is None:
            return None
        ratio = here_each / there_each
    answered = sum(record.ok for record in records)
    return Accuracy(str(Metric.AUDIO), ratio, answered, len(records) - answered)


def audio_seconds(records: Iterable[RequestRecord]) -> dict[str, float]:
    """Mean seconds of audio of each item that was answered with some."""
    found: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if record.ok and record.audio is not None and record.audio.seconds:
            found[record.item].append(record.audio.seconds)
    return {item: sum(seconds) / len(seconds) for item, seconds in found.items()}


def _a_character(seconds: Mapping[str, float], items: Mapping[str, Item]) -> float | None:
    known = [item for item in seconds if item in items and items[item].text]
    characters = sum(len(items[item].text) for item in known)
    return sum(seconds[item] for item in known) / characters if characters else None
