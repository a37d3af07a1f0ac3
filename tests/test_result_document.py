"""The JSON document of a result: the shared names, all measurements, plain numbers."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from layers.evidence.guard import Effect, Guard, Outcome, apply_guards
from layers.evidence.measurement import Measurement
from layers.evidence.result import Result, all_measurements, to_document
from layers.evidence.verdict import Exit, Verdict
from parsers.errors import InvalidMeasurement
from tests.evidence_builders import BUSY, IN_WORDS, RESULT, UTIL

VERDICT = Verdict("undecided", False, "nothing stands out", Exit.NO_CONCLUSION)


def test_document_bears_the_names_of_the_contract_and_the_sections_beside_them() -> None:
    document = to_document(RESULT)
    assert {"schema_version", "command", "verdict", "guards", "measurements", "findings"} <= document.keys()
    assert document["devices"] == [{"rank": 0, "events": 61}]
    assert document["verdict"]["exit_code"] == 3 and document["verdict"]["directional"] is True


def test_guards_that_fired_stand_apart_from_those_that_did_not() -> None:
    document = to_document(RESULT)
    assert [g["code"] for g in document["guards"]] == ["PK105"]
    assert [g["code"] for g in document["guards_clear"]] == ["PK101"]


def test_measurements_that_only_a_finding_names_are_in_the_document_too() -> None:
    assert all_measurements(RESULT) == [BUSY, UTIL]
    document = to_document(RESULT)
    assert [m["name"] for m in document["measurements"]] == ["busy ratio", "NVML util"]
    assert document["findings"][0]["measurements"] == [
        {"name": "busy ratio", "scope": "GPU 0"},
        {"name": "NVML util", "scope": ""},
    ]


def test_evidence_in_words_names_whose_it_is_and_its_files() -> None:
    (found,) = to_document(Result("layer1", VERDICT, findings=[IN_WORDS]))["findings"]
    assert (found["evidence"], found["scope"], found["measurements"]) == (
        "idle 72.7 % of 1 step",
        "rank 1, device 1",
        [],
    )
    assert [artifact["path"] for artifact in found["artifacts"]] == [
        "/traces/rank1.json",
        "/traces/a trace.json",
    ]


def test_measurement_keeps_its_raw_values_and_what_names_its_artifact() -> None:
    measured = to_document(RESULT)["measurements"][0]
    assert measured["raw"] == [0.08, 0.078]
    assert measured["artifact"] == {"path": "/traces/a trace.json", "sha256": "ab" * 32, "size_bytes": 4096}


def test_numpy_numbers_become_json_numbers() -> None:
    n: Any = np.int64(7)
    value: Any = np.float32(2.5)
    measurement = Measurement("kernels", value, "ms", n, "kernels", "trace", raw=(value,))
    written = json.loads(json.dumps(to_document(Result("layer1", VERDICT, measurements=[measurement]))))
    measured = written["measurements"][0]
    assert (measured["value"], measured["n"], measured["raw"]) == (2.5, 7, [2.5])


def test_a_section_cannot_take_a_shared_name() -> None:
    with pytest.raises(ValueError, match="guards"):
        to_document(Result("layer1", VERDICT, sections={"guards": []}))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_no_measurement(value: float) -> None:
    with pytest.raises(InvalidMeasurement, match="not measured"):
        Measurement("latency", value, "ms", 5, "requests", "client")
    with pytest.raises(InvalidMeasurement, match="raw value"):
        Measurement("latency", 1.0, "ms", 5, "requests", "client", raw=(1.0, value))


def test_nothing_measured_is_no_measurement() -> None:
    with pytest.raises(InvalidMeasurement, match="n = 0"):
        Measurement("latency", 1.0, "ms", 0, "requests", "client")


def guard(effect: Effect, outcome: Outcome | None) -> Guard[None]:
    return Guard("PK900", "made-up", "test", effect, "", "", "", "", "", lambda facts: outcome)


@pytest.mark.parametrize(
    ("own", "this_time", "applied"),
    [
        (Effect.VOID, None, Effect.VOID),
        (Effect.VOID, Effect.NOTE, Effect.NOTE),
        (Effect.NOTE, Effect.VOID, Effect.NOTE),
    ],
)
def test_an_outcome_may_weaken_its_guard_and_never_strengthens_it(
    own: Effect, this_time: Effect | None, applied: Effect
) -> None:
    (checked,) = apply_guards([guard(own, Outcome(True, "seen", this_time))], None)
    assert checked.effect is applied


def test_a_guard_that_does_not_apply_leaves_no_trace() -> None:
    assert apply_guards([guard(Effect.VOID, None)], None) == []
