"""What a walk has done, on disk: a record for each part that began, ended, or was left out, and each choice.

Killed at any moment, a walk goes on from here: what has ended is read back and never run again, and what had
only begun is taken up with the part's own --resume where it had left a folder, else run anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from layers.evidence.record_log import RecordLog, read_records
from parsers.errors import UsageError
from parsers.loss import Loss
from perfkit.walk.model import Candidate, Decision, Outcome, Part, Way

PREFIX, LOG = "walk-", "walk.log"


@dataclass(slots=True)
class Told:
    """A journal as read: what was asked, what ended with which decision and how long its last piece took,
    what had begun and beside which artifacts, what was left out and why, what was chosen to try."""

    asked: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[Part, Outcome] = field(default_factory=dict)
    decisions: dict[Part, Decision] = field(default_factory=dict)
    seconds: dict[Part, float] = field(default_factory=dict)
    begun: dict[Part, list[str]] = field(default_factory=dict)
    left_out: dict[Part, str] = field(default_factory=dict)
    agreed: bool = False
    candidates: tuple[Candidate, ...] = ()
    chosen: Candidate | None = None
    kind: str = ""
    finished: bool = False


class Journal:
    """The journal of one walk, in a folder of its own; `told` is what stands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told = read_journal(folder)
        self._log = RecordLog(folder / LOG)

    def close(self) -> None:
        self._log.close()

    def read_again(self) -> None:
        """Take in what somebody else wrote meanwhile."""
        self.told = read_journal(self.folder)

    def asked(self, asked: Mapping[str, Any]) -> None:
        self._append({"asked": dict(asked)})

    def agreed(self) -> None:
        """Load may be sent to a server that somebody else started."""
        self._append({"agreed": True})

    def kind(self, kind: str) -> None:
        """Which kind of server it is."""
        self._append({"kind": kind})

    def began(self, part: Part, arguments: Sequence[str], artifacts: Sequence[str]) -> None:
        self._append({"began": part, "arguments": list(arguments), "artifacts": list(artifacts)})

    def ended(self, outcome: Outcome, decision: Decision, seconds: float) -> None:
        """The document stands in a file of its own: documents are large, and read by people too."""
        document_of(self.folder, outcome.part).write_text(json.dumps(outcome.document), encoding="utf-8")
        said = {"ended": outcome.part, "exit_code": outcome.exit_code, "seconds": seconds}
        self._append({**said, "way": decision.way, "because": decision.because})

    def left_out(self, part: Part, because: str) -> None:
        self._append({"left_out": part, "because": because})

    def proposed(self, candidates: Sequence[Candidate]) -> None:
        self._append({"proposed": [asdict(one) for one in candidates]})

    def chose(self, candidate: Candidate) -> None:
        self._append({"chose": asdict(candidate)})

    def finished(self) -> None:
        self._append({"finished": True})

    def _append(self, record: dict[str, Any]) -> None:
        self._log.append(record)
        _take(self.told, record, self.folder)


def document_of(folder: Path, part: Part) -> Path:
    """Where the document of a part that ended lies."""
    return folder / f"{part}.json"


def read_journal(folder: Path) -> Told:
    """What the journal in a folder says; nothing where there is none yet."""
    told = Told()
    if (folder / LOG).exists():
        losses: list[Loss] = []
        for _, record in read_records(folder / LOG, losses):
            _take(told, record, folder)
    return told


def latest_walk(artifacts: Path) -> Path:
    """The folder of the walk that began last; UsageError where there is none."""
    found = [path.parent for path in artifacts.glob(f"{PREFIX}*/{LOG}")]
    if not found:
        raise UsageError(f"{artifacts.parent}: no walk began here; leave out --resume")
    return max(found, key=lambda folder: folder.name)


def _take(told: Told, record: Mapping[str, Any], folder: Path) -> None:
    match record:
        case {"asked": asked}:
            told.asked = dict(asked)
        case {"agreed": True}:
            told.agreed = True
        case {"kind": kind}:
            told.kind = str(kind)
        case {"began": part, "artifacts": artifacts}:
            told.begun.setdefault(Part(part), list(artifacts))  # its folder is newer than its first begin
        case {"ended": part, "exit_code": code, "seconds": seconds, "way": way, "because": because}:
            document = json.loads(document_of(folder, Part(part)).read_text(encoding="utf-8"))
            told.seconds[Part(part)] = float(seconds)
            told.outcomes[Part(part)] = Outcome(Part(part), int(code), document)
            told.decisions[Part(part)] = Decision(Way(way), str(because))
        case {"left_out": part, "because": because}:
            told.left_out[Part(part)] = str(because)
        case {"proposed": candidates}:
            told.candidates = tuple(_candidate(one) for one in candidates)
        case {"chose": candidate}:
            told.chosen = _candidate(candidate)
        case {"finished": True}:
            told.finished = True


def _candidate(said: Mapping[str, Any]) -> Candidate:
    lists = {name: tuple(said[name]) for name in ("evidence", "common")}
    return Candidate(**{**said, **lists})
