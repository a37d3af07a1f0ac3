"""What a report holds: built from what was recorded, nothing merged, nothing left out in silence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.guard import Checked, Effect
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.result import Result
from layers.evidence.store import Investigation
from layers.evidence.verdict import Exit, Verdict
from parsers.errors import StoreError
from reports.build import read_investigation
from reports.layers_walked import KNOWN, LAYER_1, NOT_IN_VERSION, NOT_RECORDED
from reports.lint import faults
from reports.model import Basis, Figure, Folded, Paragraph, Report, Source, Table, unfolded
from tests.evidence_builders import ARGUMENTS, ENDED, RESULT, STARTED, tables_file
from tests.report_builders import cpu_only_trace, host_bound_trace, judged, record, record_result, report_of


def tables(report: Report) -> dict[str, Table]:
    return {b.title: b for layer in report.layers for b in unfolded(layer.blocks) if isinstance(b, Table)}


def sentences(report: Report) -> dict[str, Paragraph]:
    blocks = (b for layer in report.layers for b in unfolded(layer.blocks))
    return {b.label: b for b in blocks if isinstance(b, Paragraph)}


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
    assert list(layers) == [known.title for known in KNOWN]
    layer1 = layers.pop(LAYER_1.title)
    assert layer1.why_not_run == "" and layer1.method and layer1.strength
    assert {layer.why_not_run for layer in layers.values()} == {NOT_IN_VERSION}


def test_a_layer_whose_command_there_is_was_merely_not_recorded(tmp_path: Path) -> None:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    layers = {layer.title: layer for layer in report_of(tmp_path / "i", commands=["sweep"]).layers}
    assert layers["Layer 3. Concurrency sweep"].why_not_run == NOT_RECORDED
    assert layers["Layer 4. A/B"].why_not_run == NOT_IN_VERSION


def test_a_void_run_has_no_finding_no_figure_and_says_so(tmp_path: Path) -> None:
    record(tmp_path / "i", cpu_only_trace().write(tmp_path / "t.json"))
    report = report_of(tmp_path / "i")
    (verdict,) = report.verdicts
    assert verdict.verdict.exit_code is Exit.INVALID and verdict.basis is None and verdict.strength is None
    assert (report.findings, report.negative, report.figures) == ((), (), ())
    assert list(sentences(report)) == ["No figure"]
    assert any("the busy ratio: " in text for text in report.not_measured)
    assert [artifact.path for artifact in report.artifacts] == [str(tmp_path / "t.json")]


def test_the_latest_run_on_the_same_bytes_counts_and_the_earlier_is_listed(tmp_path: Path) -> None:
    trace = host_bound_trace().write(tmp_path / "t.json")
    first, second = record(tmp_path / "i", trace), record(tmp_path / "i", trace)
    report = report_of(tmp_path / "i")
    assert [verdict.run_id for verdict in report.verdicts] == [second]
    assert [(run.id, bool(run.dropped)) for run in report.runs] == [(first, True), (second, False)]
    assert f"run {second}" in report.runs[0].dropped
    assert {raw.run_id for raw in report.raw_values} == {second}


def test_runs_on_different_bytes_stand_beside_each_other(tmp_path: Path) -> None:
    first = record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    second = record(tmp_path / "i", host_bound_trace(["gemm"]).write(tmp_path / "t.json"))
    report = report_of(tmp_path / "i")
    assert [verdict.run_id for verdict in report.verdicts] == [first, second]
    assert len(report.artifacts) == 2 and not any(run.dropped for run in report.runs)
    assert {m.run_id for row in report.findings for m in row.members} == {first, second}


def test_runs_that_say_the_same_share_a_row_and_are_named_in_it(tmp_path: Path) -> None:
    first = record(tmp_path / "i", host_bound_trace(["gemm"] * 9, steps=40).write(tmp_path / "a.json"))
    second = record(tmp_path / "i", host_bound_trace(["gemm"], steps=40).write(tmp_path / "b.json"))
    row = report_of(tmp_path / "i").findings[0]
    assert [member.whose for member in row.members] == [f"run {second}", f"run {first}"]
    assert row.first.statement.startswith("busy ")


def test_the_latest_run_is_shown_whole_and_earlier_ones_folded_with_a_way_to_see_them(tmp_path: Path) -> None:
    first = record(tmp_path / "i", host_bound_trace().write(tmp_path / "a.json"))
    second = record(tmp_path / "i", host_bound_trace(["gemm"]).write(tmp_path / "b.json"))
    report = report_of(tmp_path / "i")
    blocks = next(layer.blocks for layer in report.layers if layer.title == LAYER_1.title)
    folded = [block for block in blocks if isinstance(block, Folded) and "Inside" in block.title]
    assert [figure.name for figure in report.figures] == [
        *(f"run{second}-{kind}" for kind in ("busy", "timeline", "idle", "kernels")),
        *(f"run{first}-{kind}" for kind in ("timeline", "idle", "kernels")),
    ]
    assert [block.title for block in folded] == ["Inside a.json, device 0"]
    rest = sentences(report)["Everything else"]
    assert rest.command == f"perfkit report --run {first} --output run{first}.md"


def test_a_report_may_be_of_one_run_alone(tmp_path: Path) -> None:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "a.json"))
    second = record(tmp_path / "i", host_bound_trace(["gemm"]).write(tmp_path / "b.json"))
    report = report_of(tmp_path / "i", only_run=second)
    assert [run.id for run in report.runs] == [second] and report.title.startswith("b.json")
    assert {figure.name for figure in report.figures} == {
        f"run{second}-{kind}" for kind in ("busy", "timeline", "idle", "kernels")
    }
    assert faults(report) == []


def test_a_run_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    run = record(tmp_path / "i", host_bound_trace().write(tmp_path / "a.json"))
    with pytest.raises(StoreError, match=f"no run 77.*has runs {run} to {run}"):
        report_of(tmp_path / "i", only_run=77)


def test_devices_with_the_same_advice_share_a_row_that_the_least_busy_one_speaks_for(tmp_path: Path) -> None:
    traces = []
    for rank, names in enumerate((["gemm"] * 8, ["gemm"] * 3)):
        trace = host_bound_trace(names, steps=40, device=rank)
        trace.distributed(rank, 2)
        traces.append(trace.write(tmp_path / f"rank{rank}.json"))
    record(tmp_path / "i", *traces)
    first = report_of(tmp_path / "i").findings[0]
    assert [member.whose for member in first.members] == ["rank 1, device 1", "rank 0, device 0"]


def test_anatomy_is_that_of_the_least_busy_device_and_ratios_those_of_all(tmp_path: Path) -> None:
    traces = [host_bound_trace(["gemm"] * n).write(tmp_path / f"{n}.json") for n in (9, 2, 5)]
    record(tmp_path / "i", *traces)
    report = report_of(tmp_path / "i")
    devices = [row[0] for row in tables(report)["Busy ratio by device"].rows]
    assert devices == ["9.json, device 0", "2.json, device 0", "5.json, device 0"]
    gaps = sentences(report)["Longest gaps"].basis
    assert isinstance(gaps, Basis) and gaps.artifacts[0].path == str(traces[1])
    assert report.raw_values[0].measurement.scope == "2.json, device 0"


def test_what_the_verdict_comes_down_to_is_said_with_it(tmp_path: Path) -> None:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    (verdict,) = report_of(tmp_path / "i").verdicts
    assert verdict.chiefly.startswith("idle ") and "of it: host was" in verdict.chiefly


def test_each_of_a_few_steps_is_shown_and_the_spread_of_many(tmp_path: Path) -> None:
    record(tmp_path / "few", host_bound_trace(steps=3).write(tmp_path / "few.json"))
    few = tables(report_of(tmp_path / "few"))["Steps"]
    assert few.basis.n == 3 and len(few.rows) == 3
    record(tmp_path / "many", host_bound_trace(steps=40).write(tmp_path / "many.json"))
    many = tables(report_of(tmp_path / "many"))["Steps, their spread"]
    assert many.basis.n == 40
    assert [row[2] for row in many.rows] == [
        *("on the device", "busy", "idle", "busy share", "idle until the next")
    ]


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
    method = {
        **{"method": "nvidia-smi", "measures": "NVML util", "means": "time with any kernel"},
        **{"source": log.path, "card": "gpu 0", "n": 40, "n_unit": "samples", "share": 0.37},
    }
    both = replace(
        result,
        measurements=[*result.measurements, util],
        sections={**result.sections, "devices": [*result.sections["devices"], row], "methods": [method]},
    )
    record_result(tmp_path / "i", both, ["perfkit", "layer1"])
    report = report_of(tmp_path / "i")
    (cells,) = tables(report)["Methods beside each other"].rows
    assert cells == ("nvidia-smi", "gpu 0", "NVML util", "37.00 %", "40 samples", "not known", Source(log))
    assert not any("no sampled series" in text for text in report.not_measured)
    assert faults(report) == []


def test_a_sampled_series_alone_is_no_void_result(tmp_path: Path) -> None:
    log = Artifact("/logs/smi.csv", "cd" * 32, 512)
    util = Measurement("nvml_util_pct", 37.0, "%", 40, "samples", "nvidia-smi", log, "gpu 0")
    verdict = FindingKind.VERDICT
    finding = Finding("gpu 0: busy", Strength.WEAK, "weak", "record", measurements=(util,), kind=verdict)
    row = {"method": "nvidia-smi", "source": log.path, "scope": "gpu 0", "events": 40, "nvml_util_pct": 37.0}
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


def preflight(tmp_path: Path) -> int:
    """A recorded pre-flight of a machine of which three facts are known."""
    facts = [{"name": "machine", "facts": {"cpus": 2, "host": "h"}}, {"name": "gpus", "facts": {"0": "H100"}}]
    result = Result(
        "preflight",
        Verdict("ready", False, "GPU 0 is free (utilisation 0 % in 4 samples)", Exit.OK),
        guards=[Checked("PK019", "few-cores", Effect.NOTE, True, "2 cores")],
        sections={"snapshot": {"taken": "2026-08-05T10:00:00+00:00", "sections": facts}},
    )
    return record_result(tmp_path, result, ["perfkit", "preflight"])


def test_a_pre_flight_is_a_layer_that_was_run_and_its_baseline_is_known(tmp_path: Path) -> None:
    record(tmp_path / "i", host_bound_trace().write(tmp_path / "t.json"))
    run = preflight(tmp_path / "i")
    report = report_of(tmp_path / "i")
    assert report.layers[0].why_not_run == "" and not any(run.dropped for run in report.runs)
    assert sentences(report)["READY"].plain == "GPU 0 is free (utilisation 0 % in 4 samples)"
    assert sentences(report)["Checks that fired"].plain == "PK019 few-cores: 2 cores"
    assert report.environment[0].value == f"3 facts recorded by perfkit preflight (run {run})"
    assert not any("the baseline" in text for text in report.not_measured)
    assert [verdict.verdict.word for verdict in report.verdicts] == ["host-bound"]
    assert any(validity.code == "PK019" for validity in report.validity)
    assert faults(report) == []


def test_a_pre_flight_alone_gives_a_sound_report_without_a_verdict(tmp_path: Path) -> None:
    preflight(tmp_path)
    report = report_of(tmp_path)
    assert report.verdicts == () and faults(report) == []


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
    assert report.verdicts == () and "no run counts" in report.title
    assert all(layer.why_not_run for layer in report.layers)
    assert faults(report) == []


def test_an_investigation_with_nothing_in_it_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with Investigation.open(tmp_path) as investigation, pytest.raises(StoreError, match="measure something"):
        read_investigation(investigation)
    assert tables_file(tmp_path).exists()
