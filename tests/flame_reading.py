"""A flame graph's SVG read back: its boxes as they stand in the text."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True, slots=True)
class Drawn:
    """One box; `left` and `width` in percent, `tooltip` by lines."""

    look: str
    row: int
    left: float
    width: float
    label: str
    tooltip: list[str]
    counts: list[int]
    parent: int


def parsed(svg: str) -> ElementTree.Element:
    """The SVG as XML; it raises where it is none."""
    return ElementTree.fromstring(svg)


def drawn(svg: str) -> list[Drawn]:
    """All boxes in their order."""
    boxes = parsed(svg).iter(f"{SVG}svg")
    return [_drawn(box) for box in boxes if (box.get("class") or "").startswith("b ")]


def _drawn(box: ElementTree.Element) -> Drawn:
    title, text = box.find(f"{SVG}title"), box.find(f"{SVG}text")
    assert title is not None and text is not None
    return Drawn(
        look=str(box.get("class"))[2:],
        row=int(str(box.get("aria-level"))) - 1,
        left=float(str(box.get("x")).rstrip("%")),
        width=float(str(box.get("width")).rstrip("%")),
        label="".join(text.itertext()),
        tooltip=(title.text or "").split("\n"),
        counts=[int(count) for count in str(box.get("data-n")).split()],
        parent=int(str(box.get("data-p"))),
    )


def words(svg: str) -> str:
    """What stands above the boxes when the window is wide."""
    wide = next(group for group in parsed(svg).iter(f"{SVG}g") if group.get("class") == "wide")
    return " ".join(text for text in wide.itertext() if text.strip())
