"""A server for a bench: started on a free port, read through /metrics, ended."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from sample_engine.children import child_environment

SHOWN_S = 0.5
"""Longer than the engine takes to bring its gauges up to date."""
END_TIMEOUT_S = 20.0


class NotStarted(RuntimeError):
    """The server said on stderr why; `code` is its exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the server did not start (exit code {code})")
        self.code = code


@dataclass(frozen=True, slots=True)
class Counters:
    """All counters and gauges at one moment, by name and label value."""

    values: dict[tuple[str, str], float]

    def get(self, name: str, value: str = "") -> float:
        """Names as in `observe/catalogue.py`; what a server does not have is 0."""
        return self.values.get((f"engine_{name}", value), 0.0)

    def since(self, before: Counters) -> Counters:
        return Counters({key: number - before.values.get(key, 0.0) for key, number in self.values.items()})


@dataclass(frozen=True, slots=True)
class Server:
    """A running one."""

    port: int

    def info(self) -> Any:
        return json.loads(self._get("/server_info"))

    def counters(self) -> Counters:
        """Once they show all that has happened until now."""
        time.sleep(SHOWN_S)
        families = text_string_to_metric_families(self._get("/metrics").decode())
        samples = [one for family in families for one in family.samples if "le" not in one.labels]
        return Counters({(one.name, "".join(one.labels.values())): one.value for one in samples})

    def _get(self, path: str) -> bytes:
        with urlopen(f"http://127.0.0.1:{self.port}{path}") as reply:
            data: bytes = reply.read()
            return data


@contextmanager
def serving(options: Sequence[str]) -> Iterator[Server]:
    """`options` are those of `serve`. Raises NotStarted."""
    command = [sys.executable, "-P", "-m", "sample_engine", "serve", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=child_environment()) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if "serving" not in line:
                raise NotStarted(process.wait(END_TIMEOUT_S))
            yield Server(int(line.rsplit(":", 1)[1]))
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
