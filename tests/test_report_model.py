"""What a report holds: built from what was recorded, nothing merged, nothing left out in silence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from layers.evidence.finding import Finding, Strength
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.result import Result
from layers.evidence.store import Investigation
from layers.evidence.verdict import Exit, Verdict
from parsers.errors import StoreError
from reports.build import read_investigation
from reports.layers_walked import LAYER_1, QUESTIONS
from reports.lint import faults
from reports.model import Basis, Figure, Paragraph, Report, Source, Table
from tests.evidence_builders import ARGUMENTS, ENDED, RESULT, STARTED, tables_file
from tests.report_builders import cpu_only_trace, host_bound_trace, judged, record, record_result, report_of


def tables(report: Report) -> dict[str, Table]:
    return {b.title: b for layer in report.layers for b in layer.blocks if isinstance(b, Table)}


def test_one_run_gives_its_verdict_with_n_and_strength(tmp_path: Path) -> None:
    run = record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    (verdict,) = report_of(tmp_path / "i").verdicts
    assert (verdict.run_id, verdict.verdict.word, verdict.what) == (run, "host-bound", "t.json")
    assert verdict.basis is not None and verdict.strength is not None
    assert (verdict.basis.n, verdict.basis.n_unit) == (18, "device operations")


def test_every_number_leads_to_the_bytes_that_it_was_read_from(tmp_path: Path) -> None:
    trace = host_bound_trace().write(tmp_path / "t.json")
    record(tmp_path / "i", trace)
    report = report_of(tmp_path / "i")
    (artifact,) = report.artifacts
    assert artifact.path == str(trace) and artifact.size_bytes == trace.stat().st_size
    assert all(table.basis.artifacts == (artifact,) for table in tables(report).values())
    assert all(raw.measurement.artifact == artifact for raw in report.raw_values)
    assert faults(report) == []


def test_a_relative_path_is_the_artifact_that_the_store_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_bound_trace().write(tmp_path / "t.json")
    monkeypatch.chdir(tmp_path)
    record(Path("i"), Path("t.json"))
    (artifact,) = report_of(Path("i")).artifacts
    assert artifact.path == str(tmp_path / "t.json")


def test_a_trace_inside_the_investigation_is_found_after_the_folder_moved(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    record(tmp_path / "before", host_bound_trace().write(tmp_path / "before" / "t.json"))
    (tmp_path / "before").rename(tmp_path / "after")
    (artifact,) = report_of(tmp_path / "after").artifacts
    assert artifact.path == "t.json"


def test_every_layer_has_a_row_and_those_not_run_a_reason(tmp_path: Path) -> None:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    layers = {layer.title: layer for layer in report_of(tmp_path / "i").layers}
    assert list(layers) == list(QUESTIONS)
    assert layers[LAYER_1].why_not_run == "" and layers[LAYER_1].method and layers[LAYER_1].strength
    assert all(layer.why_not_run for title, layer in layers.items() if title != LAYER_1)
    assert "leads here next" in layers["Layer 2. Stacks"].why_not_run


def test_a_void_run_has_no_finding_no_figure_and_says_so(tmp_path: Path) -> None:
    record(tmp_path / "i", cpu_only_trace().write(tmp_path / "t.json"))
    report = report_of(tmp_path / "i")
    (verdict,) = report.verdicts
    assert verdict.verdict.exit_code is Exit.INVALID and verdict.basis is None and verdict.strength is None
    assert (report.findings, report.negative, report.figures) == ((), (), ())
    labels = [b.label for layer in report.layers for b in layer.blocks if isinstance(b, Paragraph)]
    assert labels == ["No figure"]
    assert any("the busy ratio: " in text for text in report.not_measured)
    assert [artifact.path for artifact in report.artifacts] == [str(tmp_path / "t.json")]


def test_the_latest_run_on_the_same_bytes_counts_and_the_earlier_is_listed(tmp_path: Path) -> None:
    trace = host_bound_trace().write(tmp_path / "t.json")
    first, second = record(tmp_path / "i", trace), record(tmp_path / "i", trace)
    report = report_of(tmp_path / "i")
    assert [verdict.run_id for verdict in report.verdicts] == [second]
    assert [(run.id, bool(run.dropped)) for run in report.runs] == [(first, True), (second, False)]
    assert f"run {second}" in report.runs[0].dropped
    assert {raw.run_id for raw in report.raw_values} == {first, second}


def test_runs_on_different_bytes_stand_beside_each_other(tmp_path: Path) -> None:
    first = record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    second = record(tmp_path / "i", host_bound_trace(["gemm"]).write(tmp_path / "t.json"))
    report = report_of(tmp_path / "i")
    assert [verdict.run_id for verdict in report.verdicts] == [first, second]
    assert len(report.artifacts) == 2 and not any(run.dropped for run in report.runs)
    assert {row.run_id for row in report.findings} == {first, second}


def test_devices_with_the_same_advice_share_a_row_that_the_least_busy_one_speaks_for(tmp_path: Path) -> None:
    traces = []
    for rank, names in enumerate((["gemm"] * 8, ["gemm"] * 3)):
        trace = host_bound_trace(names, steps=40, device=rank)
        trace.distributed(rank, 2)
        traces.append(trace.write(tmp_path / f"rank{rank}.json"))
    record(tmp_path / "i", *traces)
    first = report_of(tmp_path / "i").findings[0]
    assert [f.measurements[0].scope for f in first.findings] == ["rank 1, device 1", "rank 0, device 0"]


def test_anatomy_is_that_of_the_least_busy_device_and_ratios_those_of_all(tmp_path: Path) -> None:
    traces = [host_bound_trace(["gemm"] * n).write(tmp_path / f"{n}.json") for n in (9, 2, 5)]
    record(tmp_path / "i", *traces)
    report = report_of(tmp_path / "i")
    devices = [row[0] for row in tables(report)["Busy ratio by device and window"].rows if row[0]]
    assert devices == ["9.json, device 0", "2.json, device 0", "5.json, device 0"]
    assert tables(report)["The longest gaps"].basis.artifacts[0].path == str(traces[1])


def test_ratios_alone_give_a_figure_of_them_and_say_what_was_not_asked_for(tmp_path: Path) -> None:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"), busy_only=True)
    report = report_of(tmp_path / "i")
    assert [figure.name for figure in report.figures] == ["run1-busy"]
    assert any("--busy-only" in text for text in report.not_measured)


def test_what_a_trace_cannot_tell_is_listed(tmp_path: Path) -> None:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    listed = " ".join(report_of(tmp_path / "i").not_measured)
    assert "SM active" in listed and "batch size" in listed and "S11 Queueing between stages" in listed


def test_python_stacks_are_named_as_a_cost_of_recording(tmp_path: Path) -> None:
    trace = host_bound_trace()
    record(tmp_path / "i", trace.write(tmp_path / "plain.json"))
    trace.python_function("serve.py(7): step", 0, 90_000)
    record(tmp_path / "i", trace.write(tmp_path / "stacks.json"))
    said = " ".join(report_of(tmp_path / "i").not_shown)
    assert "Python stacks were recorded in stacks.json" in said and "plain.json" not in said


def test_figures_are_named_by_run_and_hold_n_in_what_they_are_about(tmp_path: Path) -> None:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    figures = report_of(tmp_path / "i").figures
    assert [f.name for f in figures] == ["run1-busy", "run1-timeline", "run1-idle", "run1-kernels"]
    assert all(isinstance(f, Figure) and "n = " in f.about and f.alternative for f in figures)


def test_a_sampled_series_stands_beside_the_trace_in_a_table_of_its_own(tmp_path: Path) -> None:
    log = Artifact("/logs/smi.csv", "cd" * 32, 512)
    result = judged(host_bound_trace().write(tmp_path / "t.json"))
    row = {"method": "nvidia-smi", "source": log.path, "device": 0, "events": 40, "nvml_util_pct": 37.0}
    util = Measurement("nvml_util_pct", 37.0, "%", 40, "samples", "nvidia-smi", log, "device 0")
    both = replace(
        result,
        measurements=[*result.measurements, util],
        sections={**result.sections, "devices": [*result.sections["devices"], row]},
    )
    record_result(tmp_path / "i", both, ["perfkit", "layer1"])
    report = report_of(tmp_path / "i")
    (cells,) = tables(report)["Other methods, beside it"].rows
    assert cells == ("nvidia-smi", "device 0", "37.00 %", "not measured", "not measured", "40", Source(log))
    assert not any("no sampled series" in text for text in report.not_measured)
    assert faults(report) == []


def test_a_sampled_series_alone_is_no_void_result(tmp_path: Path) -> None:
    log = Artifact("/logs/smi.csv", "cd" * 32, 512)
    util = Measurement("nvml_util_pct", 37.0, "%", 40, "samples", "nvidia-smi", log, "gpu 0")
    finding = Finding("gpu 0: busy", Strength.WEAK, "indirect", "record a trace", measurements=(util,))
    row = {"method": "nvidia-smi", "source": log.path, "device": 0, "events": 40, "nvml_util_pct": 37.0}
    limits = {"host_bound": 0.6, "device_bound": 0.9}
    result = Result(
        "layer1",
        Verdict("host-bound", False, "NVML util 37 %", Exit.OK),
        measurements=[util],
        findings=[finding],
        sections={"devices": [row], "thresholds": limits},
    )
    record_result(tmp_path / "i", result, ["perfkit", "layer1"])
    report = report_of(tmp_path / "i")
    assert report.title.startswith("smi.csv") and faults(report) == []
    assert report.verdicts[0].basis == Basis(40, "samples", "nvidia-smi", (log,))
    assert not any("void" in text for text in (*report.not_shown, *report.not_measured))


def test_a_run_whose_document_this_perfkit_cannot_read_is_dropped_with_the_reason(tmp_path: Path) -> None:
    with Investigation.open(tmp_path / "i") as investigation:
        investigation.record(RESULT, ARGUMENTS, STARTED, ENDED)
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    report = report_of(tmp_path / "i")
    assert [bool(run.dropped) for run in report.runs] == [True, False]
    assert "measure again" in report.runs[0].dropped
    assert faults(report) == []


def test_an_investigation_without_a_run_that_counts_still_gives_a_sound_report(tmp_path: Path) -> None:
    with Investigation.open(tmp_path) as investigation:
        investigation.record(RESULT, ARGUMENTS, STARTED, ENDED)
    report = report_of(tmp_path)
    assert report.verdicts == () and "no run that counts" in report.title
    assert all(layer.why_not_run for layer in report.layers)
    assert faults(report) == []


def test_an_investigation_with_nothing_in_it_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with Investigation.open(tmp_path) as investigation, pytest.raises(StoreError, match="measure something"):
        read_investigation(investigation)
    assert tables_file(tmp_path).exists()
