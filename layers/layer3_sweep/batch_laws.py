"""What a stage's batches cost by their size, over the passes of a curve, and the best size by that law. Pure.

A server that counts batches, their items and the time in them (`StageWork` of its adapter) gives one mean
size and one mean time a pass and stage; loads (and cells of a grid) bring different sizes. Means of many
batches stand for each of them, which holds where a law is nearly straight between the sizes of a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from layers.collectors.server_adapters.metrics import BatchMeans
from layers.evidence.batch_law import TIED, law_of
from layers.evidence.wording import counted, pct
from layers.layer3_sweep.model import StageLaw, SweepPass
from layers.layer3_sweep.points import load_value

EXPLAINS = 0.5
"""R² from which a law says more than the mean does; that of the stage ledger."""
GAIN = 0.05
"""More items a second than at the best size that was measured, from which a prediction is worth a grid."""


def stage_laws(passes: Iterable[SweepPass]) -> tuple[StageLaw, ...]:
    """One law for each stage that worked in batches of enough different sizes."""
    by_stage: dict[str, list[tuple[SweepPass, BatchMeans]]] = {}
    for swept in passes:
        for stage, batches in (swept.batches or {}).items():
            by_stage.setdefault(stage, []).append((swept, batches))
    laws = (_law(stage, own) for stage, own in sorted(by_stage.items()))
    return tuple(law for law in laws if law is not None)


def _law(stage: str, told: Sequence[tuple[SweepPass, BatchMeans]]) -> StageLaw | None:
    law = law_of([(one.size, one.ms) for _, one in told], [float(one.n) for _, one in told])
    if law is None:
        return None
    most = max(one.size / one.ms for _, one in told)
    near = [(swept, one) for swept, one in told if one.size / one.ms >= (1 - TIED) * most]
    swept, best = min(near, key=lambda pair: pair[1].size)
    return StageLaw(
        stage=stage,
        law=law,
        passes=len(told),
        batches=sum(one.n for _, one in told),
        measured_batch=best.size,
        measured_at=load_value(swept.load),
        measured_settings=dict(swept.settings),
        gain=law.rate(law.best_batch) / (best.size / best.ms) - 1,
        by_pass=tuple((load_value(s.load), one.size, one.ms, one.n) for s, one in told),
    )


def law_text(one: StageLaw, apart: Mapping[str, str] | None = None) -> str:
    """The law in a sentence; `apart` are settings that all passes share and that need no mention."""
    law = one.law
    power = "" if law.p == 1 else f"^{law.p:g}"
    said = f"a batch of B takes {law.a_ms:.3g} + {law.b_ms:.3g}·B{power} ms"
    rests = f"R² {law.r2:.2f}, {counted(one.batches, 'batch')} in {counted(one.passes, 'pass')}"
    reach = "beyond what was seen" if law.beyond_seen else "within what was seen"
    own = [f"{k}={v}" for k, v in sorted(one.measured_settings.items()) if k not in (apart or {})]
    at = ", ".join([f"{one.measured_at:g}", *own])
    return (
        f"{one.stage}: {said} ({rests}): best at {law.best_batch} ({reach}, {signed(one.gain)} items a "
        f"second); best measured {one.measured_batch:.3g} (at {at})"
    )


def signed(share: float) -> str:
    """`+12 %`; a gain of nothing has no sign."""
    told = pct(abs(share))
    return f"{'+' if share > 0 else '-' if share < 0 else ''}{told}"


def worth_a_grid(one: StageLaw) -> bool:
    """Whether the law is one, and promises more than was measured."""
    return one.law.r2 >= EXPLAINS and one.gain >= GAIN
