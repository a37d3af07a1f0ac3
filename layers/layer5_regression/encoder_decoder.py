"""Is a model an encoder-decoder one? By what its config says of its structure, never by a list of names.

A decoder that attends to an encoder's states has them for each request, which batches and caches can mix up;
a model that only embeds sound or images into its prompt has not. So what counts is a decoder that is one part
of two, or cross attention.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from parsers.errors import UnreadableInput
from parsers.not_json import NOT_JSON
from parsers.regular_file import read_regular

CONFIG = "config.json"
FLAGS = ("is_encoder_decoder", "add_cross_attention", "cross_attention", "use_cross_attention")
"""Names by which configs say it of themselves (transformers)."""
LAYERS = (("encoder_layers", "decoder_layers"), ("num_encoder_layers", "num_decoder_layers"))
"""Counts of both parts (BART, Whisper, NLLB; Marian, SpeechT5)."""
T5 = ("num_layers", "num_decoder_layers")
DECODER_START = "decoder_start_token_id"
PARTS = ("encoder", "decoder")
"""Configs of both parts (EncoderDecoderModel, VisionEncoderDecoder)."""
DEEP = 4
"""Levels of parts within parts that are looked into."""


def read_config(path: Path) -> Mapping[str, Any]:
    """A model's config, from its file or the folder of the model."""
    file = path / CONFIG if path.is_dir() else path
    try:
        return msgspec.json.decode(read_regular(file), type=dict[str, Any])
    except OSError as error:
        raise UnreadableInput(f"{file}: {error.strerror}: give a model's config.json") from error
    except NOT_JSON as error:
        raise UnreadableInput(f"{file}: no config of a model: {error}") from error


def evidence_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """What makes the model an encoder-decoder one; empty where nothing does."""
    return tuple(dict.fromkeys(_evidence(config, "", DEEP)))


def _evidence(config: Mapping[str, Any], place: str, deep: int) -> Iterator[str]:
    yield from (f"{place}{name} is true" for name in FLAGS if config.get(name) is True)
    for pair in (*LAYERS, T5):
        if all(_is_count(config.get(name)) for name in pair):
            yield f"{place}{pair[0]} and {pair[1]}"
    if _is_count(config.get(DECODER_START)) and config.get("is_encoder_decoder") is not False:
        yield f"{place}{DECODER_START}"
    if all(isinstance(config.get(name), Mapping) for name in PARTS):
        yield f"{place}configs of an encoder and a decoder"
    if deep:
        for name, part in config.items():
            if isinstance(part, Mapping):
                yield from _evidence(part, f"{place}{name}.", deep - 1)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
