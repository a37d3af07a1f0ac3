"""What does `perfkit layer1` say of a server's traces: of an eager one, and of the same load with graphs?

python -m benchmarks.engine_traces [--size small] [--rounds 3] [--core first] [--keep FOLDER]

A round starts two servers, one after the other, `--preset baseline` and `--preset optimized`. Each is warmed
up with the load and then profiled under it: 4 clients in a closed loop, 3 requests of 8 words each. Every
round counts. `--core` is the server's `device_core`: with `first`, which needs the right to real time, no
other process holds up the device. Printed is what layer1 says, and two shares of the idle time: *launching*
passed while the host was launching too slowly, *queued* with work already queued, so through no fault of the
host. Then the claims, as held or not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.engine_vocoder import say
from tests.engine_servers import Server, serving

CLIENTS, REQUESTS_A_CLIENT, WORDS = 4, 3, 8
SWITCHES = {"eager": ("--preset", "baseline"), "graph": ("--preset", "optimized")}
OK = 200


@dataclass(frozen=True, slots=True)
class Judged:
    """What layer1 says of a trace; shares are 0..1."""

    word: str
    directional: bool
    busy: float
    operations: int
    launching: float
    queued: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Profile a server, eager and with graphs.")
    parser.add_argument("--size", default="small")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", choices=("any", "own", "first"), default="own")
    parser.add_argument("--keep", type=Path, help="a folder for the traces")
    asked = parser.parse_args()
    print(f"size {asked.size}, device_core={asked.core}")
    print(f"{'round':6}{'trace':7}{'verdict':13}{'busy':>7}{'operations':>12}{'launching':>11}{'queued':>8}")
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        for index in range(asked.rounds):
            where = (asked.keep or Path(folder)).resolve() / str(index)
            rounds.append({name: judged(traced(name, asked.size, asked.core, where)) for name in SWITCHES})
            for name, one in rounds[-1].items():
                show(index, name, one)
    sys.exit(0 if say(claims(rounds)) else 1)


def traced(name: str, size: str, core: str, folder: Path) -> Path:
    """A trace of a fresh server under the load."""
    graphs = "on" if name == "graph" else "off"
    options = (*SWITCHES[name], "--set", f"device_core={core}")
    with serving(*options, SAMPLE_ENGINE_SIZE=size, SAMPLE_ENGINE_CUDA_GRAPH=graphs) as server:
        load(server)
        body = {"trace_path_template": f"{folder}/{name}", "event_dir": str(folder)}
        server.post("/start_profile", body)
        load(server)
        return Path(server.post("/stop_profile").json["trace_path"])


def load(server: Server) -> None:
    """The same each time."""

    def client() -> None:
        for _ in range(REQUESTS_A_CLIENT):
            if (status := server.speak(WORDS).status) != OK:
                raise RuntimeError(f"a request was answered {status}")

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def judged(trace: Path) -> Judged:
    command = [sys.executable, "-m", "perfkit", "layer1", "--trace", str(trace), "--no-record", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    document: dict[str, Any] = json.loads(done.stdout)
    values = {one["name"]: one["value"] for one in document["measurements"]}
    (device,) = document["devices"]
    return Judged(
        word=document["verdict"]["word"],
        directional=document["verdict"]["directional"],
        busy=device["device_op_ratio"],
        operations=device["events"],
        launching=values["idle_share_host_was_launching_too_slowly"],
        queued=values["idle_share_work_was_queued_the_device_had_not_started_it"],
    )


def show(index: int, name: str, one: Judged) -> None:
    print(
        f"{index:<6}{name:7}{one.word + ' ?' * one.directional:13}{one.busy:7.1%}{one.operations:12,}"
        f"{one.launching:11.1%}{one.queued:8.1%}",
        flush=True,
    )


def claims(rounds: list[dict[str, Judged]]) -> dict[str, bool]:
    eager = [one["eager"] for one in rounds]
    return {
        "every eager trace is host-bound": all(one.word == "host-bound" for one in eager),
        "and none of them directional only": not any(one.directional for one in eager),
        "most of its idle time the host was launching": all(one.launching > 1 / 2 for one in eager),
        "the graph trace of the same load is busier": all(
            one["graph"].busy > one["eager"].busy for one in rounds
        ),
    }


if __name__ == "__main__":
    main()
