"""Samples a server's own metrics while a load runs: a source of the sampler, with one probe.

Targets: the address; then `no-verify` or `ca=FILE` where TLS needs it, and `headers=` with what goes with
each call (a key, where the page is behind one; by stdin, so that no list of processes shows it). A page that
does not come is a reading with its reason in place of numbers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence

from layers.collectors.gpu.schedule import poll
from layers.collectors.gpu.source import Description, Entity, Sink, SourceUnavailable, Values
from layers.collectors.server_adapters.adapter import ServerCallFailed
from layers.collectors.server_adapters.calls import Caller
from layers.collectors.server_adapters.generic import METRICS, scrape
from parsers.series_model import NO_DEVICE

SOURCE = "server-metrics"
NO_VERIFY, CA, HEADERS = "no-verify", "ca=", "headers="
MIN_PERIOD_NS = 500_000_000
"""A page costs the server some CPU of its front process. perfkit's choice."""
TIMEOUT_S = 5.0
"""A front that does not come to it for so long says something by that, too."""


class ServerMetricsSource:
    """One server's page; SourceUnavailable where it has none, or does not answer."""

    def __init__(self, targets: Sequence[str]) -> None:
        url, *options = targets
        ca_file = next((one.removeprefix(CA) for one in options if one.startswith(CA)), "")
        headers = next((one.removeprefix(HEADERS) for one in options if one.startswith(HEADERS)), "{}")
        caller = Caller(url, json.loads(headers), NO_VERIFY not in options, ca_file)
        try:
            sample = scrape(caller, TIMEOUT_S)
        except ServerCallFailed as error:
            raise SourceUnavailable(str(error)) from None
        if sample is None:
            raise SourceUnavailable(f"{caller.base} has no {METRICS}")
        self._probe = PageProbe(caller)
        self.description = Description((self._probe.entity,))

    def deliver(self, sink: Sink, period_ns: int, stop: threading.Event) -> None:
        poll([self._probe], sink, period_ns, stop)


class PageProbe:
    """One page after the other: a server that is late is not asked twice at once."""

    name = "page"
    min_period_ns = MIN_PERIOD_NS
    overlap = 1

    def __init__(self, caller: Caller) -> None:
        self.entity = Entity(caller.base, NO_DEVICE)
        self._caller = caller

    def read(self) -> Sequence[Values]:
        try:
            sample = scrape(self._caller, TIMEOUT_S)
        except ServerCallFailed as error:
            return [Values(missing={METRICS: str(error)})]
        return [Values(sample.values) if sample is not None else Values(missing={METRICS: "not there"})]


def private_of(caller: Caller) -> str:
    """The target that only stdin may carry; empty where nothing goes with a call."""
    return f"{HEADERS}{json.dumps(dict(caller.headers))}" if caller.headers else ""


def targets_of(caller: Caller) -> list[str]:
    """What the source is made from for this server, but for `private_of`."""
    options = [] if caller.verify else [NO_VERIFY]
    return [caller.base, *options, *([f"{CA}{caller.ca_file}"] if caller.ca_file else [])]
