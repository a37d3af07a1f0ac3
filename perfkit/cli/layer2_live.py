"""What `perfkit layer2` takes to record a live service, and how that runs: process, load, captures."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layers.collectors.stacks.rates import REPEATS, SECONDS
from layers.evidence.wording import first_few
from parsers.errors import UsageError
from perfkit.cli.ending import told_to_end
from perfkit.cli.layer2_files import Judged
from perfkit.cli.messages import say

if TYPE_CHECKING:
    from layers.collectors.server_adapters.generic import GenericAdapter
    from layers.collectors.stacks.candidates import Candidate, Chosen
    from layers.layer2_stacks.choice import Choice
    from layers.layer2_stacks.collect_live import Live, Service
    from perfkit.cli.layer2_load import LoadWanted

Pid = Annotated[
    int | None, typer.Option("--pid", metavar="N", help="Record this very process (else the likeliest one).")
]
Port = Annotated[
    int | None, typer.Option("--port", metavar="N", help="Record the service that listens on this port.")
]
Server = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="The same by its address; its counters are read."),
]
Launch = Annotated[
    str | None,
    typer.Option("--launch", metavar="CMD", help="Start this server, with {port} for a free port; stop it."),
]
Load = Annotated[int | None, typer.Option("--load", metavar="N", help="Keep N requests in flight meanwhile.")]
Endpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint", metavar="NAME", help="With --load: as perfkit sweep; chat, speech and others."
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="With --load: the server's first, if not given.")
]
Data = Annotated[
    str | None,
    typer.Option("--data", metavar="SET", help="With --load: text, audio or a file (docs/sweep.md)."),
]
Header = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="With --load: sent with each request, kept nowhere."),
]
Rate = Annotated[
    int | None,
    typer.Option("--rate", metavar="HZ", help="Looks a second; chosen by what one costs, if not given."),
]
Seconds = Annotated[
    int, typer.Option("--seconds", metavar="S", help=f"Of each capture; {SECONDS} if not given.")
]
Repeats = Annotated[
    int,
    typer.Option("--repeats", metavar="N", help=f"Captures of each mode, in turn; {REPEATS} if not given."),
]
ActiveRepeats = Annotated[
    int | None,
    typer.Option(
        "--active-repeats", metavar="N", help="Of these without --idle; as many as with it, if not given."
    ),
]
Gil = Annotated[
    bool, typer.Option("--gil/--no-gil", help="Also ask, shortly, who holds the interpreter's lock.")
]

THREADS_NAMED = 8
LIVE_HOST = "http://127.0.0.1"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options say."""

    pid: int | None
    port: int | None
    server: str | None
    launch: str | None
    load: int | None
    endpoint: str | None
    model: str | None
    data: str | None
    headers: dict[str, str]
    rate_hz: int | None
    seconds: int
    repeats: int
    active_repeats: int | None
    gil: bool

    @property
    def given(self) -> bool:
        """Whether a live service is named at all."""
        return any(one is not None for one in (self.pid, self.port, self.server, self.launch))

    def refuse_alone(self) -> None:
        """UsageError for what says how to record, where nothing is recorded."""
        given = {"--load": self.load, "--endpoint": self.endpoint, "--model": self.model, "--data": self.data}
        named = [option for option, value in (given | {"--rate": self.rate_hz}).items() if value is not None]
        if named or self.headers:
            raise UsageError(f"{(*named, '--header')[0]}: name the service to record, such as --server URL")

    def check(self) -> None:
        """UsageError for what cannot be."""
        if sum(one is not None for one in (self.port, self.server)) > 1:
            raise UsageError("--port and --server name the same thing: give one of them")
        if self.pid is not None and (self.port is not None or self.launch is not None):
            raise UsageError("--pid names the process: leave out --port and --launch")
        positive = (("--load", self.load), ("--rate", self.rate_hz))
        for option, value in (*positive, ("--seconds", self.seconds), ("--repeats", self.repeats)):
            if value is not None and value < 1:
                raise UsageError(f"{option} {value}: give 1 or more")
        if self.load is not None and self.server is None and self.port is None and self.launch is None:
            raise UsageError("--load needs an address to send to: --server URL")
        if self.active_repeats is not None and not 0 <= self.active_repeats <= self.repeats:
            raise UsageError(
                f"--active-repeats {self.active_repeats}: of {self.repeats} repeats, give 0 to as many"
            )


