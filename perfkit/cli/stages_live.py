"""What `perfkit stages --server URL --profile SECONDS` takes: a ledger recorded now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parsers.errors import UsageError
from perfkit.cli.driving import Driving, driven_load, servers_folder
from perfkit.cli.ending import told_to_end
from perfkit.cli.messages import say

if TYPE_CHECKING:
    from layers.stages.collect_live import Live

PREFIX = "stages-"

Server = Annotated[
    str | None, typer.Option("--server", metavar="URL", help="With --profile: the server to record.")
]
Profile = Annotated[
    float | None,
    typer.Option(
        "--profile", metavar="SECONDS", help="Record now: turn the server's request events on, and off again."
    ),
]
LoadOption = Annotated[
    int | None,
    typer.Option(
        "--load",
        metavar="N",
        help="With --profile: perfkit keeps N requests in flight; else your load counts.",
    ),
]
EventsDir = Annotated[
    Path | None,
    typer.Option(
        "--events-dir",
        metavar="DIR",
        help="With --profile: where the server writes, if not in the investigation.",
    ),
]

Metrics = Annotated[
    bool,
    typer.Option(
        "--metrics", help="With --profile: by the server's own histograms, as for servers without events."
    ),
]


def check_live(server: str | None, seconds: float | None, files: Sequence[str], driving: Driving) -> bool:
    """Whether something is to be recorded; UsageError where the options do not belong together."""
    if (server is None) != (seconds is None):
        missing = "--profile SECONDS" if seconds is None else "--server URL"
        raise UsageError(f"give {missing} too: perfkit stages --server URL --profile SECONDS")
    if seconds is None:
        if driving.concurrency is not None:
            raise UsageError("--load N drives a server: give --server URL --profile SECONDS too")
        return False
    if files:
        raise UsageError("files or --server URL --profile SECONDS: one of them")
    driving.refuse_alone()
    return True


@contextmanager
def recorded(
    url: str,
    seconds: float,
    driving: Driving,
    headers: Mapping[str, str],
    events_dir: Path | None,
    investigation: Path,
    *,
    metrics: bool,
    keep: bool,
) -> Iterator[Live]:
    """Record now; what came is kept as artifacts of the investigation, or for as long as the block lasts."""
    from layers.collectors.server_adapters.registry import adapter_for
    from layers.stages.collect_live import checked_seconds, record_events, record_pages

    checked_seconds(seconds)
    with ExitStack() as stack:
        adapter = adapter_for(url, headers)
        folder = servers_folder(stack, investigation, PREFIX, keep=keep)
        load = driven_load(adapter, url, driving, headers, folder)
        told = stack.enter_context(told_to_end())
        run = f"perfkit-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        under = "whatever load there is" if load is None else f"{load.concurrency} at a time"
        say(f"{adapter.kind}: recording under {under} for {seconds:g} s")
        if adapter.has_events and not metrics:
            yield record_events(
                adapter, run, folder, seconds, _roots(url), load, told, lambda: None, events=events_dir
            )
        else:
            yield record_pages(adapter, folder, seconds, _roots(url), load, told, lambda: None)


def _roots(url: str) -> list[str]:
    """What stands for the server's processes; none where they are not on this machine."""
    from layers.collectors.servers import server_roots

    try:
        return server_roots(url)
    except UsageError as error:
        say(f"{error}: its processes and devices are not sampled")
        return []
