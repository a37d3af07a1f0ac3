"""One session measured by trace, sampled utilisation and nsys, which differ as real ones do.

Built from real files. The trace of 70 replayed graphs loses the operations of its replays, as torch 2.11 on
CUDA 13 loses them. The export of nsys is another stretch of the session, since only one of the two can
record at a time. A log of nvidia-smi spans both; its rows say what a real one says of an H100 under load.
"""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from layers.evidence.verdict import Exit
from perfkit.cli.app import main

pytestmark = pytest.mark.real_data

TRACE, NSYS = "traces/graph_launches_70_rank0.json.gz", "nsys/schema_3.0.0.sqlite"
SMI = "smi/nge_linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01.txt"
LAUNCH = "cudaGraphLaunch"
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
TRACE_BEGAN_S, NSYS_BEGAN_S = 1_683_564_901, 1_702_450_104
"""Wall clock of the two recordings (first device operation; TARGET_INFO_SESSION_START_TIME)."""
TRACE_BEGINS_S = NSYS_BEGAN_S + 14
LOG_BEGINS_S, PERIOD_MS, SAMPLES = NSYS_BEGAN_S - 4, 50, 500

Captured = pytest.CaptureFixture[str]


@dataclass(frozen=True, slots=True)
class Session:
    """The three files of one session."""

    trace: Path
    nsys: Path
    smi: Path

    @property
    def arguments(self) -> list[str]:
        return [str(self.trace), "--nsys", str(self.nsys), "--smi", str(self.smi)]


@pytest.fixture(scope="module")
def session(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("session")
    made = Session(folder / "trace.json", folder / "run.sqlite", folder / "gpu.csv")
    made.trace.write_text(json.dumps(without_replayed_operations(data_dir / TRACE)))
    shutil.copy(data_dir / NSYS, made.nsys)
    made.smi.write_text(log_of_a_loaded_card(data_dir / SMI))
    return made


def without_replayed_operations(path: Path) -> dict[str, Any]:
    """The trace, moved to its place in the session, with replays that show as launches alone."""
    with gzip.open(path) as file:
        document: dict[str, Any] = json.load(file)
    events = document["traceEvents"]
    replays = {e["args"]["correlation"] for e in events if e.get("name") == LAUNCH}
    assert len(replays) == 70
    kept = [e for e in events if e.get("cat") not in ON_DEVICE or e["args"].get("correlation") not in replays]
    for event in kept:
        if "ts" in event:
            event["ts"] += 1_000_000 * (TRACE_BEGINS_S - TRACE_BEGAN_S)
    return document | {"traceEvents": kept}


def log_of_a_loaded_card(path: Path) -> str:
    """A log at a period of 50 ms whose cells are those of the real query under load."""
    section = path.read_text("utf-8").split("load :: query-gpu (csv")[1].split("#" * 80 + "\n", 1)[1]
    head, row = (line.split(", ") for line in section.strip().splitlines()[:2])
    cells = dict(zip(head, row, strict=True))
    names = ["utilization.gpu [%]", "memory.used [MiB]"]
    values = ", ".join(cells[name] for name in names)
    assert values == "100 %, 19818 MiB"
    lines = [f"timestamp, index, {', '.join(names)}"]
    for sample in range(SAMPLES):
        at = datetime.fromtimestamp(LOG_BEGINS_S, UTC) + timedelta(milliseconds=PERIOD_MS * sample)
        lines.append(f"{at:%Y/%m/%d %H:%M:%S}.{at.microsecond // 1000:03d}, 0, {values}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def document(session: Session, capsys: Captured) -> dict[str, Any]:
    main(["layer1", *session.arguments, "--no-record", "--json"])
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


def test_nobody_averages_and_the_blind_one_is_left_out(document: dict[str, Any]) -> None:
    shares = {row["method"]: row["share"] for row in document["methods"]}
    assert shares["chrome-trace"] == pytest.approx(0.2709, abs=5e-5)
    assert shares["nsys"] == pytest.approx(0.9768, abs=5e-5)
    assert shares["nvidia-smi"] == 1.0
    words = {row["method"]: row["word"] for row in document["devices"]}
    assert (words["chrome-trace"], words["nsys"]) == ("void", "device-bound")
    assert document["verdict"]["word"] == "device-bound"
    assert "1 void device left out; NVML util agrees (100.0 %, n = 58)" in document["verdict"]["because"]


def test_each_pair_says_of_which_time_it_is_and_why_it_differs(document: dict[str, Any]) -> None:
    pairs = {(c["a"]["method"], c["b"]["method"]): c for c in document["comparisons"]}
    blind = pairs["chrome-trace", "nvidia-smi"]
    assert (blind["times"], blind["agree"], blind["b"]["n"]) == ("same time", False, 25)
    assert blind["why"] == (
        "the trace is blind to 70 graph launches without operations (PK101), which the sampler saw"
    )
    alike = pairs["nsys", "nvidia-smi"]
    assert (alike["times"], alike["agree"], alike["why"]) == ("same time", True, "within 10 %")
    recorders = pairs["chrome-trace", "nsys"]
    assert (recorders["times"], recorders["agree"]) == ("different times", None)
    assert recorders["why"] == (
        "chrome-trace is blind to 70 graph launches without operations (PK101); nsys recorded replays"
    )


def test_what_a_void_device_says_contradicts_nobody(document: dict[str, Any]) -> None:
    fired = {guard["code"]: guard for guard in document["guards"]}
    assert (fired["PK101"]["effect"], fired["PK158"]["effect"]) == ("void", "note")
    (busy,) = [f for f in document["findings"] if "the device is the limit" in f["statement"]]
    assert (busy["strength"], "independent method supports" in busy["rule"]) == ("strong", True)


def test_terminal_and_report_explain_the_difference(
    session: Session, tmp_path: Path, capsys: Captured
) -> None:
    folder = str(tmp_path / "i")
    main(["layer1", *session.arguments, "--investigation", folder])
    shown = " ".join(capsys.readouterr().out.split())
    assert "the trace is blind to 70 graph launches without operations (PK101)" in shown
    assert "the true ratio lies between 27.1 % and" in shown
    assert main(["report", "--investigation", folder, "--no-figures"]) == Exit.OK
    page = (tmp_path / "i" / "report.md").read_text()
    assert "| nsys | gpu 0 | device-op time | 97.68 % (kernels 95.65 %) | 8,196 operations | 2.94 s |" in page
    assert "**Differ.** Gpu 0, same time: device-op time of chrome-trace 27.09 % and NVML util" in page
    assert "**Agree.** Gpu 0, same time: device-op time of nsys 97.68 %" in page
    assert "**Beside each other.** Gpu 0, different times: device-op time of chrome-trace" in page
