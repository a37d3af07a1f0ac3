"""The load processes of one run: started, begun at the same moment, followed, ended, and read.

`run_load` is the way in. Whatever happens to a process, what it recorded is read: one that is killed costs
what it had not sent yet, and the run says so.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

import msgspec

from layers.collectors.bounded import readable
from layers.collectors.load.driver import Why
from layers.collectors.load.flight import Count, Flight
from layers.collectors.load.folder import PLAN, flight_path
from layers.collectors.load.plan import LoadPlan
from layers.collectors.load.plan_json import encode_plan, write_plan
from layers.collectors.load.process import Ended, Ready
from layers.collectors.load.records import RequestRecord
from layers.collectors.load.settle import read_run, settle
from parsers.children import child_command, child_environment
from parsers.errors import InvalidMeasurement, StoreError
from parsers.loss import Loss

READY_TIMEOUT_S = 120.0
"""To read the items, build the requests and open the connections."""
BEGIN_IN_NS = 50_000_000
"""From the word to the beginning, so that all processes have heard it."""
LOOK_EVERY_S = 0.2
STOP_TIMEOUT_S = 30.0
"""From a stop to the end of a process, which reads what it recorded first; then it is killed."""
KILLED = "killed"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands, over all its processes. `in_flight` is what was sent and has not ended."""

    elapsed_s: float
    sent: int
    ok: int
    shed: int
    failed: int
    measuring: bool

    @property
    def in_flight(self) -> int:
        return self.sent - self.ok - self.shed - self.failed


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How one process ended: a `Why`, or `killed`."""

    process: int
    why: str
    error: str


@dataclass(frozen=True, slots=True)
class LoadRun:
    """One run and all that came of it. `connect_problem`: why not all connections could be opened ahead."""

    folder: Path
    begin_ns: int
    end_ns: int
    ends: tuple[ProcessEnd, ...]
    connections: int
    connect_problem: str
    records: tuple[RequestRecord, ...]
    losses: tuple[Loss, ...]

    @property
    def whole(self) -> bool:
        """Whether every process did all that the plan asks for."""
        return all(end.why in (Why.DONE, Why.NOT_DRAINED) for end in self.ends)


def run_load(plan: LoadPlan, watch: Callable[[Progress], bool] = lambda _: True) -> LoadRun:
    """Run a plan to its end in a new folder. `watch` is called a few times a second; False stops the run.

    Raises StoreError where the folder is not new or cannot be written, InvalidMeasurement where a process
    cannot begin. Ctrl-C stops the run, keeps what it recorded, and is raised again.
    """
    _make_folder(plan)
    with LoadTeam(plan) as team:
        begin_ns = team.begin()
        while team.running:
            if not watch(team.progress(begin_ns)):
                team.stop()
            time.sleep(LOOK_EVERY_S)
        ends = team.ends()
    return read_back(plan, begin_ns, ends, team.ready)


def read_back(
    plan: LoadPlan, begin_ns: int, ends: Sequence[ProcessEnd], ready: Sequence[Ready] = ()
) -> LoadRun:
    """What a run recorded, also one whose processes or starter were killed."""
    losses = [loss for number in range(plan.processes) for loss in _settled(plan, number)]
    records = read_run(plan.folder, losses)
    ended_ns = [record.end_ns for record in records if record.end_ns is not None]
    return LoadRun(
        folder=plan.folder,
        begin_ns=begin_ns,
        end_ns=max(ended_ns, default=begin_ns),
        ends=tuple(ends),
        connections=sum(one.connections for one in ready),
        connect_problem=next((one.problem for one in ready if one.problem), ""),
        records=tuple(records),
        losses=tuple(losses),
    )


def _settled(plan: LoadPlan, process: int) -> Sequence[Loss]:
    """Nothing of a process that never came to open its files."""
    return settle(plan, process).losses if flight_path(plan.folder, process).exists() else ()


def _make_folder(plan: LoadPlan) -> None:
    try:
        plan.folder.mkdir(parents=True)
        write_plan(plan.folder / PLAN, plan)
    except OSError as error:
        raise StoreError(f"{plan.folder}: {error.strerror}: a run needs a folder of its own") from error


class LoadProcess:
    """One process: asked on its stdin, heard on its stdout, followed by its flight file."""

    def __init__(self, plan: LoadPlan, number: int) -> None:
        self.number = number
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (close closes it)
        self._process = subprocess.Popen(
            child_command("layers.collectors.load.process:main", str(number)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=child_environment(),
            start_new_session=True,
        )
        self._tell(encode_plan(plan))

    def wait_ready(self, timeout_s: float) -> Ready:
        if not readable(cast(IO[bytes], self._process.stdout), timeout_s):
            raise InvalidMeasurement(f"load process {self.number}: not ready in {timeout_s:g} s")
        line = self._heard()
        try:
            return msgspec.json.decode(line, type=Ready)
        except msgspec.DecodeError:
            raise InvalidMeasurement(self._fault(line)) from None

    def begin(self, begin_ns: int) -> None:
        self._tell(b"start %d" % begin_ns)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Its stdin closes: it sends nothing more and ends."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def end(self) -> ProcessEnd:
        """How it ended; it is killed where it does not end."""
        self.stop()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        line = self._heard()
        try:
            ended = msgspec.json.decode(line, type=Ended)
        except msgspec.DecodeError:
            return ProcessEnd(self.number, KILLED, self._fault(line))
        return ProcessEnd(self.number, ended.why, ended.error)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _tell(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it ended; what it says on stdout tells why
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()

    def _heard(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def _fault(self, line: bytes) -> str:
        """Why it said something else, or nothing."""
        try:
            said = msgspec.json.decode(line, type=dict[str, str]).get("fault")
        except msgspec.DecodeError:
            said = None
        if said:
            return said
        code = self._process.wait()
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip().splitlines()
        how = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"load process {self.number} {how}: {words[-1] if words else 'no words'}"


class LoadTeam:
    """All processes of a run. Use as a context manager: leaving it ends them."""

    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        self._exit = ExitStack()
        self._processes: list[LoadProcess] = []
        self._flights: list[Flight] = []
        self.ready: list[Ready] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for number in range(self._plan.processes):
                process = LoadProcess(self._plan, number)
                stack.callback(process.close)
                self._processes.append(process)
            self.ready = [process.wait_ready(READY_TIMEOUT_S) for process in self._processes]
            for process in self._processes:
                path = flight_path(self._plan.folder, process.number)
                self._flights.append(stack.enter_context(Flight(path)))
            self._exit = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:  # what was recorded is read by its processes, as after any stop
            self.ends()
        self._exit.close()

    def begin(self) -> int:
        """The moment at which all processes begin."""
        begin_ns = time.monotonic_ns() + BEGIN_IN_NS
        for process in self._processes:
            process.begin(begin_ns)
        return begin_ns

    @property
    def running(self) -> bool:
        return any(process.running for process in self._processes)

    def progress(self, begin_ns: int) -> Progress:
        counts = {what: sum(flight.counted(what) for flight in self._flights) for what in Count}
        return Progress(
            elapsed_s=(time.monotonic_ns() - begin_ns) / 1e9,
            sent=counts[Count.SENT],
            ok=counts[Count.OK],
            shed=counts[Count.SHED],
            failed=counts[Count.FAILED],
            measuring=all(flight.counted(Count.MEASURED_SINCE_NS) for flight in self._flights),
        )

    def stop(self) -> None:
        for process in self._processes:
            process.stop()

    def ends(self) -> list[ProcessEnd]:
        """Wait for the end of all."""
        self.stop()
        return [process.end() for process in self._processes]
