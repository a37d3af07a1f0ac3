"""A sweep of which nothing stands because the server refused what it was sent: what it says, in its words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from layers.collectors.load.endpoints.registry import ENDPOINTS
from layers.collectors.load.records import RequestRecord
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted

NO_SUCH_PATH = (404, 405)
CLIENT_ERRORS = range(400, 500)


def with_refusal(verdict: Verdict, records: Iterable[RequestRecord], endpoint: str, path: str) -> Verdict:
    """The verdict, with what the server said to every request instead of what is missing without them.

    Only of a sweep of which nothing stands, where no request was served and the server answered most of them
    with one refusal (HTTP 4xx)."""
    if verdict.exit_code is not Exit.INVALID:
        return verdict
    asked = list(records)
    said = Counter((r.status, r.error) for r in asked if r.status in CLIENT_ERRORS)
    if not said or any(record.ok for record in asked):
        return verdict
    (status, error), times = said.most_common(1)[0]
    if 2 * times <= len(asked):
        return verdict
    words = error.removeprefix(f"{status}: ")
    step = _next(status, endpoint)
    because = f"the server says {status} to {path}, to {times:,} of {counted(len(asked), 'request')}"
    return replace(verdict, because=f"{because}: {words}" if words else because, next_step=step)


def _next(status: int | None, endpoint: str) -> str:
    if status in NO_SUCH_PATH:
        others = ", ".join(name for name in ENDPOINTS if name not in (endpoint, "template"))
        return f"try --endpoint {others}, or --path where the server has it elsewhere"
    return f"send what the server takes: --data, --model or --field; --endpoint {endpoint} was asked"
