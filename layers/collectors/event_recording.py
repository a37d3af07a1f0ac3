"""What a server records of itself while something runs, its request events or a profile; off again however
that ends.

    with EventRecording(adapter, folder, run) as recording:
        ...the load...
    recording.files

Ctrl-C ends the block and turns it off; for a SIGKILL of perfkit there is a keeper (`events_keeper.py`).
Where the server does not do as it is told, the error says how to turn them off by hand.
"""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

import msgspec

from layers.collectors.bounded import readable
from layers.collectors.events_keeper import READY, Duty
from layers.collectors.server_adapters.adapter import ServerCallFailed
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.server_adapters.request_events import EventsOff, events_off
from parsers.children import child_command
from parsers.errors import InvalidMeasurement

START_TIMEOUT_S, END_TIMEOUT_S = 30.0, 5.0


class ServerRecording(ABC):
    """Use as a context manager; after it `files` are those that this machine sees. `off` ends this run and no
    other, where the server can tell them apart."""

    what: ClassVar[str]

    def __init__(self, adapter: GenericAdapter, folder: Path, run: str, off: EventsOff) -> None:
        self._adapter, self._folder, self._run, self._off = adapter, folder, run, off
        self._keeper: _Keeper
        self.files: Sequence[Path] = ()

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def _stop(self) -> Sequence[Path]: ...

    def __enter__(self) -> Self:
        self._keeper = _Keeper(self._adapter, self._off)
        try:
            self._start()
        except BaseException as error:
            if self._off.body:
                self._keeper.take_over()  # an answer that did not come may follow a start
            else:
                self._keeper.dismiss()  # a call that names no run would end somebody else's
            if isinstance(error, ServerCallFailed):
                raise ServerCallFailed(
                    f"{error}; a run that is left over ends by: {self._any_run}"
                ) from error
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.files = self._stop()
        except BaseException as failed:
            self._keeper.take_over()
            if isinstance(failed, ServerCallFailed):
                by_hand = self._off.by_hand(self._adapter.caller.base)
                raise ServerCallFailed(
                    f"{failed}: its {self.what} may still be on; turn it off: {by_hand}"
                ) from failed
            raise
        self._keeper.dismiss()

    @property
    def _any_run(self) -> str:
        """No id ends whatever runs."""
        return f"curl -X POST {self._adapter.caller.base}{self._off.path}"


class EventRecording(ServerRecording):
    """Request events, in files of `folder`."""

    what = "recording of request events"

    def __init__(self, adapter: GenericAdapter, folder: Path, run: str) -> None:
        super().__init__(adapter, folder, run, events_off(run))

    def _start(self) -> None:
        self._adapter.start_events(self._folder, self._run)

    def _stop(self) -> Sequence[Path]:
        return self._adapter.stop_events(self._folder, self._run)


class ProfileRecording(ServerRecording):
    """A profile, whose traces lie in `folder`, or where the server was started to write them."""

    what = "profiler"

    def __init__(self, adapter: GenericAdapter, folder: Path, run: str) -> None:
        super().__init__(adapter, folder, run, adapter.profile_off(run))

    def _start(self) -> None:
        self._adapter.start_profile(self._folder, self._run)

    def _stop(self) -> Sequence[Path]:
        return self._adapter.stop_profile(self._run)


class _Keeper:
    """The process, from when it is ready."""

    def __init__(self, adapter: GenericAdapter, off: EventsOff) -> None:
        caller = adapter.caller
        duty = Duty(caller.base, caller.headers, caller.verify, caller.ca_file, off.path, off.body)
        self._process = subprocess.Popen(
            child_command("layers.collectors.events_keeper:main"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._tell(msgspec.json.encode(duty) + b"\n")
        assert self._process.stdout is not None
        answered = readable(self._process.stdout, START_TIMEOUT_S)
        if not answered or self._process.stdout.readline().decode().strip() != READY:
            self._process.kill()
            self._close()
            raise InvalidMeasurement(
                "the keeper that turns request events off after a kill does not start: try again"
            )

    def dismiss(self) -> None:
        """They are off."""
        self._tell(b"off\n")
        self.take_over()

    def take_over(self) -> None:
        """From now on it turns them off by itself, as if perfkit were gone; it is waited for, for a while."""
        self._close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.returncode = 0  # it goes on without us, so that Popen must not mind

    def _tell(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # somebody killed it
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
