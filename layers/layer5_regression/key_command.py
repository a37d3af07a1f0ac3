"""Asks a key function that runs as a program of its own: rows in, keys out, a line of JSON each.

    its first line   {"channels": 13, "values": 1024, "range": 151643, "reserved": [151645]}
    perfkit writes   {"row": [5, 17, ...]}   a line for each row, then closes its stdin
    it answers       {"key": 4711}           a line for each row, in that order

So any engine's can be checked, in its own environment and on its own device. It is asked twice, in two
processes with other hash seeds and another order of rows. Nothing of it outlives the question: it is stopped
with all that it started where it takes too long or says too much.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence

import msgspec
import numpy as np

from layers.collectors.bounded import NotStarted, ProbeFailed, output_of
from layers.layer5_regression.key_checks import Keys
from layers.layer5_regression.key_rows import SEED, KeySpec, Rows
from parsers.errors import InvalidMeasurement, UsageError
from parsers.not_json import NOT_JSON
from parsers.trace_model import I64

TIMEOUT_S = 600.0
"""For a model's environment to start, and for all rows."""
LAST_WORDS = 300
"""Characters of what a program that failed said last."""
NOBODY = np.empty((0, 1), np.int64)


class Answered(msgspec.Struct):
    key: int


def ask_spec(command: str) -> KeySpec:
    """What the function says of itself; InvalidMeasurement where it says something else."""
    head, _ = _run(command, NOBODY, "0")
    return head


def ask_keys(command: str, rows: Rows) -> Keys:
    """The keys of all rows, twice; InvalidMeasurement where the program does not answer as it should."""
    every = rows.all
    order = np.random.default_rng(SEED).permutation(len(every))
    _, first = _run(command, every, "0")
    _, shuffled = _run(command, every[order], "1")
    again = np.empty_like(shuffled)
    again[order] = shuffled
    return Keys(first, again)


def _run(command: str, rows: I64, hash_seed: str) -> tuple[KeySpec, I64]:
    words = _words(command)
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    with tempfile.TemporaryFile() as asked:
        asked.writelines(msgspec.json.encode({"row": row}) + b"\n" for row in rows.tolist())
        asked.seek(0)
        try:
            said = output_of(words, TIMEOUT_S, environment=environment, stdin=asked, starts_others=True)
        except NotStarted as error:
            raise UsageError(f"--key-layer {command}: {error}") from error
        except ProbeFailed as error:
            raise InvalidMeasurement(f"--key-layer {command}: {_last(str(error))}") from error
    return _read(command, said.splitlines(), len(rows))


def _last(text: str) -> str:
    """Of what went wrong the end, in one line."""
    return " ".join(text.split())[-LAST_WORDS:]


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--key-layer {command}: {error}") from error
    if not words:
        raise UsageError("--key-layer: the command is empty")
    return words


def _read(command: str, lines: Sequence[bytes], n: int) -> tuple[KeySpec, I64]:
    if not lines:
        raise InvalidMeasurement(f"--key-layer {command}: it said nothing")
    if len(lines) - 1 != n:
        raise InvalidMeasurement(f"--key-layer {command}: {len(lines) - 1:,} keys for {n:,} rows")
    try:
        head = msgspec.json.decode(lines[0], type=KeySpec)
        keys = [msgspec.json.decode(line, type=Answered).key for line in lines[1:]]
        return head, np.array(keys, np.int64)
    except (*NOT_JSON, OverflowError) as error:
        raise InvalidMeasurement(f"--key-layer {command}: no line of this protocol: {error}") from error
