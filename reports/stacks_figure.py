"""The figures of Layer 2 out of a run's document: the first lines of one thread, and what the run drew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from layers.collectors.stacks.recording import Mode
from layers.evidence.wording import counted, first_few, pct
from layers.layer2_stacks.wording import place
from reports.figure_data import KeptPicture, LeafBar, LeafPanel, LeafPanels
from reports.flame_layout import short_place
from reports.model import Basis, Figure, Folded

Entry = Mapping[str, Any]
LinesKey = tuple[str, str]

LINES_A_MODE = 6
"""Of each mode; beyond them lines are short, and the table has them."""
PANELS = {
    Mode.IDLE: "all looks (--idle): where is it?",
    Mode.UNKNOWN: "ticks of a mode that is not told",
    Mode.ACTIVE: "looks that found it on a CPU (no --idle)",
    Mode.GIL: "looks that found it with the lock (--gil)",
}
"""What a panel's shares are of, in the order of the panels."""
KINDS = {"flame": "Flame graph", "difference": "Flame graph of what changed"}


def figure_stacks(scopes: Sequence[Entry], basis: Basis, name: str) -> Figure | None:
    """`scopes`: those of the document that are of one thread, one a mode; None where they have no line."""
    by_mode = {Mode(scope["mode"]): scope for scope in scopes}
    shown = [by_mode[mode] for mode in PANELS if mode in by_mode]
    lines = dict.fromkeys(_key(leaf) for scope in shown for leaf in scope["leaves"][:LINES_A_MODE])
    if not lines:
        return None
    n = ", ".join(f"{counted(scope['ticks'], 'tick')} ({scope['mode']})" for scope in shown)
    return Figure(
        name=name,
        title="Which lines hold the thread",
        about=f"{shown[0]['scope']}: n = {n}",
        caption=(
            "Each panel has its own denominator. A line that is long at all looks and absent on a CPU waits; "
            "a share left of the dashed line would not surely have been seen."
        ),
        alternative=f"Shares of lines with intervals. {first_few(map(_told, shown))}.",
        data=LeafPanels(tuple(map(_name, lines)), tuple(_panel(scope, list(lines)) for scope in shown)),
        basis=basis,
    )


def _key(leaf: Entry) -> LinesKey:
    return leaf["where"], leaf["function"]


def _name(key: LinesKey) -> str:
    return place(short_place(key[0]), key[1])


def _told(scope: Entry) -> str:
    first = scope["leaves"][0] if scope["leaves"] else None
    found = f"{_name(_key(first))} has {pct(first['share'])}" if first else "no line"
    return f"{scope['mode']}: {found}"


def _panel(scope: Entry, lines: Sequence[LinesKey]) -> LeafPanel:
    captures = sum(1 for n in scope["ticks_by_capture"] if n)
    n = f"n = {counted(scope['ticks'], 'tick')}, {counted(captures, 'capture')}"
    kept = {_key(leaf): leaf for leaf in scope["leaves"]}
    bars = tuple(_bar(kept.get(key), scope) for key in lines)
    return LeafPanel(PANELS[Mode(scope["mode"])], n, bars, scope["smallest_visible"])


def _bar(leaf: Entry | None, scope: Entry) -> LeafBar | None:
    """Of a line that is missing where all rows were kept it is known that it had no hit."""
    if leaf is not None:
        return LeafBar(leaf["share"], leaf["low"], leaf["high"], "wait" in leaf)
    if scope["leaves_left_out"]:
        return None
    return LeafBar(0.0, 0.0, scope["smallest_visible"], False)


def kept_pictures(document: Entry, basis: Basis, prefix: str) -> list[Folded]:
    """What the run drew of all its stacks, each folded away; `basis` says where stacks came from."""
    return [
        Folded(f"{KINDS[entry['kind']]}, {entry['mode']} captures", (_kept(entry, basis, prefix),))
        for entry in document.get("pictures", [])
    ]


def _kept(entry: Entry, basis: Basis, prefix: str) -> Figure:
    return Figure(
        name=f"{prefix}-{entry['kind']}-{entry['mode']}",
        title=KINDS[entry["kind"]],
        about=f"{entry['scope']}: n = {entry['n']:,} ticks",
        caption="Width is the share of ticks, left to right no order of time. A browser searches and zooms.",
        alternative=f"{KINDS[entry['kind']]}: {entry['scope']}, {entry['mode']} captures.",
        data=KeptPicture(entry["file"], entry["sha256"]),
        basis=replace(basis, n=entry["n"]),
    )
