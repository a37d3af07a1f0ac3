"""What a log lost, one `Loss` a kind: a million bad lines are one statement, not a million."""

from __future__ import annotations

from dataclasses import dataclass

from parsers.loss import Loss, LossKind


@dataclass(slots=True)
class _Lost:
    kind: LossKind
    lines: int
    first: int
    characters: int


class LossTally:
    """Counts lost lines by what was wrong with them."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Lost] = {}
        self._others: list[Loss] = []

    def lose(self, what: str, line: int, characters: int, kind: LossKind = LossKind.DAMAGE) -> None:
        """One line (from 1) was given up, or a part of it of so many characters."""
        lost = self._kinds.setdefault(what, _Lost(kind, 0, line, 0))
        lost.lines += 1
        lost.characters += characters

    def add(self, loss: Loss) -> None:
        """A loss that is worded already."""
        self._others.append(loss)

    def losses(self) -> tuple[Loss, ...]:
        """All of them. A lost line is a lost sample, which hides no work but its own."""
        kinds = (
            Loss(_words(what, lost), -1, lost.characters, lost.lines, False, kind=lost.kind)
            for what, lost in self._kinds.items()
        )
        return (*self._others, *kinds)


def _words(what: str, lost: _Lost) -> str:
    if lost.lines == 1:
        return f"line {lost.first:,}: {what}"
    return f"{lost.lines:,} lines from line {lost.first:,} on: {what}"
