"""From how an exchange ended, its status and its text to what became of the request. Pure."""

from __future__ import annotations

import re

from layers.collectors.load.records import Outcome

SHED_STATUSES = frozenset({429, 503})
"""Too Many Requests, Service Unavailable: the two by which servers refuse work (RFC 6585 4, RFC 9110
15.6.4)."""
REFUSING = re.compile(rb"backlog|queue (is )?full|queue limit|overload|too many requests|at capacity", re.I)
"""What a 500 says that is a refusal too: SGLang-Omni answers 500 with a backlog text when its queue is
full."""
ERROR_CHARACTERS = 300
"""Of an error's text in a record."""


def outcome_of_status(status: int, body: bytes) -> Outcome:
    """OK for a status of success, whatever the body says."""
    if 200 <= status < 300:
        return Outcome.OK
    if status in SHED_STATUSES or (status == 500 and REFUSING.search(body)):
        return Outcome.SHED
    return Outcome.HTTP_ERROR


def refuses(text: str) -> bool:
    """Whether the text of an error inside a stream means that the server had no room."""
    return REFUSING.search(text.encode()) is not None


def error_text(body: bytes) -> str:
    """The beginning of an error's body, on one line."""
    return " ".join(body[: 4 * ERROR_CHARACTERS].decode(errors="replace").split())[:ERROR_CHARACTERS]
