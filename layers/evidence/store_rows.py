"""Between the records of a result and the rows of investigation.db, both ways.

What is read back are the records that were written: a `Measurement`, a `Checked` guard, a `Finding`, each
with the run it belongs to. Text that is no valid Unicode (file names of other encodings) is stored as its
escape.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.guard import Checked, Effect
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.result import Result, all_measurements, to_document
from layers.evidence.secrets import masked_arguments
from layers.evidence.verdict import Exit

if TYPE_CHECKING:
    from sqlite_utils import Database

Row = Mapping[str, Any]

SHOWN_CHARACTERS = 2000
"""Of a command; a glob that the shell expanded over many ranks has more, and nobody reads them."""


@dataclass(frozen=True, slots=True)
class Call:
    """How a command was called: its arguments, exact but for secrets, where, and from when to when (with time
    zone)."""

    arguments: tuple[str, ...]
    working_folder: str
    host: str
    started: datetime
    ended: datetime

    @property
    def command_line(self) -> str:
        """The arguments as a shell takes them."""
        return shlex.join(self.arguments)

    @property
    def shown_command(self) -> str:
        """The same for a page, without the end of a very long one."""
        whole = self.command_line
        left = len(whole) - SHOWN_CHARACTERS
        more = f" … and {left:,} characters more, in investigation.db" if left > 0 else ""
        return whole[:SHOWN_CHARACTERS] + more


@dataclass(frozen=True, slots=True)
class Run:
    """One recorded command and the document that it answered with; its paths start at the working folder."""

    id: int
    call: Call
    document: dict[str, Any]


class Said(msgspec.Struct):
    """The verdict of a document."""

    word: str
    directional: bool
    because: str
    exit_code: Exit
    next_step: str = ""


class SaidGuard(msgspec.Struct):
    """A guard of a document."""

    code: str
    name: str
    effect: Effect
    message: str
    scope: str


class SharedPart(msgspec.Struct):
    """What every document has, and every report reads."""

    command: str
    verdict: Said
    guards: list[SaidGuard]
    measurements: list[dict[str, Any]]
    findings: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class StoredMeasurement:
    """A measurement as it was recorded. A relative artifact path starts at the investigation folder."""

    id: int
    run_id: int
    measurement: Measurement


@dataclass(frozen=True, slots=True)
class StoredGuard:
    """A guard that was checked, whether it fired or not."""

    run_id: int
    checked: Checked


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A finding with the measurements that it rests on."""

    run_id: int
    finding: Finding


class ResultWriter:
    """Writes one result as rows; the caller holds the transaction. `place` says how a path is stored."""

    def __init__(self, tables: Database, place: Callable[[str], str]) -> None:
        self._tables = tables
        self._place = place

    def write(self, result: Result, call: Call, artifacts: Iterable[Artifact]) -> int:
        """Write everything that a result holds and return the id of the new run."""
        run_id = self._insert("runs", _run_row(result, call))
        document = json.dumps(to_document(result), allow_nan=False)
        self._insert("documents", {"run_id": run_id, "document": document})
        measurements = self._write_measurements(run_id, all_measurements(result))
        for finding in result.findings:
            self._write_finding(run_id, finding, measurements)
        for checked in result.guards:
            self._insert("guards", {"run_id": run_id} | _guard_row(checked))
        of_measurements = (m.artifact for m in measurements if m.artifact)
        of_findings = (artifact for finding in result.findings for artifact in finding.artifacts)
        for artifact in dict.fromkeys([*artifacts, *of_measurements, *of_findings]):
            self._insert("run_artifacts", {"run_id": run_id, "artifact_id": self._artifact_id(artifact)})
        return run_id

    def _write_measurements(self, run_id: int, measurements: Iterable[Measurement]) -> dict[Measurement, int]:
        ids = {}
        for m in measurements:
            artifact = {"artifact_id": self._artifact_id(m.artifact) if m.artifact else None}
            ids[m] = self._insert("measurements", {"run_id": run_id} | _measurement_row(m) | artifact)
        return ids

    def _write_finding(self, run_id: int, finding: Finding, measurements: Mapping[Measurement, int]) -> None:
        finding_id = self._insert("findings", {"run_id": run_id} | _finding_row(finding))
        for m in dict.fromkeys(finding.measurements):
            link = {"finding_id": finding_id, "measurement_id": measurements[m]}
            self._insert("finding_measurements", link)
        for artifact in dict.fromkeys(finding.artifacts):
            link = {"finding_id": finding_id, "artifact_id": self._artifact_id(artifact)}
            self._insert("finding_artifacts", link)

    def _artifact_id(self, artifact: Artifact) -> int:
        """The row of this artifact, made where there is none yet."""
        row = asdict(artifact) | {"path": self._place(artifact.path)}
        where = "path = :path AND sha256 = :sha256 AND size_bytes = :size_bytes"
        known = list(self._tables.query(f"SELECT id FROM artifacts WHERE {where}", _storable(row)))
        return int(known[0]["id"]) if known else self._insert("artifacts", row)

    def _insert(self, table: str, row: Row) -> int:
        inserted = self._tables.table(table).insert(_storable(row))
        assert inserted.last_rowid is not None
        return inserted.last_rowid


