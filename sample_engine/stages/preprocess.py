"""From a text to what the tts decoder starts from, and from its text ids back to something readable.

There is no tokenizer: a word is an id by its hash, an id a syllable. The number of steps is a function of the
text, since random weights would never end by themselves.
"""

from __future__ import annotations

from zlib import crc32

from sample_engine.models.sizes import DecoderSize
from sample_engine.primitives.radix import host_key
from sample_engine.scheduling.request import Request
from sample_engine.stages.payloads import EOS_ID, Prompt

FRAMES_A_WORD = 5
"""0.4 s at 12.5 frames a second: an ordinary rate of speech."""
CONSONANTS, VOWELS = "bdfgklmnprstvwyz", "aeiouáéíóúàèìòùâ"


class TooLong(ValueError):
    """The input does not fit into the decoder's positions; says what would."""


def prompt_of(request: Request, size: DecoderSize) -> Prompt:
    """Words to ids and steps; raises TooLong, and ValueError for a text without words."""
    words = request.text.split()
    if not words:
        raise ValueError("the input has no words")
    steps = request.max_steps or FRAMES_A_WORD * len(words)
    room = size.positions + 1
    if len(words) + steps > room:
        most = room // (FRAMES_A_WORD + 1)
        raise TooLong(f"{len(words)} words and {steps} steps are more than {room}; {most} words always fit")
    ids = tuple(crc32(word.encode()) % size.text_ids for word in words)
    return Prompt(
        text_ids=ids,
        keys=tuple(host_key((one,), EOS_ID) for one in ids),
        steps=steps,
        temperature=request.temperature,
        seed=request.seed,
    )


def syllable_of(text_id: int) -> str:
    """A text id as text; the end id is nothing."""
    if text_id == EOS_ID:
        return ""
    rest, consonant = divmod(text_id, len(CONSONANTS))
    return CONSONANTS[consonant] + VOWELS[rest % len(VOWELS)]
