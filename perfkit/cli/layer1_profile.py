"""What `perfkit layer1 --server URL --profile SECONDS` takes and prints: a trace that a server makes now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from parsers.errors import UsageError
from perfkit.cli import output
from perfkit.cli.driving import Driving, driven_load, servers_folder
from perfkit.cli.ending import told_to_end
from perfkit.cli.layer1_added_sections import AddedSection
from perfkit.cli.messages import say

if TYPE_CHECKING:
    from layers.layer1_gpu_busy.collect_profile import Profiled
    from layers.layer3_sweep.driven import Driven

PREFIX = "profile-"
SAID = ("running", "waiting", "kv_share", "preemptions", "prefix_hit_share")

Profile = Annotated[
    float | None,
    typer.Option(
        "--profile", metavar="SECONDS", help="With --server: it profiles itself now, under your load."
    ),
]
TraceDir = Annotated[
    Path | None,
    typer.Option(
        "--trace-dir",
        metavar="DIR",
        help="With --profile: where the server writes, if not in the investigation.",
    ),
]
Header = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="With --profile: sent with each call, kept nowhere."),
]


def check_profile(
    seconds: float | None, server: str | None, live: float | None, trace_dir: Path | None, load: int | None
) -> bool:
    """Whether a profile is to be taken; UsageError where the options do not belong together."""
    if seconds is None:
        if trace_dir is not None:
            raise UsageError("--trace-dir says where --profile SECONDS writes")
        if load is not None:
            raise UsageError("--load N goes with --server URL --profile SECONDS")
        return False
    if server is None:
        raise UsageError("--profile needs the server: perfkit layer1 --server URL --profile SECONDS")
    if live is not None:
        raise UsageError("--live samples a server as it is, --profile slows it down: one after the other")
    Driving(load, endpoint=None, model=None, data=None, fields={}).refuse_alone()
    return True


LoadOption = Annotated[
    int | None,
    typer.Option(
        "--load",
        metavar="N",
        help="With --profile: perfkit keeps N requests in flight meanwhile.",
    ),
]


@contextmanager
def profiled(
    url: str,
    seconds: float,
    load: int | None,
    trace_dir: Path | None,
    headers: Mapping[str, str],
    investigation: Path,
    keep: bool,
) -> Iterator[Profiled]:
    """Profile now; the traces are artifacts of the investigation, or there for as long as the block lasts."""
    from layers.collectors.server_adapters.registry import adapter_for
    from layers.layer1_gpu_busy.collect_profile import checked_profile, record_profile

    checked_profile(seconds)
    with ExitStack() as stack:
        adapter = adapter_for(url, headers)
        if trace_dir is not None:
            folder = trace_dir.resolve()
        else:
            folder = servers_folder(stack, investigation, PREFIX, keep=keep)
        run = f"perfkit-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        driving = Driving(load, endpoint=None, model=None, data=None, fields={})
        own = driven_load(adapter, url, driving, headers, folder)
        under = "whatever load there is" if own is None else f"{own.concurrency} requests at a time"
        say(f"{adapter.kind}: profiling under {under} for {seconds:g} s, into {folder}")
        with told_to_end() as told:
            found = record_profile(adapter, folder, run, seconds, told, load=own)
        yield found


def profile_section(found: Profiled) -> AddedSection:
    """How the trace was made, and what the server said of itself meanwhile."""
    beside = msgspec.to_builtins(found.beside) if found.beside is not None else {}
    content: dict[str, Any] = {
        "server": found.url,
        "kind": found.kind,
        "run": found.run,
        "asked_s": found.asked_s,
        "lasted_s": found.lasted_s,
        "cut_short": found.cut_short,
        "traces": [str(path) for path in found.traces],
        "said": {name: beside[name] for name in SAID if beside.get(name) is not None},
        "batches": beside.get("batches", {}),
        "pages": beside.get("n", 0),
        "load": msgspec.to_builtins(found.driven) if found.driven is not None else None,
        "host": msgspec.to_builtins(found.host) if found.host is not None else None,
    }
    return AddedSection("profile", content, lambda: _show(found, content), leads=True)


def _show(found: Profiled, content: Mapping[str, Any]) -> None:
    output.paragraph("profile", f"{found.kind}, {found.lasted_s:.1f} s: {', '.join(content['traces'])}")
    if found.driven is not None:
        output.paragraph("load", _driven(found.driven))
    said = [f"{name.replace('_', ' ')} {value:.3g}" for name, value in content["said"].items()]
    said += [f"{stage} {one['size']:.3g} a batch" for stage, one in content["batches"].items()]
    if said:
        pages = f"mean of {content['pages']} pages of its metrics, {found.lasted_s:.1f} s"
        output.paragraph("server", f"{', '.join(said)} ({pages})")
    elif found.without:
        output.paragraph("server", f"says nothing of itself: {found.without}")


def _driven(load: Driven) -> str:
    tally = load.tally
    ended = f"{tally.ok} served, {tally.shed} shed, {tally.errors} failed"
    problem = f": {load.problem}" if load.problem else ""
    return f"{load.concurrency} at a time for {load.length_s:.1f} s: {ended}{problem}"
