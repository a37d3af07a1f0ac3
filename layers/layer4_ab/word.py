"""The words of an A/B."""

from __future__ import annotations

from enum import StrEnum


class Word(StrEnum):
    """What an A/B says of its variable."""

    IMPROVEMENT = "improvement"
    REGRESSION = "regression"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
