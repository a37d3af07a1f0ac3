"""What is told of one capture beside its stacks: by py-spy's log, by perfkit's own recording, or by nobody.

The file of stacks says neither at which rate nor for how long it was taken, nor that the profiler fell
behind.
"""

from __future__ import annotations

from dataclasses import dataclass

from layers.collectors.stacks.recording import Ended, Recording
from layers.layer2_stacks.flags import switches
from layers.layer2_stacks.model import Capture
from parsers.pyspy_log import PySpyLog

EXITED = "process exited"
EXPORTER = "py-spy@"


@dataclass(frozen=True, slots=True)
class Told:
    """None and empty: nobody told. `errors` counts failed reads of a process; `flags` are py-spy's switches,
    `profiler` its version, `stopped` why the run ended early."""

    rate_hz: float | None
    asked_s: float | None
    expected_ticks: int | None
    wall_s: float | None
    samples: int | None
    errors: int | None
    lags_s: tuple[float, ...]
    second_tracer: int
    stopped: str
    fatal: str
    flags: frozenset[str] | None
    profiler: str
    python: str


def told_of(capture: Capture) -> Told:
    """All that is known of the capture."""
    log, recording = capture.log, capture.recording
    rate_hz = recording.rate_hz if recording else log.rate_hz if log else None
    asked_s = recording.asked_s if recording else log.duration_s if log else None
    return Told(
        rate_hz=rate_hz,
        asked_s=asked_s,
        expected_ticks=_expected(rate_hz, asked_s),
        wall_s=recording.wall_s if recording else None,
        samples=log.samples if log else None,
        errors=log.errors if log else None,
        lags_s=log.lags_s if log else (),
        second_tracer=log.held if log else 0,
        stopped=_stopped(log, recording),
        fatal=log.fatal if log else "",
        flags=_flags(log, recording),
        profiler=_profiler(capture),
        python=recording.target_python if recording else "",
    )


def _expected(rate_hz: float | None, asked_s: float | None) -> int | None:
    """Ticks of a thread that is always there: py-spy drops the one that reaches the limit."""
    if rate_hz is None or asked_s is None:
        return None
    return max(round(rate_hz * asked_s) - 1, 0)


def _stopped(log: PySpyLog | None, recording: Recording | None) -> str:
    if recording is not None and recording.ended_how is Ended.TARGET_ENDED:
        return EXITED
    return log.stopped if log else ""


def _flags(log: PySpyLog | None, recording: Recording | None) -> frozenset[str] | None:
    command = recording.command if recording else log.command if log else None
    return switches(command) if command is not None else None


def _profiler(capture: Capture) -> str:
    """`py-spy 0.4.3`, from who made the capture or from the file."""
    if capture.recording is not None:
        return capture.recording.profiler
    exporter = capture.recorded.exporter
    return f"py-spy {exporter.removeprefix(EXPORTER)}" if exporter.startswith(EXPORTER) else ""
