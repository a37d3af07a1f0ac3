"""Small results for tests of the investigation, and the processes that record them."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.guard import Checked, Effect, Guard, Outcome
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from tests.conftest import REPOSITORY

STARTED = datetime(2026, 8, 5, 10, 0, 0, tzinfo=UTC)
ENDED = datetime(2026, 8, 5, 10, 0, 25, 500_000, tzinfo=UTC)
ARGUMENTS = ("perfkit", "layer1", "--trace", "a trace.json")

TRACE = Artifact("/traces/a trace.json", "ab" * 32, 4096)
BUSY = Measurement(
    "busy ratio", 0.079, "share", 61, "operations", "device-op time", TRACE, "GPU 0", raw=(0.08, 0.078)
)
UTIL = Measurement("NVML util", 55.0, "%", 21, "samples", "nvidia-smi")

RESULT = Result(
    command="layer1",
    verdict=Verdict("host-bound", True, "idle 92 % of its window", Exit.NO_CONCLUSION, "perfkit layer2"),
    guards=[
        Checked("PK105", "few-samples", Effect.DIRECTIONAL, True, "1 step", "GPU 0"),
        Checked("PK101", "graph-replay-blind-spot", Effect.VOID, False, "0 graph launches"),
    ],
    measurements=[BUSY],
    findings=[
        Finding(
            statement="the GPU waits",
            strength=Strength.WEAK,
            rule="directional",
            recommendation="go to Layer 2",
            measurements=(BUSY, UTIL),
            kind=FindingKind.VERDICT,
        ),
        Finding("copies are hidden", Strength.MEDIUM, "one capture", "leave them", True, (), "longer trace"),
    ],
    sections={"devices": [{"rank": 0, "events": 61}]},
)
"""One of everything; the second measurement is named by a finding alone."""


IN_WORDS = Finding(
    "S1 gaps between small kernels",
    Strength.WEAK,
    "indirect",
    "CUDA graphs",
    evidence="idle 72.7 % of 1 step",
    artifacts=(Artifact("/traces/rank1.json", "cd" * 32, 512), TRACE),
    scope="rank 1, device 1",
)
"""A finding that rests on what was seen in two files, and on no single number."""


def start_process(code: str, *arguments: str) -> subprocess.Popen[str]:
    """A real Python process with this repository on its path, whose output can be read."""
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def tables_file(folder: Path) -> Path:
    """The database of an investigation folder."""
    return folder / "investigation.db"


def made_up_guard(code: str, name: str, layer: str = "layer1", effect: Effect = Effect.NOTE) -> Guard[int]:
    """A guard that fires above 0; its texts hold what Markdown and a terminal might obey."""
    return Guard(
        code=code,
        name=name,
        layer=layer,
        effect=effect,
        sees="A ratio of <b>0 %</b> with *many* launches | and an explanation that is long enough to wrap.",
        cause="The profiler forgot [something].",
        detection="More than 0 of them.",
        remedy="Record again with PROFILER_FLAG=1.",
        source="A made-up issue #1.",
        check=lambda facts: Outcome(facts > 0, f"{facts} of them"),
    )
