"""A server's metrics page as plain numbers: each sample under its name and labels as the page writes them.

A page is read twice a second beside a load, so this splits lines and does no more: names are not checked,
labels stay text until somebody asks for them. Buckets of histograms and times of creation are left out
unless they are asked for: means come from `_sum` and `_count`. Format: Prometheus text exposition 0.0.4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
BUCKET, CREATED = "_bucket", "_created"
ESCAPES = {r"\n": "\n", r"\"": '"', r"\\": "\\"}
ESCAPE = re.compile(r'\\[n"\\]')


@dataclass(frozen=True, slots=True)
class Page:
    """`values`: finite samples by name and labels; `bad`: lines that are no sample."""

    values: dict[str, float]
    bad: int


def read_page(text: str, *, whole: bool = False) -> Page:
    """All samples of a page; a line that is none costs itself alone."""
    left_out = () if whole else (CREATED, BUCKET)
    values: dict[str, float] = {}
    bad = 0
    for line in _samples(text):
        key, number = _split(line)
        try:
            value = float(number)
        except ValueError:
            bad += 1
            continue
        if math.isfinite(value) and not name_of(key).endswith(left_out):
            values[key] = value
    return Page(values, bad)


def name_of(key: str) -> str:
    """The metric's name of a sample's key."""
    return key.partition("{")[0]


def labels_of(key: str) -> dict[str, str]:
    """The labels of a sample's key."""
    found = LABEL.findall(key.partition("{")[2])
    return {name: ESCAPE.sub(lambda escape: ESCAPES[escape[0]], value) for name, value in found}


def _samples(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            yield stripped


def _split(line: str) -> tuple[str, str]:
    """Key and value; a time may follow. A label's value may hold any character."""
    if "{" in line:
        head, _, rest = line.rpartition("}")
        key = f"{head}}}"
    else:
        key, _, rest = line.partition(" ")
    fields = rest.split()
    return key, fields[0] if 1 <= len(fields) <= 2 and name_of(key) else ""
