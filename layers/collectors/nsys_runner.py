"""Records a command under Nsight Systems, from its launch on, and exports the recording to sqlite.

nsys can trace CUDA only in processes that it started, since its libraries are loaded before CUDA begins, so
the whole launch is wrapped and forked children are followed. CUDA, NVTX and calls into the C library are
traced; CPU sampling is off, since it is what slows a service most. GPU metrics are added where this user
may read the counters: nsys refuses the whole run otherwise, so it is asked before. The command's output
goes to stderr.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from layers.collectors.bounded import ProbeFailed, output_of
from parsers.errors import InvalidMeasurement, UsageError
from parsers.nsys_file import looks_like_nsys
from parsers.nsys_model import GRAPH_MODE, NODE_MODE

PROBE_TIMEOUT_S = 30.0
"""nsys takes a few seconds to look at the GPUs of a machine."""
EXPORT_TIMEOUT_S = 3600.0
"""perfkit's choice: an export writes tens of MB a second, and a recording of many GB is too large to read."""
LONGEST_S = 30.0 * 86_400
"""Of --delay and --duration: a month."""
METRICS_HZ = 1_000
"""A tenth of nsys's default: means over a second and more need no finer samples, and files stay small."""

ALWAYS = (
    *("--trace=cuda,nvtx,osrt", "--sample=none", "--cpuctxsw=none"),
    *("--trace-fork-before-exec=true", "--force-overwrite=false"),
)
METRIC_FLAGS = ("--gpu-metrics-devices", "--gpu-metrics-device")
"""Since 2024, and before."""
ONLY_VISIBLE = "cuda-visible"
"""The devices of CUDA_VISIBLE_DEVICES; older versions know `all` alone."""
REFUSALS = ("Insufficient privilege", "ERR_NVGPUCTRPERM", "None of the installed GPUs")
ACCEPTANCE = "values are"
"""What the help of the flag says where metrics can be collected: `--gpu-metrics-devices values are …`."""

REPORT_SUFFIXES = (".nsys-rep", ".qdrep")
STDERR = 2
KEPT = "the report itself is kept"

MISSING = (
    "nsys is not on PATH: install Nsight Systems (Debian, Ubuntu: apt install nsight-systems-cli from "
    "NVIDIA's "
    "repository; else developer.nvidia.com/nsight-systems), or use perfkit layer1 --live, which needs none"
)
NO_ATTACH = (
    "nsys cannot attach to a running process: its libraries must be loaded before CUDA begins. Stop the "
    "service "
    "and start it under perfkit: perfkit nsys run -- COMMAND (--delay and --duration choose the stretch "
    "that is "
    "recorded), or use perfkit layer1 --live"
)


@dataclass(frozen=True, slots=True)
class GpuMetrics:
    """The options that add GPU metrics, or why there are none."""

    options: tuple[str, ...]
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to record: `stem` is the path of the recording without its suffix. Without `delay_s` it begins
    with the launch, without `duration_s` it ends with the command. UsageError for what nsys would misread.
    """

    command: Sequence[str]
    stem: Path
    graphs: str = GRAPH_MODE
    delay_s: float | None = None
    duration_s: float | None = None
    metrics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.command or not self.command[0] or self.command[0].startswith("-"):
            raise UsageError("name the command to record after --: perfkit nsys run -- COMMAND")
        if self.graphs not in (GRAPH_MODE, NODE_MODE):
            raise UsageError(f"--graphs is {GRAPH_MODE} or {NODE_MODE}, not {self.graphs}")
        for option, seconds in (("--delay", self.delay_s), ("--duration", self.duration_s)):
            if seconds is not None and not 0 < seconds <= LONGEST_S:
                limits = f"must be more than 0 s and at most {LONGEST_S:,.0f} s"
                raise UsageError(f"{option} {seconds:g}: {limits}")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A finished recording: nsys's report, its sqlite export, and the exit code that nsys ended with."""

    report: Path
    export: Path
    exit_code: int


