"""Public nsys exports of nsys 2020 to 2026: the figures of their manifest, and those of a slow second
reading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from layers.layer1_gpu_busy.collect import collect_traces
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.nsys_analysis import analyse_export
from layers.layer1_gpu_busy.thresholds import Thresholds
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from parsers.nsys_model import GRAPH_MODE, NsysExport, Trouble
from parsers.nsys_sqlite import read_nsys_export
from tests.nsys_twin import covered_ns, read_twin

pytestmark = pytest.mark.real_data

FILES = (
    *("none_2020", "2.9.1", "3.0.0", "3.1.2", "3.4.0", "3.11.2", "3.16.1", "3.17.2", "3.20.2"),
    *("3.24.0", "3.24.18", "3.25.0"),
)
ROW = re.compile(r"(\d+): (\d+), (\d+), (\d+), (\d+), (\d+), ([\d.]+), ([\d.]+)")
"""Of the manifest: device: kernels, replays, copies, sets, window ns, device-op ratio, kernel and replay
ratio."""

Figures = tuple[int, int, int, int, int, int, float, float]


def export_of(data_dir: Path, schema: str) -> NsysExport:
    return read_nsys_export(str(path_of(data_dir, schema)))


def path_of(data_dir: Path, schema: str) -> Path:
    return data_dir / "nsys" / f"schema_{schema}.sqlite"


def manifest(data_dir: Path, schema: str) -> list[Figures]:
    """One row a device."""
    lines = (data_dir / "MANIFEST.md").read_text("utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith(f"| schema_{schema}.sqlite ")]
    rows = [m.groups() for m in ROW.finditer(line)]
    return [(*map(int, row[:6]), float(row[6]), float(row[7])) for row in rows]  # type: ignore[misc]


def figures(export: NsysExport, analysis: TraceAnalysis) -> list[Figures]:
    return [
        (
            device.busy.device,
            *(
                int(
                    (
                        export.trace.device_ops.kind[export.trace.device_ops.device == device.busy.device]
                        == k
                    ).sum()
                )
                for k in (0, 3, 1, 2)
            ),
            device.busy.device_window.window.length_ns,
            round(device.busy.device_window.device_op_ratio or 0.0, 5),
            round(device.busy.device_window.kernel_ratio or 0.0, 5),
        )  # type: ignore[misc]
        for device in analysis.devices
    ]


@pytest.mark.parametrize("schema", FILES)
def test_the_figures_of_the_manifest_come_out(data_dir: Path, schema: str) -> None:
    export = export_of(data_dir, schema)
    assert figures(export, analyse_export(export)) == manifest(data_dir, schema)


@pytest.mark.parametrize("schema", ["none_2020", "2.9.1", "3.4.0", "3.24.0", "3.24.18"])
def test_the_slow_reading_says_the_same_to_the_nanosecond(data_dir: Path, schema: str) -> None:
    analysis = analyse_export(export_of(data_dir, schema))
    twin = read_twin(path_of(data_dir, schema))
    assert len(twin) == len(analysis.devices)
    for (_, ordinal), expected in twin.items():
        (device,) = [d for d in analysis.devices if d.busy.device == ordinal]
        ratios = device.busy.device_window
        assert (ratios.window.length_ns, ratios.device_op_ns, ratios.kernel_ns) == (
            expected.window_ns,
            expected.busy_ns,
            expected.kernel_ns,
        )


@pytest.mark.parametrize("schema", FILES)
def test_every_file_is_read_whole_and_judged(data_dir: Path, schema: str) -> None:
    collected = collect_traces([str(path_of(data_dir, schema))])
    result = judge_traces(collected.traces, Thresholds(), collected.unread)
    assert [loss for trace in collected.traces for loss in trace.losses] == []
    word = {"3.16.1": "void", "3.20.2": "undecided", "3.4.0": "undecided"}
    device_bound = dict.fromkeys(("3.0.0", "3.1.2", "3.25.0"), "device-bound")
    assert result.verdict.word == (word | device_bound).get(schema, "host-bound")


def test_an_export_without_cuda_rows_is_no_ratio_of_zero(data_dir: Path) -> None:
    collected = collect_traces([str(path_of(data_dir, "3.16.1"))])
    result = judge_traces(collected.traces, Thresholds())
    assert "CUDA was traced, and no process that nsys could follow used it" in result.verdict.because
    assert result.sections["devices"] == []


def test_two_ranks_with_the_same_correlation_ids_keep_their_own_launches(data_dir: Path) -> None:
    export = export_of(data_dir, "3.25.0")
    assert [(d.device, d.pid, d.gpu) for d in export.devices] == [(0, 111, None), (1, 112, None)]
    analysis = analyse_export(export)
    assert [d.launches.correlated_ops for d in analysis.devices if d.launches] == [1046, 1046]
    assert analysis.coverage.without_operations == 0, "launches beyond the cut are not missed"


def test_the_public_graph_file_holds_two_whole_replays_and_a_capture(data_dir: Path) -> None:
    export = export_of(data_dir, "3.24.0")
    analysis = analyse_export(export)
    (device,) = analysis.devices
    assert (export.capture.cuda_graphs, device.replays.launches, device.replays.uncovered) == (
        GRAPH_MODE,
        2,
        0,
    )
    assert analysis.coverage.captured == 1
    assert analysis.nsys is not None
    assert analysis.nsys.device_facts[0].replays == 2


def test_what_nsys_reported_is_kept(data_dir: Path) -> None:
    assert export_of(data_dir, "3.20.2").capture.troubles == (Trouble.SOME_CUDA, Trouble.SOME_NVTX)
    assert export_of(data_dir, "3.24.0").capture.troubles == (Trouble.NEW_DRIVER,)


def test_migrations_of_unified_memory_mark_no_steps(data_dir: Path) -> None:
    (device,) = analyse_export(export_of(data_dir, "3.17.2")).devices
    assert {row.direction for row in device.copies} == {"migration HtoD", "migration DtoH"}
    assert device.steps is not None
    assert device.steps.steps == ()


def test_the_slow_union_is_one() -> None:
    assert covered_ns([(0, 4), (2, 6), (8, 9), (8, 9)]) == 7
