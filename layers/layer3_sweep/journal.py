"""What a sweep has done so far, in a file that survives a kill at any moment.

    server   a server answers: whose arm and cell it is, and what it says of itself
    pass     a part of a pass is about to begin: its key, its number, its folder
    ended    that part ended by itself, and why; a part without it was cut

A pass stands once its last part has ended. One that was cut goes on in a further part, with the sequences
that no earlier part holds: those were answered, or in flight, and are never sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgspec

from layers.collectors.load.plan import Load
from layers.collectors.server_adapters.adapter import ServerInfo
from layers.evidence.record_log import RecordLog, read_records
from layers.layer3_sweep.protocol import PassKey
from parsers.errors import UnreadableInput
from parsers.loss import Loss


@dataclass(frozen=True, slots=True)
class Part:
    """One run of the load client for a pass. `folder` is below that of the sweep; `ended`: why it ended by
    itself, empty where it was cut."""

    key: PassKey
    number: int
    folder: str
    ended: str = ""
    error: str = ""

    @property
    def whole(self) -> bool:
        return bool(self.ended)


@dataclass(frozen=True, slots=True)
class Answering:
    """A server as it was found. `info`: None where it says nothing of itself; `machine` its name where it
    runs on the client's own; `problem`: why its processes are not known."""

    arm: str
    cell: int
    url: str
    info: ServerInfo | None
    machine: str = ""
    problem: str = ""


@dataclass(slots=True)
class Done:
    """The parts of every pass that was begun, in the order of running, and the last server of each arm and
    cell."""

    parts: dict[PassKey, list[Part]] = field(default_factory=dict)
    servers: dict[tuple[str, int], Answering] = field(default_factory=dict)

    def ended(self, key: PassKey) -> bool:
        """Whether this pass stands as it is."""
        return key in self.parts and self.parts[key][-1].whole

    def of(self, key: PassKey) -> Sequence[Part]:
        return self.parts.get(key, ())

    def take(self, part: Part) -> None:
        """A part that begins, or that has ended."""
        parts = self.parts.setdefault(part.key, [])
        if parts and parts[-1].number == part.number:
            parts[-1] = part
        else:
            parts.append(part)


class Journal:
    """Writes it. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self._log = RecordLog(path)

    def answers(self, server: Answering) -> None:
        self._log.append({"kind": "server", **msgspec.to_builtins(server)})

    def begins(self, part: Part) -> None:
        self._log.append({"kind": "pass", **_names(part)})

    def ended(self, part: Part) -> None:
        self._log.append({"kind": "ended", **_names(part), "ended": part.ended, "error": part.error})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()


def read_journal(path: Path, losses: list[Loss]) -> Done:
    """What was done; nothing where there is no journal yet. UnreadableInput where it is none."""
    done = Done()
    if not path.exists():
        return done
    for line, record in read_records(path, losses):
        try:
            if record["kind"] == "server":
                server = msgspec.convert(record, Answering)
                done.servers[server.arm, server.cell] = server
            else:
                done.take(_part(record))
        except (msgspec.ValidationError, KeyError, TypeError) as error:
            raise UnreadableInput(f"{path}: line {line} is no record of a sweep: {error}") from error
    return done


def _part(record: dict[str, Any]) -> Part:
    key = PassKey(record["cell"], msgspec.convert(record["load"], Load), record["repeat"], record["arm"])
    return Part(key, record["part"], record["folder"], record.get("ended", ""), record.get("error", ""))


def _names(part: Part) -> dict[str, Any]:
    key = part.key
    return {
        "cell": key.cell,
        "load": msgspec.to_builtins(key.load),
        "repeat": key.repeat,
        "arm": key.arm,
        "part": part.number,
        "folder": part.folder,
    }
