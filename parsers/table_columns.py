"""What the columns of a table of a sweep mean, told by their names as people write them.

"current lat mean/p95 (s)" is the mean and the p95 of the latency of the arm "current", in seconds. A unit in
the cell ("0.083 s") goes before that of the column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from parsers.reported import MEDIAN, MS_PER_S, quantile_of
from parsers.result_fields import LARGEST
from parsers.sampled_cells import is_plain

MAX_CELL_CHARACTERS = 200


class Kind(StrEnum):
    """What a column holds."""

    CONCURRENCY = "concurrency"
    THROUGHPUT = "throughput"
    E2E = "e2e"
    TTFT = "ttft"
    FIRST_AUDIO = "first_audio"
    TPOT = "tpot"
    AUDIO_RATE = "rtfx"
    WER = "wer"
    CER = "cer"
    COMPLETED = "completed"
    SHED = "shed"
    FAILED = "failed"
    REPEAT = "repeat"
    STAGE = "stage"
    OTHER = "other"


PATTERNS = (
    (Kind.CONCURRENCY, r"conc|concurrency|max concurrency|c|n|in flight"),
    (Kind.REPEAT, r"repeat|rep|round"),
    (Kind.THROUGHPUT, r"req/s|qps|rps|requests?/s(ec)?|(request )?throughput( rps| req/s)?"),
    (Kind.AUDIO_RATE, r"rtfx|audio throughput"),
    (Kind.WER, r"(corpus )?wer"),
    (Kind.CER, r"(corpus )?cer"),
    (Kind.COMPLETED, r"completed|ok|succe(ss|eded)|completed requests"),
    (Kind.SHED, r"shed|dropped|rejected"),
    (Kind.FAILED, r"failed|errors?"),
    (Kind.TTFT, r"ttft"),
    (Kind.FIRST_AUDIO, r"ttfp|ttfa|first audio"),
    (Kind.TPOT, r"tpot"),
    (Kind.E2E, r"lat|latency|e2e|e2e latency|request latency"),
)
TIMES = frozenset({Kind.E2E, Kind.TTFT, Kind.FIRST_AUDIO, Kind.TPOT, Kind.STAGE})
STATISTIC = re.compile(r"\b(mean|avg|median|p\d{2}(?:\.\d)?)\b")
UNIT = re.compile(r"[(\[](ms|s|sec|us|µs)[)\]]|_(ms|s)$")
NUMBER = re.compile(r"\s*([-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d{1,3})?)\s*([%\u00d7A-Za-zµ/]*)\s*")
TO_MS = {"ms": 1.0, "s": MS_PER_S, "sec": MS_PER_S, "us": 1e-3, "µs": 1e-3}
AT_CONCURRENCY = re.compile(r"(?:(?P<word>[a-z ]+?) at )?c ?= ?(?P<n>\d{1,6})")
"""A column a load: "c=8", "shed at c=64"."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """One column. `statistics`: "mean" or a quantile's share, one a value of a cell; `concurrency` is that of
    a column of its own load."""

    kind: Kind
    title: str
    arm: str = ""
    statistics: tuple[float | str, ...] = ("mean",)
    unit: str = ""
    concurrency: int | None = None


def meaning_of(title: str) -> Meaning:
    """What a column of this title holds; OTHER where the title tells nothing."""
    plain = " ".join(title[:MAX_CELL_CHARACTERS].replace("_", " ").split()).lower()
    if at_load := AT_CONCURRENCY.fullmatch(plain):
        kind = _kind(at_load["word"]) if at_load["word"] else Kind.THROUGHPUT
        return Meaning(kind, title, concurrency=int(at_load["n"]))
    unit = UNIT.search(title.lower())
    named = UNIT.sub("", title.lower()).replace("_", " ")
    statistics = tuple(_statistic(word) for word in STATISTIC.findall(named)) or ("mean",)
    words = STATISTIC.sub(" ", named).replace(" / ", " ").strip(" /").split()
    kind, arm = _kind_and_arm(words)
    return Meaning(kind, title, arm, statistics, (unit[1] or unit[2]) if unit else "")


def _kind_and_arm(words: list[str]) -> tuple[Kind, str]:
    """The kind of all words, else of all but the first or the last one, which then names the arm."""
    splits = ((words, ""), (words[1:], words[:1]), (words[:-1], words[-1:]))
    for rest, arm in splits:
        kind = _kind(" ".join(rest))
        if rest and kind is not Kind.OTHER and not (arm and kind is Kind.CONCURRENCY):
            return kind, "".join(arm)
    return Kind.OTHER, ""


def _kind(words: str) -> Kind:
    return next((kind for kind, pattern in PATTERNS if re.fullmatch(pattern, words)), Kind.OTHER)


def _statistic(word: str) -> float | str:
    if word in ("mean", "avg"):
        return "mean"
    return MEDIAN if word == "median" else quantile_of(word) or "mean"


def number_in(cell: str) -> tuple[float, str] | None:
    """(number, unit in lower case) of a cell such as "0.088 s", "2.31x" or "1.75%"; None where it is none."""
    found = NUMBER.fullmatch(cell) if len(cell) <= MAX_CELL_CHARACTERS else None
    if found is None or not is_plain(found[1]):
        return None
    value = float(found[1].replace(",", ""))
    return (value, found[2].lower()) if abs(value) <= LARGEST else None


def milliseconds_in(cell: str, unit: str) -> list[float] | None:
    """The times of a cell such as "0.083 / 0.102 s", in milliseconds; None where it holds none.

    `unit` is that of the column; without any, seconds are what tables of this kind print.
    """
    read = [number_in(part) for part in cell[:MAX_CELL_CHARACTERS].split("/")]
    if not all(read):
        return None
    told = next((found[1] for found in reversed(read) if found and found[1] in TO_MS), unit or "s")
    return [found[0] * TO_MS[told] for found in read if found and found[0] >= 0]


def has_time_unit(cell: str) -> bool:
    """Whether a cell is a time by its own unit."""
    found = number_in(cell)
    return found is not None and found[1] in TO_MS
