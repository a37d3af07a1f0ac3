"""A core for the device process alone, and the other ones for everybody else of the engine.

A host and a device that take turns on one core are no host and device: the host launches a whole step while
the device does nothing, then waits while the device does all of it. Where cores are few the scheduler does
put them together, for both never rest. So a device can claim a core. The claim is a name that only one
process can have at a time (an abstract Unix socket); it ends with that process, however that ends.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass

from sample_engine.errors import DeviceError

CLAIM = "\0sample_engine.device.core."


@dataclass(frozen=True, slots=True)
class CoreClaim:
    """A core for a device, until the claim is given up."""

    core: int
    name: socket.socket

    def give_up(self) -> None:
        self.name.close()


def claim_core() -> CoreClaim | None:
    """The last core that this process may use and that no device has claimed; the first one is for hosts.
    Where all are claimed, the last one: devices that work by turns, as in comparisons, do not feel each other
    there. None where there is only one.
    """
    cores = sorted(os.sched_getaffinity(0), reverse=True)[:-1]
    if not cores:
        return None
    name = socket.socket(socket.AF_UNIX)
    for core in cores:
        with suppress(OSError):  # another device has the name
            name.bind(f"{CLAIM}{core}")
            return CoreClaim(core, name)
    return CoreClaim(cores[0], name)


def go_first(process_id: int, claim: CoreClaim | None) -> None:
    """Let a process run before all others on its core: a GPU does not wait for processes of its host, either.
    Raises DeviceError.
    """
    if claim is None:
        raise DeviceError(
            "there is only one core: a device that goes first would keep its host from launching"
        )
    try:
        os.sched_setscheduler(process_id, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        raise DeviceError("to go first, the device needs the right to real time (ulimit -r)") from None


def separate(process_id: int, core: int) -> None:
    """Bind a process to a core, and all threads of this one to the others that it may use."""
    others = os.sched_getaffinity(0) - {core}
    if not others:
        raise ValueError(
            f"core {core} is the only one that this process may use: nothing is left for the host"
        )
    os.sched_setaffinity(process_id, {core})
    for thread in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):  # it ended just now
            os.sched_setaffinity(int(thread), others)
