"""The story of an A/B, as it is printed: seven parts in their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layers.layer4_ab.story import NO_HYPOTHESIS, NO_SYMPTOM
from perfkit.cli import output

STORY_PARTS = ("symptom", "hypothesis", "tool", "evidence", "change", "effect", "cost")


def is_known(story: Mapping[str, Any]) -> bool:
    """Whether anything is known of it beside what the A/B itself prints."""
    return (story["symptom"], story["hypothesis"]) != (NO_SYMPTOM, NO_HYPOTHESIS)


def show_story(story: Mapping[str, Any]) -> None:
    """The seven parts in their order."""
    for part in STORY_PARTS:
        output.paragraph(part, story[part])