def new_stem(folder: Path, name: str) -> Path:
    """The stem of a recording in a folder of its own, `name`, name-2, name-3, ... in `folder`, made now.

    Whatever lies there is this recording's, however many start at one time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        own = folder / (name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            own.mkdir()
            return own / own.name
    raise AssertionError("count never ends")


def find_nsys() -> str:
    """The path of nsys. Raises UsageError where it is not installed."""
    path = shutil.which("nsys")
    if path is None:
        raise UsageError(MISSING)
    return path


def ask_for_gpu_metrics(nsys: str) -> GpuMetrics:
    """Ask nsys whether it may sample GPU metrics here, under the name that its version has for them."""
    why_not = "this nsys knows no GPU metrics"
    for flag in METRIC_FLAGS:
        try:
            said = output_of([nsys, "profile", f"{flag}=help"], PROBE_TIMEOUT_S).decode(errors="replace")
        except ProbeFailed as failed:
            said = str(failed)
        refused = next((text for text in REFUSALS if text in said), None)
        if refused is not None:
            return GpuMetrics((), f"nsys refuses GPU metrics here ({refused})")
        if ACCEPTANCE in said:
            devices = ONLY_VISIBLE if ONLY_VISIBLE in said else "all"
            return GpuMetrics((f"{flag}={devices}", f"--gpu-metrics-frequency={METRICS_HZ}"))
    return GpuMetrics((), why_not)


def profile_command(nsys: str, plan: Plan) -> list[str]:
    """The command line that records the plan."""
    stretch = {"--delay": plan.delay_s, "--duration": plan.duration_s}
    return [
        *(nsys, "profile", *ALWAYS, f"--cuda-graph-trace={plan.graphs}"),
        *(f"{option}={_decimal(seconds)}" for option, seconds in stretch.items() if seconds is not None),
        *plan.metrics,
        f"--output={plan.stem}",
        *plan.command,
    ]


def _decimal(seconds: float) -> str:
    """`60`, `2.5` or `1234567.5`: nsys reads no exponents, and parts of a millisecond mean nothing to it."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".")


def record(nsys: str, plan: Plan) -> Recorded:
    """Run the command to its end (or the recording's) and export what was recorded.

    An interrupt or SIGTERM ends the recording and not perfkit. Raises InvalidMeasurement where nsys wrote
    nothing, or nothing that it can export.
    """
    with _interrupts_left_to_nsys(), _sigterm_interrupts() as interrupted:
        process = subprocess.Popen(profile_command(nsys, plan), stdout=STDERR)
        interrupted(process)
        exit_code = process.wait()
    found = [plan.stem.with_name(plan.stem.name + suffix) for suffix in REPORT_SUFFIXES]
    report = next((path for path in found if path.is_file()), None)
    if report is None:
        if not any(plan.stem.parent.iterdir()):
            plan.stem.parent.rmdir()
        raise InvalidMeasurement(
            f"nsys wrote no recording (it ended with exit code {exit_code}): see its messages"
        )
    return Recorded(report, export_report(nsys, report), exit_code)


@contextmanager
def _interrupts_left_to_nsys() -> Iterator[None]:
    """An interrupt goes to nsys as well, which then stops recording and writes its report; perfkit waits.

    The handler does nothing, instead of being SIG_IGN, which nsys would inherit.
    """
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _sigterm_interrupts() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """SIGTERM reaches perfkit alone; nsys is interrupted for it, which it answers by writing its report.

    Yields what to call with nsys's process once it runs: a signal may come before.
    """
    running: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        early.append(number)
        for process in running:
            process.send_signal(signal.SIGINT)

    def runs(process: subprocess.Popen[bytes]) -> None:
        running.append(process)
        if early:
            process.send_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield runs
    finally:
        signal.signal(signal.SIGTERM, before)


def export_report(nsys: str, report: Path) -> Path:
    """The sqlite export of a report, beside it. Raises InvalidMeasurement where nsys cannot make one."""
    export = report.with_suffix(".sqlite")
    command = [nsys, "export", "--type=sqlite", f"--output={export}", "--force-overwrite=false", str(report)]
    try:
        output_of(command, EXPORT_TIMEOUT_S)
    except ProbeFailed as failed:
        raise InvalidMeasurement(f"{report}: nsys export failed: {failed}; {KEPT}") from None
    if not looks_like_nsys(str(export)):
        raise InvalidMeasurement(f"{report}: nsys export wrote no SQLite database; {KEPT}")
    return export
