"""How `perfkit layer1 --compare` shows two traces side by side: what may make them incomparable first."""

from __future__ import annotations

from layers.evidence.wording import pct
from layers.layer1_gpu_busy.compare import ChangeRow, Comparison, time_rows
from layers.layer1_gpu_busy.compare_files import NotCompared
from layers.layer1_gpu_busy.kernel_names import distinct_names
from perfkit.cli import output

CHANGES_SHOWN = 12
NAME_CHARACTERS = 30
IDLE_SHOWN_FROM = 0.01
"""Of the window: a cause whose share moved by less is left out."""


def show_comparison(c: Comparison) -> None:
    """Times per unit, idle time by cause, and the kernels that changed most."""
    for text in c.unlike:
        output.paragraph("beware", text)
    for text in c.weakened:
        output.paragraph("only hints", text)
    sides = f"{c.b.label} (n = {c.b.units}) against {c.a.label} (n = {c.a.units})"
    output.paragraph("compared", f"per {c.unit}: {sides}")
    output.line()
    rows = [_times(*row) for row in time_rows(c)]
    output.show(output.table([f"per {c.unit}", "before ms", "after ms", "ratio"], rows, right=[1, 2, 3]))
    moved = [f"{i.cause} {pct(i.a_share)} → {pct(i.b_share)}" for i in c.idle if _moved(i.a_share, i.b_share)]
    if moved:
        output.paragraph("idle", f"of the device window: {'; '.join(moved)}")
    output.line()
    head = ["kernel, most changed first", "", "before ms", "after ms", "n before", "n after"]
    output.show(output.table(head, _changes(c.kernels[:CHANGES_SHOWN]), right=[2, 3, 4, 5]))
    for caveat in c.caveats:
        output.paragraph("note", caveat)


def show_not_compared(n: NotCompared) -> None:
    """Why there is no comparison."""
    output.paragraph("compared", f"not with {n.earlier}:")
    for reason in n.why:
        output.paragraph("", reason)


def _times(name: str, before_ns: float, after_ns: float) -> list[str]:
    ratio = f"{after_ns / before_ns:.2f}x" if before_ns else "no base"
    return [name, _ms(before_ns), _ms(after_ns), ratio]


def _moved(before: float, after: float) -> bool:
    return abs(after - before) >= IDLE_SHOWN_FROM


def _changes(rows: tuple[ChangeRow, ...]) -> list[list[str]]:
    names = distinct_names([row.name for row in rows], NAME_CHARACTERS)
    return [
        [name, row.change, _ms(row.a_ns), _ms(row.b_ns), f"{row.a_count:,.1f}", f"{row.b_count:,.1f}"]
        for name, row in zip(names, rows, strict=True)
    ]


def _ms(ns: float) -> str:
    return f"{ns / 1e6:,.3f}"
