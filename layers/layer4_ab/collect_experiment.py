"""An experiment that perfkit ran, read back as two arms: one start a run, in the order of running.

A run around which the machine changed, against the first snapshot of the session, does not count: nobody
knows what of the ratio is the change's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from layers.evidence.wording import first_few
from layers.layer4_ab.collect_sweep import sweep_rounds
from layers.layer4_ab.experiment import Experiment, RunKey, runs_of
from layers.layer4_ab.experiment_folder import AFTER, BEFORE, SOUND, left_to_run, run_folder
from layers.layer4_ab.model import Arm, Recorded
from layers.preflight.compare import compare
from layers.preflight.snapshot import Snapshot, from_file

CHANGED = "the machine changed"


def read_arms(folder: Path, experiment: Experiment) -> Mapping[Arm, Recorded]:
    """Both arms, of the runs that stand; UnreadableInput where one of those is damaged."""
    missing = set(left_to_run(folder, experiment))
    first: Snapshot | None = None
    found: dict[Arm, list[Recorded]] = {Arm.A: [], Arm.B: []}
    for key in runs_of(experiment):
        if key in missing:
            continue
        before, after = (from_file(run_folder(folder, key) / name) for name in (BEFORE, AFTER))
        first = first or before
        found[key.arm].append(_run(folder, key, changes(first, (before, after))))
    lost = [f"run {key.number} ({key.arm}) was not run, or cut: --resume runs it" for key in missing]
    arms = {arm: joined(parts, lost if arm is Arm.A else ()) for arm, parts in found.items()}
    return {arm: replace(one, hot=experiment.hot) for arm, one in arms.items()}


def _run(folder: Path, key: RunKey, changed: Sequence[str]) -> Recorded:
    return named(sweep_rounds(key.arm, run_folder(folder, key), folder / SOUND), key.name, changed)


def named(read: Recorded, name: str, changed: Sequence[str]) -> Recorded:
    """What was read of one start, under its name; its rounds do not count where the machine changed."""
    why = f"{CHANGED}: {first_few(changed)}" if changed else ""
    rounds = tuple(replace(r, start=name, excluded=r.excluded or why) for r in read.rounds)
    return replace(read, rounds=rounds, changes=tuple(f"{name}: {text}" for text in changed))


def changes(first: Snapshot, looks: Sequence[Snapshot]) -> list[str]:
    """What is not as it was at first, each once."""
    differences = chain.from_iterable(compare(first, look) for look in looks)
    return list(dict.fromkeys(f"{one.name}: {one.before} against {one.after}" for one in differences))


def joined(parts: Sequence[Recorded], lost: Sequence[str]) -> Recorded:
    """Several starts as one arm."""
    counters: dict[str, float] = {}
    for part in parts:
        for name, grown in part.counters.items():
            counters[name] = counters.get(name, 0.0) + grown
    return Recorded(
        rounds=tuple(chain.from_iterable(part.rounds for part in parts)),
        lost=(*lost, *chain.from_iterable(part.lost for part in parts)),
        counters=counters,
        artifacts=tuple(chain.from_iterable(part.artifacts for part in parts)),
        starts_told=True,
        changes=tuple(chain.from_iterable(part.changes for part in parts)),
        logs=tuple(chain.from_iterable(part.logs for part in parts)),
    )
