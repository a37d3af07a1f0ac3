"""How far a measured step is from its lower bound, as blocks of a report."""

from __future__ import annotations

from typing import Any

from reports.model import Block, Computed, Heading, Paragraph


def roofline_blocks(section: dict[str, Any]) -> list[Block]:
    """The verdict on the distance, and what the bound leaves out."""
    verdict, card = section["verdict"], section.get("gpu") or {}
    source = f"datasheet rates of {card['name']} ({card['source']})" if card else "no card's rates"
    how = Computed(f"calculated, not measured: {source} and the numbers of the command line")
    blocks: list[Block] = [Heading("Roofline"), Paragraph(verdict["word"], verdict["because"], how)]
    return blocks + [Paragraph("Left out", term, how) for term in section.get("left_out", [])]
