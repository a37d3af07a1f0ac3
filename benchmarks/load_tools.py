"""Whole load tools against the responder: what they report of it, beside what it knows of itself.

Each is run by its own command line with both cores free to it, and its own result file is read. A tool's CPU
is that of its process tree over the whole run, its start (most of it on short runs) and its reports included.
The true TTFT is the responder's: from the reading of a request to the sending of its first event.
"""

from __future__ import annotations

import json
import math
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load_cells import MODES, table
from layers.collectors.load.responder import NS_PER_MS, responding
from parsers.load_formats import read_load_results

MODEL = "benchmark-model"
MOST_REQUESTS = 20_000
LONGEST_S = 240
"""Of one run; on two busy cores a tool takes up to a minute to start."""
LAST_WORDS = 400
"""Characters of what a tool that failed said last."""
COLUMNS = "tool", "req/s", "in flight", "TTFT p50 ms", "true", "error", "CPU s", "CPU us/chunk", "wall s"


@dataclass(frozen=True, slots=True)
class Task:
    """One run of a tool. `folder` holds a tokenizer, and takes what the tool reads and writes."""

    port: int
    n: int
    mode: str
    seconds: float
    folder: Path

    @property
    def url(self) -> str:
        chunks, gap_ms = MODES[self.mode]
        return f"http://127.0.0.1:{self.port}/stream/{chunks}/{gap_ms}"


def write_tokenizer(folder: Path) -> None:
    """A tokenizer of whole words, since tools want one and would fetch it. It knows the responder's word."""
    words = {"[UNK]": 0, "word": 1, "hello": 2}
    told = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"},
    }
    folder.joinpath("tokenizer.json").write_text(json.dumps(told))
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}
    folder.joinpath("tokenizer_config.json").write_text(json.dumps(kind))


def aiperf(task: Task) -> list[str]:
    """Arguments of aiperf 0.13."""
    place, _, path = task.url.partition("/stream/")
    prompts = task.folder / "prompts.jsonl"
    prompts.write_text('{"text": "hello"}\n')
    told = {
        "--model": MODEL,
        "--url": place,
        "--custom-endpoint": f"/stream/{path}/v1/chat/completions",
        "--endpoint-type": "chat",
        "--concurrency": task.n,
        "--benchmark-duration": task.seconds,
        "--tokenizer": task.folder,
        "--input-file": prompts,
        "--custom-dataset-type": "single_turn",
        "--artifact-dir": task.folder / "results",
        "--ui": "none",
    }
    flags = ["--streaming", "--no-server-metrics", "--no-gpu-telemetry"]
    return ["profile", *flags, *(str(part) for pair in told.items() for part in pair)]


def guidellm(task: Task) -> list[str]:
    """Arguments of guidellm 0.8. It asks each prompt once."""
    prompts = task.folder / "prompts.jsonl"
    prompts.write_text('{"prompt": "hello"}\n' * MOST_REQUESTS)
    told = {
        "--backend": f"kind=openai_http,target={task.url},model={MODEL},request_format=/v1/chat/completions",
        "--profile": f"kind=concurrent,streams={task.n}",
        "--constraint": f"kind=max_duration,seconds={task.seconds:g}",
        "--tokenizer": f"kind=huggingface_auto,model={task.folder}",
        "--data": f"kind=json_file,path={prompts}",
        "--output": f"kind=json,path={task.folder / 'benchmarks.json'}",
    }
    return ["run", "--disable-console", *(part for pair in told.items() for part in pair)]


TOOLS: Mapping[str, tuple[Callable[[Task], list[str]], str]] = {
    "aiperf": (aiperf, "profile_export_aiperf.json"),
    "guidellm": (guidellm, "benchmarks.json"),
}
"""Arguments, and the name of the result file."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one run of a tool reported, what the responder knew, and what the run took.

    Not a number is what was not told. The responder does not tell the TTFT of answers at once; it is next to
    nothing.
    """

    request_rate: float
    in_flight: float
    ttft_ms: float
    true_ttft_ms: float
    chunks: int
    cpu_s: float
    wall_s: float

    def row(self, name: str) -> list[str]:
        error_ms = self.ttft_ms - self.true_ttft_ms
        per_chunk_us = 1e6 * self.cpu_s / self.chunks if self.chunks else math.nan
        millis = (told(value, 2) for value in (self.ttft_ms, self.true_ttft_ms, error_ms))
        rates = told(self.request_rate, 1), told(self.in_flight, 1)
        return [name, *rates, *millis, told(self.cpu_s, 1), told(per_chunk_us, 0), told(self.wall_s, 0)]


def told(value: float, digits: int) -> str:
    """With so many digits; what is no number was not told."""
    return "not told" if math.isnan(value) else f"{value:,.{digits}f}"


def program_of(tool: str, named: str | None) -> str | None:
    """The program that was named, else the one on the path; None where there is none."""
    return shutil.which(named or tool)


def run_tool(tool: str, program: str, core: int | None, n: int, mode: str, seconds: float) -> Found | str:
    """What it reported; where it failed or reported nothing, its last words."""
    with tempfile.TemporaryDirectory() as folder, responding(core) as port:
        task = Task(port, n, mode, seconds, Path(folder))
        write_tokenizer(task.folder)
        arguments, results = TOOLS[tool]
        before, begin_s = tree_cpu_s(), time.monotonic()
        try:
            ended = subprocess.run(
                [program, *arguments(task)], capture_output=True, text=True, timeout=LONGEST_S, cwd=folder
            )
        except subprocess.TimeoutExpired:
            return f"not over after {LONGEST_S} s"
        took = tree_cpu_s() - before, time.monotonic() - begin_s
        written = next(task.folder.rglob(results), None)
        if ended.returncode or written is None:
            return f"exit {ended.returncode}: {(ended.stdout + ended.stderr).strip()[-LAST_WORDS:]}"
        return found_in(written, task, *took)


def tree_cpu_s() -> float:
    """CPU of all children that have ended, and of theirs that they waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def found_in(results: Path, task: Task, cpu_s: float, wall_s: float) -> Found:
    run = read_load_results(str(results)).runs[0]
    ttft = run.latencies.get("ttft")
    return Found(
        request_rate=math.nan if run.request_rate is None else run.request_rate,
        in_flight=math.nan if run.in_flight is None else run.in_flight,
        ttft_ms=ttft.quantiles_ms.get(0.5, math.nan) if ttft else math.nan,
        true_ttft_ms=true_ttft_ms(task),
        chunks=(run.completed or 0) * MODES[task.mode][0],
        cpu_s=cpu_s,
        wall_s=wall_s,
    )


def true_ttft_ms(task: Task) -> float:
    """As the responder knows it, at the median; not a number where it sent no paced answer."""
    with urllib.request.urlopen(f"http://127.0.0.1:{task.port}/v1/models") as answer:
        first_ns = json.load(answer)["first_ns"]
    return statistics.median(first_ns) / NS_PER_MS if first_ns else math.nan


def compared(programs: Mapping[str, str], core: int, n: int, mode: str, seconds: float) -> str:
    """One run of each tool, as a table; then why those that failed did."""
    found = {tool: run_tool(tool, program, core, n, mode, seconds) for tool, program in programs.items()}
    rows = [one.row(tool) for tool, one in found.items() if isinstance(one, Found)]
    return "\n".join([table(COLUMNS, rows), *_failures(found)])


def _failures(found: Mapping[str, Found | str]) -> Iterator[str]:
    for tool, one in found.items():
        if isinstance(one, str):
            yield f"\n{tool} gave no result: {one}"
