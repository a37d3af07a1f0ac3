"""Small Python programs to be sampled, gone after the test; and facts as if /proc said them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from layers.collectors.rights import Rights
from layers.collectors.stacks.live_facts import Attempt, LiveFacts
from layers.collectors.stacks.obstacles import Looker
from layers.collectors.stacks.process_facts import ProcessFacts
from layers.collectors.stacks.profiler import Profiler
from layers.collectors.stacks.recording import Ended, Recording, Target

LONG_S = 30.0

WORKS = """
import threading, time

def sleeps():
    threading.Event().wait()

def works():
    while True:
        until = time.perf_counter() + 0.01
        while time.perf_counter() < until:
            pass
        time.sleep(0.01)

threading.Thread(target=sleeps, name="sleeper", daemon=True).start()
print("ready", flush=True)
works()
"""
"""A thread that works half of its time and one that never does."""

SPINS = """
def spins():
    n = 0
    while True:
        n += 1

print("ready", flush=True)
spins()
"""
"""One that never leaves Python."""

CROWD = """
import sys, threading

def deep(n, event):
    deep(n - 1, event) if n else event.wait()

event = threading.Event()
for number in range(40):
    threading.Thread(target=deep, args=(40, event), name=f"worker {number}", daemon=True).start()
print("ready", flush=True)
event.wait()
"""
"""More threads than py-spy can read a thousand times a second."""

SERVER = """
import os, sys, threading, time

def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)

root = sys.argv[1]
write(f"{root}/uvicorn/server.py", "import time\\ndef serve():\\n    time.sleep(600)\\n")
write(f"{root}/engine.py", '''
import os, threading, time
def event_loop_normal():
    while True:
        time.sleep(0.005)
for n in range(5):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print(os.getpid(), flush=True)
event_loop_normal()
''')
write(f"{root}/uvicorn/__init__.py", "")
sys.path.insert(0, root)
import subprocess
child = subprocess.Popen([sys.executable, f"{root}/engine.py"], stdout=subprocess.PIPE, text=True)
engine = child.stdout.readline().strip()
import uvicorn.server
print(f"ready {engine}", flush=True)
uvicorn.server.serve()
"""
"""An HTTP front, and the engine that it started."""

LISTENER = """
import socket, subprocess, sys, time
loop = "import time\\ndef waits():\\n    while True:\\n        time.sleep(0.01)\\nwaits()"
child = subprocess.Popen([sys.executable, "-c", loop])
listening = socket.create_server(("127.0.0.1", 0))
print(child.pid, listening.getsockname()[1], flush=True)
time.sleep(600)
"""
"""A process that listens and answers nobody, and one behind it that waits for work."""


@contextmanager
def running(
    program: str, *arguments: str, prefix: Sequence[str] = (), how: Mapping[str, Any] | None = None
) -> Iterator[tuple[int, str]]:
    """The process id of a program that has said its first line, and that line. `prefix`: another program that
    starts it; `how`: as whom and where."""
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **(how or {}),
    )
    try:
        assert process.stdout is not None
        yield process.pid, process.stdout.readline().strip()
    finally:
        with_group(process.pid)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def with_group(pid: int) -> None:
    """Kill a program and all of its group."""
    os.killpg(pid, 9)


def wait_until(state: str, pid: int) -> None:
    """Until the kernel says that the process is in this state."""
    deadline = time.monotonic() + LONG_S
    while (now := _state(pid)) != state:
        assert time.monotonic() < deadline, f"process {pid} stays {now}"
        time.sleep(0.01)


def wait_until_running(pid: int) -> None:
    """Until it is not stopped."""
    deadline = time.monotonic() + LONG_S
    while _state(pid) in "Tt":
        assert time.monotonic() < deadline, f"process {pid} stays stopped"
        time.sleep(0.01)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def facts(**changed: Any) -> ProcessFacts:
    """A Python process of user 1000 that nothing stands against."""
    usual: dict[str, Any] = {
        "pid": 100,
        "start_ticks": 1,
        "argv": ("python", "-m", "engine"),
        "state": "S",
        "threads": 8,
        "users": frozenset({1000}),
        "groups": frozenset({1000}),
        "tracer": 0,
        "inner_pid": 100,
        "nested": False,
        "program": "/usr/bin/python3.12",
        "python": "3.12",
        "is_python": True,
        "free_threaded": False,
        "machine": "64-bit x86-64",
        "frameworks": (),
        "devices": (),
        "on_gpu": False,
    }
    return ProcessFacts(**usual | changed)


def rights(**changed: Any) -> Rights:
    """Those of user 1000 on a machine where anybody may trace his own processes."""
    usual: dict[str, Any] = {
        "user": 1000,
        "group": 1000,
        "scope": 0,
        "may_trace": False,
        "may_perf": False,
        "perf_paranoid": 2,
        "reads_child": True,
    }
    return Rights(**usual | changed)


def looker(version: tuple[int, ...] = (0, 4, 3), **changed: Any) -> Looker:
    """Who looks with this py-spy and these rights."""
    return Looker(rights(**changed), Profiler("/bin/py-spy", version), "64-bit x86-64")


def attempt(
    mode: str = "idle", ended: Ended = Ended.COMPLETE, discarded: str = "", **changed: Any
) -> Attempt:
    """A capture of 25 s at 20 Hz."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    recording = Recording(
        mode=mode,
        pid=100,
        command=("py-spy", "record"),
        profiler="py-spy 0.4.3",
        target_python="3.12",
        rate_hz=20,
        asked_s=25.0,
        begun=now,
        ended=now,
        wall_s=25.2,
        exit_code=0,
        ended_how=ended,
    )
    usual: dict[str, Any] = {
        "path": f"{mode}.json",
        "log_path": f"{mode}.log",
        "window_ns": (0, 25_200_000_000),
        "said": "",
        "lag_s": None,
        "tracers": (),
        "left_stopped": False,
    }
    return Attempt(recording, discarded=discarded, **usual | changed)


def live(**changed: Any) -> LiveFacts:
    """A recording of six whole captures."""
    target = Target(100, ("python",), ("it has 8 threads",), (), 8, "3.12", 100)
    attempts = tuple(attempt(mode) for _ in range(3) for mode in ("idle", "active"))
    usual: dict[str, Any] = {"target": target, "attempts": attempts, "asked": 6}
    return LiveFacts(**usual | changed)
