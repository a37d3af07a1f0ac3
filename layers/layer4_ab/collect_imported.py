"""Results of other load tools as rounds. Which runs shared a server no file tells: that is declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layers.evidence.measurement import Artifact
from layers.layer3_sweep.imported import TELLING_APART, import_runs
from layers.layer3_sweep.imported_devices import Logs
from layers.layer3_sweep.model import SweepPass
from layers.layer4_ab.distribution import of_reported
from layers.layer4_ab.excluded import why_excluded
from layers.layer4_ab.model import Arm, Recorded, Round, StartsAre
from parsers.errors import UnreadableInput
from parsers.load_formats import read_load_results
from parsers.load_results import LoadResults, ReportedRun

SAME_SERVER = "all runs"


def imported_rounds(arm: Arm, paths: Sequence[str], starts: StartsAre) -> Recorded:
    """All runs of all files; UnreadableInput where none of them can be read."""
    files, unread = list[LoadResults](), list[str]()
    for path in paths:
        try:
            files.append(read_load_results(path))
        except UnreadableInput as error:
            unread.append(str(error))
    if not files:
        raise UnreadableInput("; ".join(unread))
    imported = import_runs(files, Logs())
    told = zip(imported.passes, imported.runs, imported.seen, strict=True)
    return Recorded(
        rounds=tuple(
            Round(
                arm=arm,
                start=_start(swept, number, starts),
                number=1,
                swept=swept,
                facts=_facts(run),
                data=_data(run),
                begun_ns=run.wall_start_ns,
                ended_ns=run.wall_end_ns,
                excluded=why_excluded(swept, seen),
                ecdf_ms=of_reported(run.requests),
                record=_record(run, swept, number),
            )
            for number, (swept, run, seen) in enumerate(told, 1)
        ),
        lost=(*unread, *imported.left_out, *imported.lost),
        artifacts=tuple(Artifact(file.path, file.sha256, file.size_bytes) for file in files),
    )


def _start(swept: SweepPass, number: int, starts: StartsAre) -> str:
    if starts is StartsAre.ARM:
        return SAME_SERVER
    path = swept.artifact.path if swept.artifact else ""
    return path if starts is StartsAre.FILE else f"{path} run {number}"


def _record(run: ReportedRun, swept: SweepPass, number: int) -> str:
    """By its times, which no other run has to the last digit, however its file is laid out; without them by
    the bytes of the file and the place in it."""
    means = {name: latency.mean_ms for name, latency in run.latencies.items() if latency.mean_ms}
    if run.duration_s and means:
        return f"{run.tool} {run.wall_end_ns} {run.duration_s!r} {run.request_rate!r} {means!r}"
    return f"{swept.artifact.sha256} {number}" if swept.artifact else ""


def _facts(run: ReportedRun) -> dict[str, str]:
    """What a run was made with, as far as its file tells."""
    named = {name: str(run.other.get(name) or "") for name in TELLING_APART}
    tool = " ".join(part for part in (run.tool, run.version) if part)
    told = {"tool": tool, "arm": run.arm, **named, **run.settings}
    return {name: value for name, value in told.items() if value}


def _data(run: ReportedRun) -> Mapping[str, float]:
    """What it was asked: the number of requests, and how long their prompts were."""
    told = {"requests": float(run.asked)} if run.asked else {}
    prompt, completed = run.other.get("prompt_tokens"), run.completed
    if prompt and completed:
        told["input tokens a request"] = float(prompt) / completed
    return told
