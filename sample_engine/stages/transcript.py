"""Text ids to text: an id is a syllable, and some ids begin a word."""

from __future__ import annotations

from sample_engine.stages.preprocess import syllable_of

IDS_A_WORD = 3
"""One of so many ids begins a word."""


def piece_of(text_id: int, *, first: bool) -> str:
    """What an id adds to the transcript; the end id adds nothing."""
    syllable = syllable_of(text_id)
    begins = bool(syllable) and not first and text_id % IDS_A_WORD == 0
    return f" {syllable}" if begins else syllable