def read_run(row: Row) -> Run:
    """A row of runs joined with documents."""
    call = Call(
        arguments=masked_arguments(json.loads(row["arguments"])),
        working_folder=row["working_folder"],
        host=row["host"],
        started=datetime.fromisoformat(row["started_at"]),
        ended=datetime.fromisoformat(row["ended_at"]),
    )
    document = json.loads(row["document"])
    msgspec.convert(document, SharedPart)
    return Run(row["id"], call, document)


def read_measurement(row: Row) -> StoredMeasurement:
    """A row of measurement_details."""
    artifact = None
    if row["artifact_path"] is not None:
        artifact = Artifact(row["artifact_path"], row["artifact_sha256"], row["artifact_size_bytes"])
    measurement = Measurement(
        **{name: row[name] for name in ("name", "value", "unit", "n", "n_unit", "method", "scope")},
        artifact=artifact,
        raw=tuple(json.loads(row["raw_values"])),
    )
    return StoredMeasurement(row["id"], row["run_id"], measurement)


def read_artifact(row: Row) -> Artifact:
    """A row of artifacts."""
    return Artifact(row["path"], row["sha256"], row["size_bytes"])


def read_guard(row: Row) -> StoredGuard:
    """A row of guards."""
    names = ("code", "name", "message", "scope")
    effect, fired = Effect(row["effect"]), bool(row["fired"])
    return StoredGuard(row["run_id"], Checked(**{n: row[n] for n in names}, effect=effect, fired=fired))


def read_finding(
    row: Row, measurements: Sequence[Measurement], artifacts: Sequence[Artifact]
) -> StoredFinding:
    """A row of findings, with what finding_measurements and finding_artifacts tie to it."""
    words = ("statement", "rule", "recommendation", "disproof", "evidence", "scope")
    finding = Finding(
        **{name: row[name] for name in words},
        strength=Strength(row["strength"]),
        kind=FindingKind(row["kind"]),
        negative=bool(row["negative"]),
        measurements=tuple(measurements),
        artifacts=tuple(artifacts),
    )
    return StoredFinding(row["run_id"], finding)


def _run_row(result: Result, call: Call) -> Row:
    verdict = result.verdict
    return {
        "command": result.command,
        "verdict": verdict.word,
        "directional": verdict.directional,
        "because": verdict.because,
        "next_step": verdict.next_step,
        "exit_code": int(verdict.exit_code),
        "command_line": call.command_line,
        "arguments": json.dumps(call.arguments),
        "working_folder": call.working_folder,
        "host": call.host,
        "started_at": _utc(call.started),
        "ended_at": _utc(call.ended),
    }


def _measurement_row(m: Measurement) -> dict[str, Any]:
    return {
        "name": m.name,
        "scope": m.scope,
        "value": float(m.value),
        "unit": m.unit,
        "n": int(m.n),
        "n_unit": m.n_unit,
        "method": m.method,
        "raw_values": json.dumps([float(value) for value in m.raw]),
    }


def _guard_row(checked: Checked) -> dict[str, Any]:
    return {
        "code": checked.code,
        "name": checked.name,
        "effect": str(checked.effect),
        "fired": checked.fired,
        "message": checked.message,
        "scope": checked.scope,
    }


def _finding_row(finding: Finding) -> dict[str, Any]:
    return {
        "statement": finding.statement,
        "strength": str(finding.strength),
        "rule": finding.rule,
        "recommendation": finding.recommendation,
        "negative": finding.negative,
        "disproof": finding.disproof,
        "evidence": finding.evidence,
        "scope": finding.scope,
        "kind": str(finding.kind),
    }


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _storable(row: Row) -> dict[str, Any]:
    return {name: _text(value) if isinstance(value, str) else value for name, value in row.items()}


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
