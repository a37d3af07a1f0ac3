"""Outputs that somebody recorded, to be compared: JSON lines, sound, arrays and plain text.

    *.jsonl, *.json   one object a sample: `id`; one or more of `text`, `tokens` (a list of ids), `codes`
                      (rows of ids), `audio` (a WAV file) and `array` (an .npy file), both named from the
                      file's folder; and where known `cell`, `repeat`, `finish_reason`, `error`, `expected`,
                      `completion_tokens`
    NAME.wav, NAME.npy, NAME.txt   one sample each, called NAME

Some load tools' names are understood as well (ALIASES). A sample that cannot be read is lost and told: what
remains is never taken for the whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.output_model import Kind, Output, OutputFile, Payload, text_payload
from parsers.regular_file import read_regular
from parsers.result_fields import Fields
from parsers.result_text import read_objects, read_result_text
from parsers.wav import read_wav_head, samples_of

ALIASES = {
    "id": ("id", "item", "sample_id", "request_id"),
    "text": ("text", "output", "answer", "generated_text", "whisper_text", "hyp_text"),
    "tokens": ("tokens", "token_ids", "output_ids"),
    "expected": ("expected", "reference", "target_text", "ref_text"),
}
"""Names of one field in the order in which they are looked for: perfkit's own, then those of SGLang-Omni,
vLLM and SGLang."""
LISTS = ("samples", "per_sample", "outputs", "results")
"""Where one JSON document holds its samples."""
LINES = (".jsonl", ".json")


def read_recorded(path: str) -> OutputFile:
    """The samples of one file; UnreadableInput where it is none of the formats or holds not one sample."""
    suffix = Path(path).suffix.lower()
    if suffix in LINES or suffix not in SINGLE:
        return _read_lines(path)
    data = _bytes_of(Path(path))
    payload = SINGLE[suffix](data, path)
    digest = hashlib.sha256(data).hexdigest()
    return OutputFile(path, digest, len(data), (Output(Path(path).stem, payloads=(payload,)),))


def output_of(values: Mapping[str, Any], folder: Path) -> Output:
    """One sample out of one object; UnreadableInput where it is none. Files that it names lie in `folder`."""
    item = _first(values, "id")
    if item is None or isinstance(item, dict | list):
        raise UnreadableInput("a sample without an id: both arms must name their items alike")
    error, tokens = values.get("error"), values.get("completion_tokens")
    return Output(
        item=str(item),
        cell=str(values.get("cell") or ""),
        repeat=_whole(values.get("repeat") or 0, "repeat"),
        payloads=tuple(_payloads(values, folder)),
        finish_reason=str(values.get("finish_reason") or ""),
        error=str(error) if error else "",
        expected=str(_first(values, "expected") or ""),
        tokens=None if tokens is None else _whole(tokens, "completion_tokens"),
    )


def wav_payload(data: bytes, path: str) -> Payload:
    """The samples of a WAV file as raw bytes."""
    head = read_wav_head(data)
    if head is None:
        raise UnreadableInput(f"{path}: this is no WAV file of plain samples")
    samples = samples_of(data, head)
    if head.data_bytes is not None and len(samples) < head.data_bytes:
        there = f"{len(samples):,} of {head.data_bytes:,} bytes of sound"
        raise UnreadableInput(f"{path}: {there} are there: it was cut off")
    return pcm_payload(samples, head.dtype, head.channels, head.sample_rate_hz)


def pcm_payload(samples: bytes, dtype: str, channels: int, rate_hz: int | None) -> Payload:
    """Samples as they came; a last frame that is not whole counts, since it is a difference too."""
    frame = channels * int(dtype[-1])
    return Payload(Kind.PCM, samples, dtype, (-(-len(samples) // frame), channels), rate_hz)


def _read_lines(path: str) -> OutputFile:
    read = read_result_text(path)
    found = list(_samples(read_objects(read), Path(path).parent))
    if not found:
        lost = [loss.what for loss in read.tally.losses()]
        why = lost[0] if lost else "write one JSON object a sample"
        raise UnreadableInput(f"{path}: no sample in it: {why}")
    return OutputFile(path, read.sha256, read.size_bytes, tuple(found), read.tally.losses())


def _samples(objects: list[Fields], folder: Path) -> Iterator[Output]:
    for one in objects:
        listed = next((name for name in LISTS if isinstance(one.values.get(name), list)), None)
        for sample in one.parts(listed) if listed else [one]:
            try:
                yield output_of(sample.values, folder)
            except UnreadableInput as error:
                sample.told(str(error))


def _payloads(values: Mapping[str, Any], folder: Path) -> Iterator[Payload]:
    if isinstance(text := _first(values, "text"), str):
        yield text_payload(text)
    if (tokens := _first(values, "tokens")) is not None:
        yield ids_payload(Kind.TOKENS, tokens)
    if (codes := values.get("codes")) is not None:
        yield ids_payload(Kind.CODES, codes)
    for name in ("audio", "array"):
        if isinstance(file := values.get(name), str):
            path = folder / file
            read = SINGLE.get(path.suffix.lower(), wav_payload)
            yield read(_bytes_of(path), str(path))


def ids_payload(kind: Kind, values: Any) -> Payload:
    """Lists of whole numbers as int64, whatever their depth."""
    try:
        found = np.array(values if values != [] else np.empty(0, np.int64))
    except ValueError:  # rows of different lengths
        raise UnreadableInput(f"`{kind}` has rows of different lengths") from None
    if found.dtype.kind != "i":
        raise UnreadableInput(f"`{kind}` is no list of whole numbers")
    return Payload(kind, found.astype("<i8").tobytes(), "<i8", found.shape)


NO_ARRAY = (
    *(ValueError, EOFError, OSError, MemoryError, OverflowError, RecursionError, SyntaxError, TypeError),
    TokenError,
)
"""What numpy raises for a head that is damaged, or that promises more than there is."""


def _array(data: bytes, path: str) -> Payload:
    """An .npy file; objects in it are never unpickled, and an archive of arrays is none."""
    if not data.startswith(np.lib.format.MAGIC_PREFIX):
        raise UnreadableInput(f"{path}: no array that can be read: it is no .npy file")
    try:
        found = np.load(BytesIO(data), allow_pickle=False)
    except NO_ARRAY as error:
        raise UnreadableInput(f"{path}: no array that can be read: {error}") from error
    if found.dtype.names is not None:
        raise UnreadableInput(
            f"{path}: an array of records: save each of their fields as an array of its own"
        )
    return Payload(Kind.ARRAY, np.ascontiguousarray(found).tobytes(), found.dtype.str, found.shape)


def _text(data: bytes, path: str) -> Payload:
    return Payload(Kind.TEXT, data, "utf-8", (len(data),))


SINGLE: dict[str, Callable[[bytes, str], Payload]] = {".wav": wav_payload, ".npy": _array, ".txt": _text}
"""Files that are one sample, by their suffix."""


def _bytes_of(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}: check the path and its permissions") from error


def _first(values: Mapping[str, Any], name: str) -> Any:
    return next((values[alias] for alias in ALIASES[name] if values.get(alias) is not None), None)


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UnreadableInput(f"`{name}` is no whole number from 0 on")
    return value


def lost_records(losses: tuple[Loss, ...]) -> int:
    """How many samples are known to be missing of a file; a file that ends early counts for one at least."""
    return sum(max(loss.lost_events, int(loss.rest_is_missing)) for loss in losses)
