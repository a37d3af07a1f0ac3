"""The guards on how a ledger was recorded: whether there was anything to record, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, limit

if TYPE_CHECKING:
    from layers.stages.collect_live import Live

FAILED_LIMIT = 0.10
"""Of the load's requests: the error budget of a sweep's pass."""


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """A recording, and how many requests its events or counters show."""

    live: Live
    seen: int


def _worked(live: Live) -> bool | None:
    from layers.stages.collect_live import worked  # with the load client, which the catalogue has no need of

    return worked(live.driven, live.beside)


def metrics_text(live: Live) -> str:
    """What the server's own metrics say, in words."""
    means = live.beside.means
    if means is None:
        return "its metrics say nothing"
    named = (("running", means.running), ("waiting", means.waiting))
    told = ", ".join(f"{value:.3g} {what}" for what, value in named if value is not None)
    return f"{told or 'no counts'} on average of {counted(means.n, 'page')} of its metrics"


def _idle(facts: LiveFacts) -> Outcome:
    live = facts.live
    text = f"{counted(facts.seen, 'request')} in {live.lasted_s:.1f} s; {metrics_text(live)}"
    return Outcome(facts.seen == 0 and not _worked(live), text)


def _not_written(facts: LiveFacts) -> Outcome:
    live = facts.live
    asked = f"; perfkit sent {live.driven.tally.asked:,}" if live.driven is not None else ""
    text = f"{counted(facts.seen, 'request')} in its events; {metrics_text(live)}{asked}"
    return Outcome(facts.seen == 0 and bool(_worked(live)), text)


def _cut_short(facts: LiveFacts) -> Outcome:
    live = facts.live
    return Outcome(live.cut_short, f"{live.lasted_s:.1f} s of {live.asked_s:g} s")


def _load_failed(facts: LiveFacts) -> Outcome | None:
    driven = facts.live.driven
    if driven is None:
        return None
    found = driven.tally
    served = f"{found.ok:,} served, {found.shed:,} shed, {found.errors:,} failed of {found.asked:,}"
    text = f"{driven.concurrency} at a time: {served}{f'; {driven.problem}' if driven.problem else ''}"
    many = found.errors > FAILED_LIMIT * max(1, found.asked)
    return Outcome(many or (bool(driven.problem) and not facts.live.cut_short), text)


IDLE_SERVER = Guard(
    code="PK418",
    name="idle-server-recorded",
    layer="stages",
    effect=Effect.VOID,
    sees="A recording that went well, of nothing.",
    cause="No request came while events were on: the load had ended, or went to another server.",
    detection="No request in the events or between the two scrapes, and nothing running or waiting in the "
    "server's own metrics, where it has any.",
    remedy="Record under the load that is too slow: start it first, or let perfkit drive one (--load N).",
    source="SGLang-Omni profiling methodology (sgl-project/sglang-omni#1798): profile under load only.",
    check=_idle,
)

NOT_WRITTEN = Guard(
    code="PK419",
    name="events-not-written",
    layer="stages",
    effect=Effect.VOID,
    sees="An empty folder of events of a server that works.",
    cause="The process that serves was not told: a router in front, another worker, a build that records no "
    "events; or the disk is full.",
    detection="Requests ran, by the load or by the server's own metrics, and no event names one.",
    remedy="Ask each worker by its own address; look into the server's log.",
    source="SGLang-Omni's routes are on each serve process.",
    check=_not_written,
)

CUT_SHORT = Guard(
    code="PK420",
    name="recording-cut-short",
    layer="stages",
    effect=Effect.NOTE,
    sees="A ledger of less time than was asked for.",
    cause="Somebody ended the recording: Ctrl-C, SIGTERM, a terminal that went away.",
    detection="The recording was told to end. Events were turned off, and what came until then is judged.",
    remedy="Record again where there are too few requests.",
    source="perfkit turns a server's events off however it ends.",
    check=_cut_short,
)

LOAD_FAILED = Guard(
    code="PK421",
    name="driven-load-failed",
    layer="stages",
    effect=Effect.DIRECTIONAL,
    sees="A ledger of a load that was not the one asked for.",
    cause="Requests failed, or the load client or the server ended before the time was up.",
    detection=f"More than {limit(FAILED_LIMIT)} of the requests that perfkit sent failed (shed ones apart), "
    "or the load did not run to its end.",
    remedy="Try one request by hand; check --endpoint, --model and --data.",
    source="The error budget of a pass of perfkit sweep.",
    check=_load_failed,
)

LIVE_GUARDS: tuple[Guard[LiveFacts], ...] = (IDLE_SERVER, NOT_WRITTEN, CUT_SHORT, LOAD_FAILED)
