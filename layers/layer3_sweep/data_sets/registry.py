"""Data sets by what is written on a command line.

    text                     made-up text            audio                    made-up sound
    text:short-heavy         of that distribution    audio:uniform,seconds=1-30
    text:uniform,words=50-500,tokens=16-256          a range of lengths; tokens asked for
    jsonl:FILE               items of a file         sharegpt:FILE            recorded chats
    FILE.jsonl, FILE.json    the same two

Behind a comma, for all: `items=N`, `warmup=N`, `seed=N`; `same` or `fresh` (items at each point and repeat),
`nonce` or `plain` (a mark of its own in every request, or none). Text is fresh and plain unless told
otherwise, audio is the same and marked, files are the same and plain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from layers.collectors.load.item import DataSet
from layers.layer3_sweep.data_sets.jsonl import jsonl_set
from layers.layer3_sweep.data_sets.lengths import Lengths, Shape
from layers.layer3_sweep.data_sets.options import Options
from layers.layer3_sweep.data_sets.sharegpt import sharegpt_set
from layers.layer3_sweep.data_sets.synthetic_audio import SECONDS_OF_CLIPS, SyntheticAudio
from layers.layer3_sweep.data_sets.synthetic_text import WORDS_OF_PROMPTS, SyntheticText
from parsers.errors import UsageError

SUFFIXES = {".jsonl": "jsonl", ".json": "sharegpt"}
NUMBERS = ("items", "warmup", "seed")
FLAGS = {
    "same": ("fresh", False),
    "fresh": ("fresh", True),
    "nonce": ("nonce", True),
    "plain": ("nonce", False),
}
AUDIO_ITEMS = 32
"""Files: 5 MB at the default lengths."""


class Asked(NamedTuple):
    """A data set as it was asked for: what stands behind the colon, numbers, ranges and flags by name, the
    options that come of them, and a folder for files that must be made."""

    what: str
    named: Mapping[str, str]
    options: Options
    folder: Path


def data_set(spec: str, folder: Path, seed: int = 0) -> DataSet:
    """The data set that is asked for; files that it makes go to `folder`.

    UsageError where the words are not understood, UnreadableInput where a file is not what it should be.
    """
    kind, what, words = _divided(spec)
    if kind not in KINDS:
        raise UsageError(f"data set {spec}: there are {', '.join(KINDS)}; or give a .jsonl or .json file")
    make, allowed, options = KINDS[kind]
    named = dict(word.partition("=")[::2] for word in words)
    if unknown := [word for word in named if word not in {*FLAGS, *NUMBERS, *allowed}]:
        known = ", ".join((*NUMBERS, *allowed, *FLAGS))
        raise UsageError(f"data set {spec}: `{unknown[0]}` is none of {known}")
    chosen: dict[str, Any] = {"seed": seed, **options}
    chosen |= {name: _whole(spec, name, named[name]) for name in NUMBERS if name in named}
    chosen |= dict(FLAGS[word] for word in named if word in FLAGS)
    return make(Asked(what, named, Options(**chosen), folder))


def _divided(spec: str) -> tuple[str, str, list[str]]:
    """Kind, what stands behind its colon, and the words behind commas."""
    first, *words = spec.split(",")
    kind, colon, what = first.partition(":")
    if not colon and Path(first).suffix in SUFFIXES:
        return SUFFIXES[Path(first).suffix], first, words
    return kind, what, words


def _whole(spec: str, name: str, text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"data set {spec}: {name}={text} is no whole number")
    return int(text)


def _lengths(shape: str, text: str | None, usual: Lengths) -> Lengths:
    """Lengths of that shape, from LOW-HIGH or the usual ones."""
    if shape and shape not in set(Shape):
        raise UsageError(f"a distribution {shape}: there are {', '.join(Shape)}")
    chosen = Shape(shape) if shape else usual.shape
    if text is None:
        return Lengths(chosen, usual.low, usual.high)
    try:
        low, _, high = text.partition("-")
        return Lengths(chosen, float(low), float(high or low))
    except ValueError:
        raise UsageError(f"lengths {text}: give two numbers, as 10-200") from None


def _text(asked: Asked) -> DataSet:
    tokens = asked.named.get("tokens")
    outputs = _lengths(asked.what, tokens, WORDS_OF_PROMPTS) if tokens is not None else None
    lengths = _lengths(asked.what, asked.named.get("words"), WORDS_OF_PROMPTS)
    return SyntheticText(asked.options, lengths, outputs)


def _audio(asked: Asked) -> DataSet:
    lengths = _lengths(asked.what, asked.named.get("seconds"), SECONDS_OF_CLIPS)
    return SyntheticAudio(asked.options, asked.folder, lengths)


def _jsonl(asked: Asked) -> DataSet:
    return jsonl_set(Path(asked.what), asked.options)


def _sharegpt(asked: Asked) -> DataSet:
    return sharegpt_set(Path(asked.what), asked.options)


class Kind(NamedTuple):
    """How a data set is made, the ranges that it takes, and how its options differ from the usual."""

    make: Callable[[Asked], DataSet]
    ranges: tuple[str, ...] = ()
    options: Mapping[str, int] = {}


KINDS = {
    "text": Kind(_text, ("words", "tokens"), {"items": 256}),
    "audio": Kind(_audio, ("seconds",), {"items": AUDIO_ITEMS, "fresh": False, "nonce": True}),
    "jsonl": Kind(_jsonl, (), {"items": 1024}),
    "sharegpt": Kind(_sharegpt, (), {"items": 1024}),
}
