"""Recorded results as rounds of one arm: files of other load tools, and folders of perfkit's own sweeps.

A round that a guard of Layer 3 voids, or that met others on its machine, is there and says why it does not
count. `where` picks rounds by what they were made with (`revision=base`), for files that hold both arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from layers.collectors.named_files import files_directly_in, find_files
from layers.evidence.wording import first_few
from layers.layer3_sweep.sweep_folder import PLAN
from layers.layer4_ab.collect_imported import imported_rounds
from layers.layer4_ab.collect_sweep import sweep_rounds
from layers.layer4_ab.model import Arm, Recorded, Round, StartsAre
from parsers.errors import UsageError

ARM_FACT = "arm"
"""By which name `where` asks for the arm of a file or sweep that has two (`arm=control`)."""
SHOWN = 8
"""Values that are offered where none fits."""


def read_arm(arm: Arm, names: Sequence[str], where: Sequence[str], starts: StartsAre) -> Recorded:
    """All rounds of one arm, in the order of the names.

    UnreadableInput where nothing can be read; UsageError where `where` leaves none.
    """
    sweeps = [name for name in names if Path(name, PLAN).is_file()]
    files = [name for name in names if name not in sweeps]
    parts = [sweep_rounds(arm, Path(name)) for name in sweeps]
    if files:
        parts.append(imported_rounds(arm, find_files(files, files_directly_in), starts))
    rounds, twice = _each_once([one for part in parts for one in part.rounds])
    chosen = _numbered([one for one in rounds if all(_matches(one, text) for text in where)])
    if not chosen:
        raise UsageError(f"--{arm}: {_none_left(rounds, where)}")
    counters: dict[str, float] = {}
    for part in parts:
        for name, grown in part.counters.items():
            counters[name] = counters.get(name, 0.0) + grown
    return Recorded(
        rounds=tuple(chosen),
        lost=(*twice, *(text for part in parts for text in part.lost)),
        counters=counters,
        artifacts=tuple(artifact for part in parts for artifact in part.artifacts),
        starts_told=all(part.starts_told for part in parts),
        logs=tuple(path for part in parts for path in part.logs),
    )


def _each_once(rounds: Sequence[Round]) -> tuple[list[Round], list[str]]:
    """A copy of a recording is no second run; what is left out, in words."""
    first: dict[str, Round] = {}
    kept, twice = list[Round](), list[str]()
    for one in rounds:
        if one.record in first:
            twice.append(f"{one.start}: the run that is in {first[one.record].start} already: it counts once")
            continue
        kept.append(one)
        if one.record:
            first[one.record] = one
    return kept, twice


def _matches(one: Round, text: str) -> bool:
    name, equals, pattern = text.partition("=")
    if not equals:
        raise UsageError(f"--{one.arm}-where {text}: say NAME=VALUE, such as revision=base")
    facts = {**one.facts, ARM_FACT: one.swept.arm}
    return name in facts and fnmatchcase(facts[name], pattern)


def _numbered(rounds: Sequence[Round]) -> list[Round]:
    """Rounds of one start and load are numbered in the order of their beginning."""
    ordered = sorted(rounds, key=lambda one: one.begun_ns or 0)
    seen: dict[tuple[str, str], int] = {}
    numbered = []
    for one in ordered:
        key = (one.start, str(one.swept.load))
        seen[key] = seen.get(key, 0) + 1
        numbered.append(replace(one, number=seen[key]))
    return numbered


def _none_left(rounds: Sequence[Round], where: Sequence[str]) -> str:
    if not rounds:
        return "no run with a load and a throughput in it"
    told = sorted({f"{name}={value}" for one in rounds for name, value in one.facts.items()})
    there = first_few(told, shown=SHOWN) or "nothing that tells them apart"
    return f"no run is {' and '.join(where)}; there is {there}"
