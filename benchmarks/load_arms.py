"""One load client under measurement: keeps N requests in flight for some seconds, and says what it cost.

python -m benchmarks.load_arms ARM PORT N CHUNKS GAP_MS SECONDS prints one line of JSON.

    floor      a protocol on uvloop that only reads bytes, stamps each, and looks for the end of the answer
    perfkit    perfkit's load process as it is used, its records on disk included
    aiohttp    aiohttp on uvloop, one session; each event stamped when it is handed over, then decoded with
               json, as vLLM's and SGLang's clients do
    httpx      the same on httpx

*Added* is the stamp that the client gives an event, less the moment of sending that stands in it. CPU is that
of the load process while requests are in flight.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from layers.collectors.load.folder import pulse_path, wire_path
from layers.collectors.load.item import Item, write_items
from layers.collectors.load.plan import EndpointChoice, Extent, Load, LoadPlan, Target
from layers.collectors.load.responder import END, added_ns
from layers.collectors.load.team import run_load
from layers.collectors.load.wire_log import read_wire
from layers.evidence.record_log import read_records

NS_PER_S = 1_000_000_000
WARMUP_S = 0.7
LONGEST_PULSE_S = 1.1
"""From one record of its CPU to the next; the time that counts begins and ends with one."""
BODY = {"model": "benchmark-model", "stream": True, "messages": [{"role": "user", "content": "hello"}]}


@dataclass
class Cost:
    """What one measurement found, warm-up left out. `added_ns` and `first_ns` (first events) are raw."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    chunks: int = 0
    added_ns: list[int] = field(default_factory=list)
    first_ns: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Task:
    """What to ask for."""

    port: int
    n: int
    chunks: int
    gap_ms: int
    seconds: float

    @property
    def path(self) -> str:
        return f"/stream/{self.chunks}/{self.gap_ms}"

    @property
    def request(self) -> bytes:
        body = json.dumps(BODY).encode()
        head = f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


Stamped = Sequence[tuple[int, bytes]]
"""Pieces of one answer with their times, to be looked into after the run."""


