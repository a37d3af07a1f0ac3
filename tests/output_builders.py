"""Outputs of two arms, built in code, and files of them."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from layers.evidence.guard import Checked
from layers.evidence.result import Result
from layers.layer5_regression.analyse import analyse
from layers.layer5_regression.judge import judge
from layers.layer5_regression.model import Arm, Options, Recorded
from parsers.output_model import Output, text_payload
from parsers.recorded_outputs import pcm_payload

RATE_HZ = 24_000
DEFAULT = Options()


def said(number: int, text: str | None = None, **more: Any) -> Output:
    """One text; by its number where none is given."""
    words = text if text is not None else f"answer number {number} of the model"
    return Output(f"i{number}", payloads=(text_payload(words),), finish_reason="stop", **more)


def texts(n: int = 40, changed: Mapping[int, str] | None = None, **more: Any) -> list[Output]:
    """So many answers, some of them changed."""
    changes = changed or {}
    return [said(number, changes.get(number), **more) for number in range(n)]


def sound(number: int, samples: Sequence[float] | None = None) -> Output:
    """One sound of 16 bit samples; noise by its number where none are given."""
    made = np.random.default_rng(number).integers(-9000, 9000, 2400) if samples is None else samples
    data = np.asarray(made, "<i2").tobytes()
    return Output(f"i{number}", payloads=(pcm_payload(data, "<i2", 1, RATE_HZ),))


def sounds(n: int = 40, changed: Mapping[int, Sequence[float]] | None = None) -> list[Output]:
    changes = changed or {}
    return [sound(number, changes.get(number)) for number in range(n)]


def samples_of(output: Output) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    """A copy of the samples of a sound."""
    return np.frombuffer(output.payloads[0].data, "<i2").copy()


def arm(name: str, outputs: Sequence[Output], **more: Any) -> Arm:
    return Arm(name, tuple(outputs), (), **more)


def compared(
    a: Sequence[Output],
    b: Sequence[Output],
    aa: Sequence[Output] | None = None,
    options: Options = DEFAULT,
    recorded: Mapping[str, Recorded] | None = None,
) -> Result:
    """The result for these arms; `recorded` by the name of an arm."""
    known = recorded or {}
    arms = [arm(name, given, recorded=known.get(name)) for name, given in (("A", a), ("B", b))]
    again = arm("A'", aa, recorded=known.get("A'")) if aa is not None else None
    return judge(analyse(arms[0], arms[1], again, options))


def guard(result: Result, code: str) -> Checked:
    """What one guard said."""
    return next(g for g in result.guards if g.code == code)


def lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def rows(n: int = 40, changed: Mapping[int, str] | None = None, **more: Any) -> list[dict[str, Any]]:
    """Lines of answers, some of them changed."""
    changes = changed or {}
    return [
        {"id": f"i{number}", "text": changes.get(number, f"answer number {number} of the model"), **more}
        for number in range(n)
    ]


def wav(
    samples: bytes, *, bits: int = 16, rate_hz: int = RATE_HZ, kind: int = 1, told: int | None = None
) -> bytes:
    """A mono WAV file; `told` is what its header says of its length."""
    size = len(samples) if told is None else told
    form = struct.pack("<HHIIHH", kind, 1, rate_hz, rate_hz * bits // 8, bits // 8, bits)
    head = b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<I", 16) + form
    return head + b"data" + struct.pack("<I", size) + samples