def require_thread(choice: Choice, candidate: Candidate) -> None:
    """UsageError, before anything is recorded, for a thread that the process does not have."""
    names = {name for _, name in candidate.names} | {str(thread_id) for thread_id, _ in candidate.names}
    if choice.thread and candidate.names and choice.thread not in names:
        there = first_few((name for _, name in candidate.names), THREADS_NAMED)
        raise UsageError(f"--thread {choice.thread}: process {candidate.facts.pid} has {there}")


def refuse_with_files(given: Sequence[str]) -> None:
    """UsageError where captures that exist are named beside a service."""
    if given:
        raise UsageError(f"{given[0]}: a service is recorded, or captures are read: leave out one of them")


def record_and_judge(wanted: Wanted, choice: Choice, investigation: Path, *, keep: bool) -> Judged:
    """The result of recording now."""
    from layers.layer2_stacks.judge_live import judge_live

    live = record_now(wanted, choice, investigation, keep)
    result = judge_live(live.facts, live.captures, choice=choice, unread=live.unread)
    return Judged(result, live.captures, (), live.artifacts)


def record_now(wanted: Wanted, choice: Choice, investigation: Path, keep: bool) -> Live:
    """Record now, or until told to end; captures are kept as artifacts of the investigation, or nowhere."""
    from layers.collectors.stacks.session import GIL_SECONDS, Follow, SessionPlan
    from layers.evidence.store import ARTIFACTS, Investigation
    from layers.layer2_stacks.collect_live import new_folder
    from perfkit.cli.stack_recording import record_service

    wanted.check()
    with ExitStack() as stack:
        if keep:
            with Investigation.open(investigation):
                folder = new_folder(investigation / ARTIFACTS)
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        told = stack.enter_context(told_to_end())
        service = _service(wanted, folder, stack, told.is_set)

        def look(chosen: Chosen) -> None:
            target = chosen.target
            if not service.standing:  # else the likeliest may not have been looked into
                require_thread(choice, chosen.candidate)
            say(f"process {target.pid} ({' '.join(target.argv)[:80]}): {'; '.join(target.why)}")

        plan = SessionPlan(
            folder=folder,
            seconds=wanted.seconds,
            repeats=wanted.repeats,
            active_repeats=wanted.active_repeats,
            rate_hz=wanted.rate_hz,
            gil_seconds=min(GIL_SECONDS, wanted.seconds) if wanted.gil else 0,
        )
        return record_service(service, plan, Follow(told.is_set, say), look)


def _service(wanted: Wanted, folder: Path, stack: ExitStack, told: Callable[[], bool]) -> Service:
    """What is named: started if need be, its processes, its counters, the load that it is to have."""
    from layers.collectors.servers import seen_roots, service_roots
    from layers.collectors.stacks.standing import standing_still
    from layers.layer2_stacks.collect_live import Service
    from layers.layer3_sweep.subject import Served, Subject, serving
    from perfkit.cli.stack_recording import loaded_service

    url = wanted.server if wanted.port is None else f"{LIVE_HOST}:{wanted.port}"
    if wanted.launch is not None:
        say(f"starting {wanted.launch}")
        subject = Subject(url or "", wanted.launch)
        served = stack.enter_context(serving(subject, {}, folder / "server.log"))
        roots, url = served.roots, served.url
    elif wanted.pid is not None:
        roots = tuple(service_roots([wanted.pid], None))
    else:
        roots = tuple(service_roots([], url))
    way = roots if wanted.pid is None or url is None else (*roots, *seen_roots(url))
    if standing := standing_still(way):  # nothing is asked of a server that cannot answer
        return Service(roots, wanted.pid, standing=standing)
    if url is None:
        return Service(roots, wanted.pid)
    adapter = adapter_of(url, wanted.headers)
    served = Served(url, roots)
    return loaded_service(served, adapter, _load_of(wanted), folder, told, named=wanted.pid, way=way)


def adapter_of(url: str, headers: dict[str, str]) -> GenericAdapter | None:
    from layers.collectors.server_adapters.adapter import ServerCallFailed
    from layers.collectors.server_adapters.registry import adapter_for

    try:
        return adapter_for(url, headers)
    except ServerCallFailed as error:
        say(f"the server's own counters cannot be read: {error}")
        return None


def _load_of(wanted: Wanted) -> LoadWanted | None:
    from perfkit.cli.layer2_load import LoadWanted

    if wanted.load is None:
        return None
    return LoadWanted(wanted.load, wanted.endpoint, wanted.model, wanted.data, wanted.headers)
