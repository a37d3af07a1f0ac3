"""Stage events for tests, as SGLang-Omni, the bundled engine or anybody's logger writes them; times in ms."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from layers.evidence.result import Result
from layers.stages.analyse import analyse
from layers.stages.collect import collect_stages
from layers.stages.judge import judge
from layers.stages.model import RunLedger, StageAnalysis

EPOCH_NS = 1_785_900_000_000_000_000
NS_PER_MS = 1_000_000

Line = dict[str, Any]


def line(request: str, stage: str, event: str, at_ms: float, run: str = "r", **metadata: Any) -> Line:
    """One event."""
    return {
        "request_id": request,
        "stage": stage,
        "event_name": event,
        "timestamp_ns": EPOCH_NS + round(at_ms * NS_PER_MS),
        "run_id": run,
        "pid": metadata.pop("pid", 7),
        "metadata": metadata,
    }


def asr_request(
    request: str,
    at_ms: float = 0.0,
    *,
    build: float = 5.0,
    hand_over: float = 1.0,
    queue: float = 10.0,
    first: float = 30.0,
    decode: float = 54.0,
    run: str = "r",
    ends_prefill: bool = True,
    batch: int = 1,
) -> list[Line]:
    """One request of a single stage; 100 ms in all unless told otherwise, none of them unaccounted."""
    at = [at_ms]
    for took in (build, hand_over, queue, first, decode):
        at.append(at[-1] + took)
    lines = [
        line(request, "coordinator", "request_admission", at[0], run),
        line(request, "asr", "stage_input_received", at[0], run, from_stage="coordinator"),
        line(request, "asr", "scheduler_request_build_start", at[0], run),
        line(request, "asr", "scheduler_request_build_end", at[1], run),
        line(request, "asr", "scheduler_queue_enter", at[2], run),
        line(request, "asr", "scheduler_prefill_start", at[3], run),
        line(request, "asr", "scheduler_first_emit", at[4], run),
        line(request, "asr", "stage_complete", at[5], run, terminal=True),
        line(request, "coordinator", "terminal_response", at[5], run),
    ]
    if ends_prefill:
        lines.insert(6, line(request, "asr", "scheduler_prefill_end", at[4], run, batch_size=batch))
    return lines


def asr_run(count: int = 30, every_ms: float = 20.0, run: str = "r", **took: Any) -> list[Line]:
    """A steady run: a request every so often, five in flight."""
    return [one for n in range(count) for one in asr_request(f"{run}{n}", n * every_ms, run=run, **took)]


def written(path: Path, lines: Iterable[Line]) -> str:
    """The events in a file, in the order of their time."""
    ordered = sorted(lines, key=lambda one: int(one["timestamp_ns"]))
    path.write_text("".join(json.dumps(one) + "\n" for one in ordered), encoding="utf-8")
    return str(path)


def plain_csv(path: Path, rows: Sequence[str], header: str = "request,stage,event,timestamp_ms") -> str:
    """A log of one's own."""
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return str(path)


def analysed(*paths: str, **options: Any) -> StageAnalysis:
    """What the ledger makes of these files."""
    return analyse(collect_stages(paths), **options)


def ledger(*paths: str, **options: Any) -> RunLedger:
    """The ledger that the verdict is of."""
    chosen = analysed(*paths, **options).chosen
    assert chosen is not None
    return chosen


def judged(*paths: str, **options: Any) -> Result:
    """The result of `perfkit stages` on these files."""
    return judge(analysed(*paths, **options))