class Meter:
    """Keeps all answers, and the CPU from the end of the warm-up to the end of the measured time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._marks: list[tuple[int, int]] = []
        self._answers: list[Stamped] = []

    def answer(self) -> list[tuple[int, bytes]]:
        """A place for the pieces of one more answer."""
        answer: list[tuple[int, bytes]] = []
        self._answers.append(answer)
        return answer

    async def over(self) -> None:
        """Wait until the time is over. A client that is behind is late here too, and that counts as its
        time."""
        for wait_s in (WARMUP_S, self._seconds):
            await asyncio.sleep(wait_s)
            self._marks.append((time.monotonic_ns(), time.process_time_ns()))

    def cost(self) -> Cost:
        (begin_ns, cpu_ns), (end_ns, cpu_end_ns) = self._marks
        cost = Cost((end_ns - begin_ns) / NS_PER_S, (cpu_end_ns - cpu_ns) / NS_PER_S)
        for answer in self._answers:
            look_into(answer, begin_ns, end_ns, cost)
        return cost


def look_into(answer: Stamped, begin_ns: int, end_ns: int, cost: Cost) -> None:
    """Events of one answer that came in this time: each was there when the read came that brought its moment
    of sending."""
    inside = [(stamp, data) for stamp, data in answer if begin_ns <= stamp < end_ns]
    added = added_ns(inside)
    cost.chunks += len(added)
    cost.added_ns += added
    if added and inside[0] == answer[0]:
        cost.first_ns.append(added[0])


class Null(asyncio.Protocol):
    """The floor."""

    def __init__(self, task: Task, meter: Meter) -> None:
        self._request, self._meter = task.request, meter

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._answer = self._meter.answer()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._answer.append((time.monotonic_ns(), data))
        if data.endswith(END):
            self._ask()


async def floor(task: Task, meter: Meter) -> None:
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: Null(task, meter), "127.0.0.1", task.port) for _ in range(task.n)
    ]
    await meter.over()
    for transport, _ in made:
        transport.abort()


Lines = Callable[[], AsyncIterator[bytes]]


async def ask(lines: Lines, meter: Meter) -> None:
    """One slot of a client that reads line by line and decodes each event as it comes."""
    while True:
        answer = meter.answer()
        async for line in lines():
            stamp_ns = time.monotonic_ns()
            if line.startswith(b"data: {"):
                json.loads(line[len(b"data: ") :])
                answer.append((stamp_ns, line))


async def ask_all(n: int, lines: Lines, meter: Meter) -> None:
    """All slots, until the time is over."""
    async with asyncio.TaskGroup() as group:
        slots = [group.create_task(ask(lines, meter)) for _ in range(n)]
        await meter.over()
        for slot in slots:
            slot.cancel()


async def with_aiohttp(task: Task, meter: Meter) -> None:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, read_bufsize=10 << 20) as session:

        async def lines() -> AsyncIterator[bytes]:
            async with session.post(f"http://127.0.0.1:{task.port}{task.path}", json=BODY) as response:
                async for line in response.content:
                    yield line

        await ask_all(task.n, lines, meter)


async def with_httpx(task: Task, meter: Meter) -> None:
    httpx = importlib.import_module("httpx")
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=None) as client:

        async def lines() -> AsyncIterator[bytes]:
            url = f"http://127.0.0.1:{task.port}{task.path}"
            async with client.stream("POST", url, json=BODY) as response:
                async for line in response.aiter_lines():
                    yield line.encode()

        await ask_all(task.n, lines, meter)


def in_loop(run: Callable[[Task, Meter], Awaitable[None]]) -> Callable[[Task], Cost]:
    def measured(task: Task) -> Cost:
        async def main() -> Cost:
            meter = Meter(task.seconds)
            await run(task, meter)
            return meter.cost()

        return uvloop.run(main())

    return measured


def with_perfkit(task: Task) -> Cost:
    """A run of the load client; what it costs is read from what it recorded."""
    with tempfile.TemporaryDirectory() as folder:
        items = Path(folder, "items.log")
        write_items(items, [Item("hello", text="hello")])
        plan = LoadPlan(
            folder=Path(folder, "run"),
            target=Target("127.0.0.1", "127.0.0.1", task.port),
            endpoint=EndpointChoice("chat", "benchmark-model", path=task.path),
            items=items,
            load=Load(task.n),
            extent=Extent(duration_s=task.seconds + WARMUP_S + LONGEST_PULSE_S),
            keep_wire=True,
        )
        run = run_load(plan)
        assert run.whole and all(record.ok for record in run.records), run.ends
        return perfkit_cost(plan, run.begin_ns + int(WARMUP_S * NS_PER_S))


def perfkit_cost(plan: LoadPlan, begin_ns: int) -> Cost:
    """CPU between the first pulse after the warm-up and the end of the load."""
    pulses = [record for _, record in read_records(pulse_path(plan.folder, 0), [])]
    first = next(pulse for pulse in pulses if pulse["kind"] == "pulse" and pulse["mono_ns"] >= begin_ns)
    until_ns = begin_ns + int((plan.extent.duration_s or 0) * NS_PER_S)
    last = [p for p in pulses if "cpu_ns" in p and p["mono_ns"] <= until_ns][-1]
    seconds, cpu = (last[name] - first[name] for name in ("mono_ns", "cpu_ns"))
    cost = Cost(seconds / NS_PER_S, cpu / NS_PER_S)
    for exchange in read_wire(wire_path(plan.folder, 0), []):
        look_into(list(exchange.pieces), first["mono_ns"], last["mono_ns"], cost)
    return cost


ARMS: dict[str, Callable[[Task], Cost]] = {
    "floor": in_loop(floor),
    "perfkit": with_perfkit,
    "aiohttp": in_loop(with_aiohttp),
    "httpx": in_loop(with_httpx),
}


def main() -> None:
    arm, *numbers, seconds = sys.argv[1:]
    port, n, chunks, gap_ms = map(int, numbers)
    cost = ARMS[arm](Task(port, n, chunks, gap_ms, float(seconds)))
    print(json.dumps(asdict(cost)))


if __name__ == "__main__":
    main()
