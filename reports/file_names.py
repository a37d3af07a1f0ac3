"""Several files in one short name, so that a heading says which they are."""

from __future__ import annotations

from collections.abc import Sequence

from layers.evidence.wording import counted
from layers.layer1_gpu_busy.scopes import short_paths

NAMED = 2
"""Files that are named before the rest is counted."""


def files_name(paths: Sequence[str], noun: str = "file") -> str:
    """`a.json`, `a.json and b.json`, or `worker0.json to worker7.json (8 traces)`."""
    names = sorted(short_paths(list(dict.fromkeys(paths))).values())
    if len(names) <= NAMED:
        return " and ".join(names) or f"no {noun}"
    return f"{names[0]} to {names[-1]} ({counted(len(names), noun)})"
