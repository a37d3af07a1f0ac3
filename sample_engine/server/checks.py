"""What a request's numbers and texts may be; what is not so is the client's fault (400)."""

from __future__ import annotations

from sample_engine.server.problems import Problem

MAX_TEXT_CHARACTERS = 4096
"""Of a text to speak, in OpenAI's API."""
MAX_TEMPERATURE = 2.0
"""As in OpenAI's API."""
SEEDS = 1 << 62
"""What a signed 64-bit word holds, with a bit to spare for arithmetic on it."""


def checked_text(text: str) -> str:
    if len(text) > MAX_TEXT_CHARACTERS:
        raise Problem(400, f"the text has {len(text)} characters, at most {MAX_TEXT_CHARACTERS} are taken")
    if not text.strip():
        raise Problem(400, "the text is empty")
    return text


def checked_temperature(value: float) -> float:
    if not 0 <= value <= MAX_TEMPERATURE:
        raise Problem(400, f"temperature is 0 to {MAX_TEMPERATURE:g}, not {value}")
    return value


def checked_seed(value: int) -> int:
    if not 0 <= value < SEEDS:
        raise Problem(400, f"seed is 0 to {SEEDS - 1}, not {value}")
    return value
