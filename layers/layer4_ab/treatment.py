"""Did the switched path run? Counted in what the servers left: lines of their logs, growth of their counters.

A switch that was set and never engaged makes an A/A of an A/B, and its verdict is about nothing. The path ran
where one arm has it and the other has none of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from layers.layer4_ab.model import Count, Recorded
from parsers.errors import UsageError
from parsers.loss_tally import LossTally
from parsers.text_lines import TextLines

LOGS, COUNTERS = "lines of the servers' logs", "growth of the servers' counters"


def counts(
    patterns: Sequence[str], a: Recorded, b: Recorded, logs_a: Sequence[str], logs_b: Sequence[str]
) -> tuple[Count, ...]:
    """How often each pattern was seen in each arm: by counters where one has it in its name, else in logs.

    UsageError for a pattern that is none, or with nothing to look at; UnreadableInput for a log that cannot
    be read.
    """
    return tuple(_count(pattern, a, b, logs_a, logs_b) for pattern in patterns)


def ran(found: Sequence[Count]) -> bool | None:
    """Whether one arm alone went the way; None where nothing was counted."""
    return all((one.a > 0) != (one.b > 0) for one in found) if found else None


def _count(pattern: str, a: Recorded, b: Recorded, logs_a: Sequence[str], logs_b: Sequence[str]) -> Count:
    grown = [_grown(pattern, arm) for arm in (a, b)]
    if None not in grown:
        return Count(pattern, grown[0] or 0.0, grown[1] or 0.0, COUNTERS)
    if not logs_a or not logs_b:
        raise UsageError(f"{pattern}: no counter of both arms has it; give logs of both (--log-a, --log-b)")
    in_logs = [sum(_lines(pattern, path) for path in logs) for logs in (logs_a, logs_b)]
    return Count(pattern, in_logs[0], in_logs[1], LOGS)


def _grown(pattern: str, arm: Recorded) -> float | None:
    """Of all samples with the text in their name; None where there is none."""
    found = [by for name, by in arm.counters.items() if pattern in name]
    return sum(found) if found else None


def _lines(pattern: str, path: str) -> int:
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{pattern}: this is no regular expression: {error}") from error
    lines = TextLines(path, LossTally())
    try:
        return sum(wanted.search(line) is not None for line in lines)
    finally:
        lines.close()
