"""Which runs do not count: those that Layer 3 voids, and those that met others on their machine."""

from __future__ import annotations

from collections.abc import Sequence

from layers.evidence.guard import Checked, Effect, apply_guards
from layers.layer3_sweep.analyse import EACH_PASS
from layers.layer3_sweep.guards_pass import CONTENDED
from layers.layer3_sweep.model import SweepPass


def why_excluded(swept: SweepPass, seen: Sequence[Checked]) -> str:
    """Why a run does not count, in words; empty where it does. `seen`: guards that were applied already."""
    fired = [c for c in (*apply_guards(EACH_PASS, swept), *seen) if c.fired]
    against = [c for c in fired if c.effect is Effect.VOID or c.code == CONTENDED.code]
    return f"{against[0].title}: {against[0].message}" if against else ""
