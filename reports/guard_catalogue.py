"""Writes docs/guards.md from the guards themselves, so that the page says what the program checks.

    python -m reports.guard_catalogue [--check]

`--check` writes nothing and exits 1 if the page differs from what would be written. The sections serve the
methodology document too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from layers.catalogue import CATALOGUE, AnyGuard
from reports.generated_page import write_or_check
from reports.markdown import escape, table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guards.md"

INTRO = """# Guards

A guard is a named check on whether a measurement means what it seems to mean. Its effect says what becomes
of the result when it fires: **void** leaves no result, **directional** leaves one that may hint and never
conclude, **note** tells you something worth knowing. `perfkit explain CODE` prints one of these entries.

Written by `make docs` from the guards themselves; do not edit.
"""


def render(guards: Sequence[AnyGuard]) -> str:
    """The whole page."""
    return "\n".join([INTRO, _overview(guards), *(render_guard(guard) for guard in guards)])


def render_guard(guard: AnyGuard, heading: str = "##") -> str:
    """One guard as a section."""
    paragraphs = (
        ("What you see.", guard.sees),
        ("What happened.", guard.cause),
        ("How it is detected.", guard.detection),
        ("What to do.", guard.remedy),
        ("Source.", guard.source),
    )
    title = f"{heading} {guard.code} {escape(guard.name)}\n\n{escape(guard.layer)}, effect: {guard.effect}\n"
    return title + "".join(f"\n**{label}** {escape(text)}\n" for label, text in paragraphs)


def _overview(guards: Sequence[AnyGuard]) -> str:
    rows = [
        (f"[{g.code}](#{g.code.lower()}-{g.name})", escape(g.name), g.layer, g.effect, escape(g.sees))
        for g in guards
    ]
    return table(["code", "name", "layer", "effect", "what you see"], rows)


def main(arguments: Sequence[str]) -> int:
    """Write or check the page."""
    return write_or_check(PAGE, render(CATALOGUE), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
