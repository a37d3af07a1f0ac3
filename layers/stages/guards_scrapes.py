"""The guards on two pages of a server's metrics: whether they are of one server, and what lies between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, first_few, limit, pct
from layers.stages.model import Kind
from layers.stages.vocabulary import kind_of

if TYPE_CHECKING:
    from layers.stages.scrapes import Scraped

UNEVEN_NOTE, UNEVEN_LIMIT = 0.01, 0.10
"""perfkit's choice, of requests: as many as may be cut out of a log of events (PK406)."""


def _fell(scraped: Scraped) -> Outcome:
    text = f"less than before: {first_few(scraped.fell)}" if scraped.fell else "every counter only grew"
    return Outcome(bool(scraped.fell), text)


def _changed(scraped: Scraped) -> Outcome:
    said = f"other bounds than before: {first_few(scraped.changed)}" if scraped.changed else "the same bounds"
    return Outcome(bool(scraped.changed), said)


def _missing(scraped: Scraped) -> Outcome:
    queue = any(kind_of(text) is Kind.QUEUE for text in scraped.phases)
    lacks = [] if scraped.whole is not None else ["end-to-end time"]
    lacks += [] if queue else ["queue time"]
    text = f"a page of {scraped.server}"
    if scraped.missing:
        text += f" without {first_few(scraped.missing)}"
    if lacks:
        return Outcome(True, f"{text}: no {' and no '.join(lacks)}")
    return Outcome(bool(scraped.missing), text, Effect.NOTE)


def _nothing_passed(scraped: Scraped) -> Outcome | None:
    if scraped.whole is None:
        return None
    ended = round(scraped.whole.count)
    return Outcome(ended <= 0, f"{counted(ended, 'request')} ended in between")


def _uneven(scraped: Scraped) -> Outcome | None:
    whole = scraped.whole
    if whole is None or whole.count <= 0 or not scraped.phases:
        return None
    text, worst = max(scraped.phases.items(), key=lambda one: abs(one[1].count - whole.count))
    off = abs(worst.count - whole.count) / whole.count
    said = f"{text} counts {worst.count:,.0f}, whole requests {whole.count:,.0f} ({pct(off)} apart)"
    return Outcome(off > UNEVEN_NOTE, said, None if off > UNEVEN_LIMIT else Effect.NOTE)


def _several(scraped: Scraped) -> Outcome | None:
    if scraped.whole is None:
        return None
    series = scraped.whole.series
    return Outcome(series > 1, f"{counted(series, 'series')} of whole requests, added")


def _coarse(scraped: Scraped) -> Outcome:
    return Outcome(
        True, "means and shares are exact; of percentiles the bucket is known; single requests are not"
    )


COUNTERS_FELL = Guard(
    code="PK422",
    name="counters-fell",
    layer="stages",
    effect=Effect.VOID,
    sees="Times that are too short, or negative.",
    cause="The server began anew between the two pages, or the pages are of two servers, or in the wrong "
    "order.",
    detection="A sum, a count or a bucket is smaller than before, a series went away, or the process or a "
    "series (`_created`) began at another time.",
    remedy="Take both pages from one server that lives through the load, the earlier one first.",
    source="Prometheus: counters and histograms only grow while a process lives.",
    check=_fell,
)

BUCKETS_CHANGED = Guard(
    code="PK423",
    name="buckets-changed",
    layer="stages",
    effect=Effect.VOID,
    sees="Counters that grew as they should, and percentiles that make no sense.",
    cause="Bounds are fixed when a server starts: it was started again, with other options or another "
    "version, and its counters have overtaken the old ones since.",
    detection="A histogram of both pages has other bounds in the second one.",
    remedy="Take both pages from one server that lives through the load.",
    source="prometheus-client fixes the bounds of a histogram when it is made.",
    check=_changed,
)

FAMILIES_MISSING = Guard(
    code="PK424",
    name="histograms-missing",
    layer="stages",
    effect=Effect.VOID,
    sees="A page of metrics without the times that a ledger needs.",
    cause="The server was started without them (SGLang: --enable-metrics), renamed them, or has none.",
    detection="No histogram of whole requests or of the queue that perfkit knows for this server; a note "
    "where only others are missing, which then are residual.",
    remedy="Turn metrics on; where the server has request events, record those (--profile).",
    source="The names of vLLM, SGLang and TGI as the adapters of docs/servers.md have them.",
    check=_missing,
)

NOTHING_PASSED = Guard(
    code="PK425",
    name="no-request-between-pages",
    layer="stages",
    effect=Effect.VOID,
    sees="Two pages that differ in nothing.",
    cause="The server was idle, the load went elsewhere, or no request had ended yet.",
    detection="The count of whole requests did not grow.",
    remedy="Take the second page after the load, or after several times as long as one request takes.",
    source="SGLang-Omni profiling methodology (sgl-project/sglang-omni#1798): profile under load only.",
    check=_nothing_passed,
)

COUNTS_DIFFER = Guard(
    code="PK426",
    name="phases-of-other-requests",
    layer="stages",
    effect=Effect.DIRECTIONAL,
    sees="Shares that look exact.",
    cause="A phase is counted when it ends: requests that were in flight at either page are in some phases "
    "and not in others. Or a phase is passed more than once, or not by all.",
    detection=f"The counts of a phase and of whole requests differ by more than {limit(UNEVEN_LIMIT)}; a "
    f"note from {limit(UNEVEN_NOTE)} on.",
    remedy="A longer time between the pages; or both while nothing is in flight (--load N does so).",
    source="vLLM counts all phases when a request ends, SGLang its queue when it is left.",
    check=_uneven,
)

SEVERAL_SERIES = Guard(
    code="PK427",
    name="several-engines-added",
    layer="stages",
    effect=Effect.NOTE,
    sees="One ledger of a server with several engines.",
    cause="A page has a series for each engine, data-parallel rank or model.",
    detection="More than one series of whole requests. They are added; of tensor- and pipeline-parallel "
    "ranks, which work on the same requests, the first one counts.",
    remedy="Look at the engines one by one where one may be slower: their series stand in the pages.",
    source="vLLM labels its series by engine, SGLang by rank.",
    check=_several,
)

COARSE = Guard(
    code="PK428",
    name="histograms-alone",
    layer="stages",
    effect=Effect.NOTE,
    sees="A ledger with means and with bounds in place of percentiles.",
    cause="A server's histograms hold sums, counts and buckets: which request waited, behind which other "
    "one, is not in them.",
    detection="The ledger was made from pages of metrics.",
    remedy="Request events, where the server has them; percentiles of the client from perfkit sweep.",
    source="Prometheus, histograms: a quantile is known as far as its bucket is narrow.",
    check=_coarse,
)

SCRAPE_GUARDS: tuple[Guard[Scraped], ...] = (
    *(COUNTERS_FELL, BUCKETS_CHANGED, FAMILIES_MISSING, NOTHING_PASSED),
    *(COUNTS_DIFFER, SEVERAL_SERIES, COARSE),
)
