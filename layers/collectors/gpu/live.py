"""Samples while something else runs: starts the samplers, keeps them honest, and reads their recordings.

    with LiveSampling(folder, period_ms=100) as live:
        ...the load...
    recordings = live.recordings

Samplers are processes of their own, in a session of their own: a lost GPU, a call that hangs in the driver or
a sampler that dies costs samples and never the run. One that does not end when its stdin closes is killed,
and one that even then does not is left behind and named in `problems`. Without a GPU, or without any way to
look at one, `recordings` is empty and `problems` say why.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from layers.collectors.bounded import readable
from layers.collectors.gpu.readings import Recording, read_recording, read_start
from layers.collectors.gpu.sampler import PRIVATE, READY
from layers.collectors.stopping import stop_family
from parsers.children import child_command
from parsers.errors import UsageError

NS_PER_MS = 1_000_000

DEFAULT_PERIOD_MS = 100.0
MIN_PERIOD_MS = 20.0
"""Faster than the driver's own sample period (1/6 to 1 s) repeats values; 20 ms still shows its steps."""
START_TIMEOUT_S = 20.0
"""Opening NVML takes seconds where the driver must be loaded first (6 s reported)."""
STOP_TIMEOUT_S = 6.0
"""Longer than the sampler waits for its own child; then it is killed."""

MAIN = "nvml"
INSTEAD = "nvidia-smi"
BESIDE = "dcgmi"
"""NVML; nvidia-smi where NVML cannot be used; and dcgmi for devices whose SM activity NVML does not tell."""
EMULATED = "emulated"
"""The bundled engine's own device, in the place of all of them."""


class Sampler:
    """One sampler process and its recording. `private` is one more target, which goes to it by stdin."""

    def __init__(
        self, source: str, path: Path, period_ns: int, targets: Sequence[str], private: str = ""
    ) -> None:
        self.source, self.path = source, path
        arguments = (source, str(path), str(period_ns), *targets, *([PRIVATE] if private else []))
        self._process = subprocess.Popen(
            child_command("layers.collectors.gpu.sampler:main", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if private:
            self._say(private)

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already, and `wait_ready` says why
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def wait_ready(self, timeout_s: float) -> str:
        """Nothing once it samples; else why it never will, after which it is gone."""
        assert self._process.stdout is not None
        answered = readable(self._process.stdout, timeout_s)
        said = self._process.stdout.readline().decode(errors="replace").strip() if answered else ""
        if said == READY:
            return ""
        ended = self.stop()
        self._discard()
        if not answered:
            return f"{self.source}: no answer in {timeout_s:g} s"
        said = said.removeprefix(f"{self.source}: ")
        return f"{self.source}: {said}" if said else ended

    def _discard(self) -> None:
        """Remove the recording of a sampler that recorded nothing."""
        with suppress(OSError):
            if self.path.stat().st_size == 0:
                self.path.unlink()

    def stop(self) -> str:
        """End the process; nothing if it went well, else what went wrong."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return self._kill()
        words = self._process.stdout.read().decode(errors="replace").strip()
        self._process.stdout.close()
        return f"{self.source}: the sampler ended with code {code}: {words or 'no words'}" if code else ""

    def _kill(self) -> str:
        """With its children: a listing that hangs would outlive it in a session of its own."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        left = stop_family(self._process.pid, grace_s=0, reap=self._reap).left
        if left:
            return f"{self.source}: the sampler (pid {left[0]}) hangs in the driver and could not be ended"
        return f"{self.source}: the sampler hung and was killed; what it recorded is kept"

    def _reap(self) -> None:
        self._process.poll()


class LiveSampling:
    """All samplers of one run. Use as a context manager; `recordings` and `problems` stand after it.

    `folder` takes the recordings, named after their source. `devices` are indexes in PCI order (all, where
    none is named). `blocks` are those of emulated devices, which are then sampled instead of GPUs. `also` are
    more sources by name, each with its targets. Sampling has begun when the `with` block is entered.
    `without_sm` is the one of the problems that says why SM activity is missing, if it is.
    """

    def __init__(
        self,
        folder: Path,
        period_ms: float = DEFAULT_PERIOD_MS,
        devices: Sequence[int] = (),
        also: Mapping[str, Sequence[str]] | None = None,
        blocks: Sequence[Path] = (),
    ) -> None:
        if period_ms < MIN_PERIOD_MS:
            raise UsageError(f"a sampling period of {period_ms:g} ms: the shortest is {MIN_PERIOD_MS:g} ms")
        self._folder = folder
        self._devices = [str(device) for device in devices]
        self._also = also or {}
        self._blocks = [str(block) for block in blocks]
        self._period_ns = int(period_ms * NS_PER_MS)
        self._samplers: list[Sampler] = []
        self.recordings: tuple[Recording, ...] = ()
        self.problems: list[str] = []
        self.without_sm = ""

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._blocks:
            self._start(EMULATED, self._blocks)
        elif self._start(MAIN, self._devices):
            blind = read_start(self._samplers[0].path).without_sm
            if blind and not self._start(BESIDE, [str(device) for device in blind]):
                who = ", ".join(f"gpu {device}" for device in blind)
                self.without_sm = f"SM activity of {who} is not measured: no GPM, and {self.problems[-1]}"
                self.problems[-1] = self.without_sm
        else:
            self._start(INSTEAD, self._devices)
        for source, targets in self._also.items():
            self._start(source, targets)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.problems += [problem for sampler in self._samplers if (problem := sampler.stop())]
        self.recordings = tuple(read_recording(sampler.path) for sampler in self._samplers)

    @property
    def sampling(self) -> bool:
        """Whether anything is being sampled."""
        return bool(self._samplers)

    def _start(self, source: str, targets: Sequence[str]) -> bool:
        sampler = Sampler(source, free_path(self._folder, source), self._period_ns, targets)
        problem = sampler.wait_ready(START_TIMEOUT_S)
        if problem:
            self.problems.append(problem)
        else:
            self._samplers.append(sampler)
        return not problem


def free_path(folder: Path, source: str) -> Path:
    """A name that no other sampling in this folder has, earlier or now; taken by making an empty file."""
    path, number = folder / f"samples-{source}.log", 1
    while not _take(path):
        number += 1
        path = folder / f"samples-{source}-{number}.log"
    return path


def _take(path: Path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:  # the sampler says why it cannot write there
        pass
    return True
