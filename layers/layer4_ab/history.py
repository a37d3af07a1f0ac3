"""Earlier A/A floors of this machine: kept with every A/B that had A/A runs, and read back from its record.

A floor is taken up only where machine, load and metric are the same. Results of other tools do not name the
machine, so they have no history.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from layers.layer4_ab.floors import Floor, FloorKind, pooled
from layers.layer4_ab.model import Round

COMMAND = "ab"


def machine_of(rounds: Iterable[Round]) -> str:
    """The machine of all rounds, where they were all on one that is known."""
    names = {one.swept.machine for one in rounds}
    return names.pop() if len(names) == 1 else ""


def history_of(
    documents: Sequence[Mapping[str, Any]], machine: str, load: str, metric: str
) -> dict[str, Floor]:
    """The floor that earlier A/A runs of this machine set, by metric; nothing where there are none."""
    if not machine:
        return {}
    earlier = [floor for document in documents for floor in _floors(document, machine, load, metric)]
    found = pooled(list(dict.fromkeys(earlier)))  # the same A/A runs may stand beside several A/Bs
    return {metric: found} if found else {}


def _floors(document: Mapping[str, Any], machine: str, load: str, metric: str) -> Iterable[Floor]:
    primary = document.get("primary")
    same = (machine, load) == (document.get("machine"), document.get("load"))
    if document.get("command") != COMMAND or not primary or not same or primary["metric"] != metric:
        return
    for told in document["floors"]:
        if told["kind"] == FloorKind.MEASURED:
            spread = math.log1p(told["spread_pct"] / 100)
            yield Floor(FloorKind.MEASURED, spread, told["runs"], told["freedom"])
