"""What was asked in the passes of a sweep, how right the answers were, and the guards on both.

What is expected of an item is what its data set says; where that says nothing and the same items come at
every load, it is what the server itself answered at the least load: that tells no truth about the model, but
whether load changes answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from layers.collectors.load.folder import PLAN
from layers.collectors.load.item import Item, read_items
from layers.collectors.load.plan import LoadPlan
from layers.collectors.load.plan_json import decode_plan
from layers.collectors.load.records import RequestRecord
from layers.evidence.guard import Checked, apply_guards
from layers.layer3_sweep.accuracy import accuracy_of, answers_of, usual_metric
from layers.layer3_sweep.content import Asked, Least, content_facts
from layers.layer3_sweep.guards_content import CONTENT_GUARDS
from layers.layer3_sweep.model import Accuracy, SweepPass
from layers.layer3_sweep.points import load_value, scope_of
from layers.layer3_sweep.protocol import PassKey, SweepPlan
from layers.layer3_sweep.recorded import Recorded
from layers.layer3_sweep.sweep_folder import ITEMS

Place = tuple[str, int]
"""Arm and cell."""


@dataclass(slots=True)
class Contents:
    """The contents of a sweep that was read back. `recurring`: whether items are the same in every pass."""

    folder: Path
    plan: SweepPlan
    recorded: Mapping[PassKey, Sequence[Recorded]]
    recurring: bool
    _items: dict[Path, list[Item]] = field(default_factory=dict)
    _answers: dict[Place, Mapping[str, str]] = field(default_factory=dict)

    def input_audio_s(self, key: PassKey) -> dict[str, float] | None:
        """Seconds of audio by item, of items that bring audio."""
        items = self._asked(key).measured
        return {i.id: i.audio_seconds for i in items if i.audio_seconds is not None} or None

    def accuracy(self, key: PassKey) -> Accuracy | None:
        """Of the answers of a pass; None where nothing is expected of them."""
        items = self._expecting(key)
        metric = usual_metric(self.plan.endpoint.name, items, self.recurring)
        if metric is None:
            return None
        by_id = {item.id: item for item in (*self._least_items(key), *items)}
        return accuracy_of(metric, self._records(key), by_id, self._least_records(key))

    def guards(self, key: PassKey, swept: SweepPass) -> list[Checked]:
        """Those on the content of a pass."""
        least = None
        if (below := self._least_key(key)) is not None and below.load != key.load:
            least = Least(self._least_records(key), self.accuracy(below), self._least_items(key))
        facts = content_facts(
            self._records(key),
            self._asked(key),
            hit_share=swept.server.prefix_hit_share if swept.server else None,
            accuracy=swept.accuracy,
            least=least,
        )
        return apply_guards(CONTENT_GUARDS, facts, scope_of(swept))

    def _records(self, key: PassKey) -> list[RequestRecord]:
        return list(chain(*(one.records for one in self.recorded.get(key, ()))))

    def _least_key(self, key: PassKey) -> PassKey | None:
        """The first repeat of the least load of the same arm and cell; of the first cell with the same mix,
        where the same items are asked in several."""
        same = [k for k in self.recorded if self._alike(k, key) and self._records(k)]
        return min(same, key=lambda k: (load_value(k.load), k.cell, k.repeat), default=None)

    def _alike(self, one: PassKey, other: PassKey) -> bool:
        mix = self.plan.mix_of(other.cell)
        same_items = self.plan.mix_of(one.cell) == mix if mix else one.cell == other.cell
        return one.arm == other.arm and same_items

    def _least_records(self, key: PassKey) -> list[RequestRecord]:
        """Those of all repeats of the least load."""
        return [record for k in self._least_keys(key) for record in self._records(k)]

    def _least_keys(self, key: PassKey) -> list[PassKey]:
        least = self._least_key(key)
        return [k for k in self.recorded if least and k == replace(least, repeat=k.repeat)]

    def _least_items(self, key: PassKey) -> list[Item]:
        return [item for k in self._least_keys(key) for item in self._asked(k).measured]

    def _expecting(self, key: PassKey) -> list[Item]:
        items = list(self._asked(key).measured)
        if not self.recurring or any(item.expected for item in items):
            return items
        place = (key.arm, key.cell)
        if place not in self._answers:
            self._answers[place] = answers_of(self._least_records(key)).of
        answers = self._answers[place]
        return [replace(item, expected=answers.get(item.id, "")) for item in items]

    def _asked(self, key: PassKey) -> Asked:
        plans = [plan for one in self.recorded.get(key, ()) if (plan := self._load_plan(one)) is not None]
        measured = {item.id: item for plan in plans for item in self._read(plan.items)}
        warmup = [item for plan in plans for item in self._read(plan.warmup_items)]
        marked = any(plan.nonce for plan in plans)
        return Asked(list(measured.values()), warmup, self.recurring, marked)

    def _load_plan(self, one: Recorded) -> LoadPlan | None:
        path = self.folder / one.part.folder / PLAN
        return decode_plan(path.read_bytes()) if one.records else None

    def _read(self, path: Path | None) -> list[Item]:
        """By its name alone: the folder may have moved."""
        if path is None:
            return []
        place = self.folder / ITEMS / path.name
        if place not in self._items:
            self._items[place] = read_items(place)
        return self._items[place]
