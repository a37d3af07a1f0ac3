"""What every command ends with, and the JSON document that it prints with --json."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from layers.evidence.finding import Finding
from layers.evidence.guard import Checked
from layers.evidence.measurement import Measurement
from layers.evidence.verdict import Exit, Verdict

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Result:
    """One command's answer. `sections` are a layer's names of the JSON contract (devices, points, …)."""

    command: str
    verdict: Verdict
    guards: list[Checked] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    sections: dict[str, Any] = field(default_factory=dict)

    def interrupted(self, next_step: str = "") -> Result:
        """Of what was recorded until somebody ended it: judged as it is, and the exit code says that it is
        not all. `next_step` takes the place of the verdict's, where it is given."""
        step = next_step or self.verdict.next_step
        return replace(self, verdict=replace(self.verdict, exit_code=Exit.INTERRUPTED, next_step=step))


def all_measurements(result: Result) -> list[Measurement]:
    """Every measurement once: those of the result, then those that only a finding names."""
    of_findings = (m for finding in result.findings for m in finding.measurements)
    return list(dict.fromkeys([*result.measurements, *of_findings]))


def to_document(result: Result) -> dict[str, Any]:
    """The result as one JSON-ready dictionary. `guards` are those that fired, `guards_clear` the rest.

    A report is rendered from this document alone, so it holds the raw values too. A section that bears one of
    the shared names is a fault of the layer (ValueError).
    """
    shared = _shared_part(result)
    if taken := shared.keys() & result.sections.keys():
        raise ValueError(f"{result.command}: sections may not be called {sorted(taken)}")
    return shared | result.sections


def _shared_part(result: Result) -> dict[str, Any]:
    verdict = result.verdict
    return {
        "schema_version": SCHEMA_VERSION,
        "command": result.command,
        "verdict": {
            "word": verdict.word,
            "directional": verdict.directional,
            "because": verdict.because,
            "exit_code": int(verdict.exit_code),
            "next_step": verdict.next_step,
        },
        "guards": [_guard(c) for c in result.guards if c.fired],
        "guards_clear": [_guard(c) for c in result.guards if not c.fired],
        "measurements": [_measurement(m) for m in all_measurements(result)],
        "findings": [_finding(f) for f in result.findings],
    }


def _guard(checked: Checked) -> dict[str, Any]:
    return {
        "code": checked.code,
        "name": checked.name,
        "effect": str(checked.effect),
        "message": checked.message,
        "scope": checked.scope,
    }


def _measurement(m: Measurement) -> dict[str, Any]:
    """Numbers become plain Python ones: numpy's are neither JSON nor what SQLite takes for a number."""
    return {
        "name": m.name,
        "value": float(m.value),
        "unit": m.unit,
        "n": int(m.n),
        "n_unit": m.n_unit,
        "method": m.method,
        "artifact": asdict(m.artifact) if m.artifact else None,
        "scope": m.scope,
        "raw": [float(value) for value in m.raw],
    }


def _finding(f: Finding) -> dict[str, Any]:
    return {
        "statement": f.statement,
        "strength": str(f.strength),
        "rule": f.rule,
        "recommendation": f.recommendation,
        "negative": f.negative,
        "disproof": f.disproof,
        "measurements": [{"name": m.name, "scope": m.scope} for m in f.measurements],
        "evidence": f.evidence,
        "artifacts": [asdict(artifact) for artifact in f.artifacts],
        "scope": f.scope,
        "kind": str(f.kind),
    }
