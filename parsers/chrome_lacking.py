"""Events that lack what all others of their file have: what is left where a stretch was cut out of the text.

The head of one event and the tail of another can make one that is valid JSON. Seldom has it all that an event
has: what stood between the two places is missing. A writer that leaves a field out leaves it out always, so a
few events without it among many that have it are no events of that writer. No real trace at hand has any.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from parsers.loss import Loss

PHASES = frozenset("XBEMiICsftbnePNODSTpFRvVca(),")
"""All that the trace event format knows."""
RARE_SHARE = 0.02
"""Of the events, up to which a lack is no habit of the writer. perfkit's choice."""
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"))


class Lack(StrEnum):
    """What an event may lack."""

    PHASE = "events without a phase that the format knows"
    NAME = "complete events without a name"
    TRACK = "complete events without a process or thread"
    TIME = "complete events without a time"
    DURATION = "complete events without a duration"
    STREAM = "device operations without a stream"
    OPERATION_ID = "device operations without a correlation id"
    BRACKET = "device operations without a bracket of their name"


def lacks_bracket(name: str) -> bool:
    """Whether the brackets of a kernel's name do not match, as in the head of one joined to the tail of
    another.
    """
    name = name.replace("->", "")
    return any(name.count(opening) != name.count(closing) for opening, closing in _BRACKETS)


def losses_of_lacks(lacking: Mapping[Lack, int], of: Mapping[Lack, int]) -> list[Loss]:
    """A loss for each thing that a few lack; `of` has how many events of the sort there are."""
    return [
        Loss(f"{n:,} {lack}, as the others have: pieces of others", -1, 0, 0, True, at_least=True)
        for lack, n in sorted(lacking.items())
        if 0 < n <= RARE_SHARE * of[lack]
    ]
