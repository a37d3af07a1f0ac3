"""Which items a cache of prefixes or of contents takes for the same, wholly or at their beginning."""

from __future__ import annotations

from collections.abc import Iterable

from layers.collectors.load.item import Item

BEGINNING_CHARACTERS = 64
"""The smallest block that vLLM's prefix cache keeps is 16 tokens, and a token of English is 4 characters.
SGLang's keeps single tokens: a shared word or two is too little to tell."""


def beginning(item: Item) -> str:
    """What makes two items share a cache entry: the same audio file, or the same first characters."""
    if item.audio:
        return f"audio {item.audio}"
    text = "\n".join(f"{message.role} {message.content}" for message in item.messages) or item.text
    return text[:BEGINNING_CHARACTERS]


def shared(measured: Iterable[Item], warmup: Iterable[Item]) -> int:
    """How many measured items begin as one of the warm-up does."""
    known = {beginning(item) for item in warmup}
    return sum(beginning(item) in known for item in measured)
