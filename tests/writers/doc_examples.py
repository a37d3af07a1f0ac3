"""The sample files in docs/examples/, with which tutorials and the CI example are tried. All are made up (but
asr_knee_tables.json, which is copied from a public page that it names).

    python -m tests.writers.doc_examples

writes them anew; a test holds them to what this file makes.
"""

from __future__ import annotations

import json

from tests.conftest import REPOSITORY
from tests.writers.chrome import TraceBuilder
from tests.writers.decode_loop import decode_loop
from tests.writers.load_results import vllm

FOLDER = REPOSITORY / "docs" / "examples"

REPLAYS, REPLAY_EVERY_NS, CALL_NS = 40, 9_000_000, 90_000
SAMPLER_AFTER_NS, SAMPLER_NS = 120_000, 40_000

ITEMS, CHANGED_ITEM = 40, 17
WORDS = ("the", "service", "was", "slow", "because", "of", "one", "line", "in", "its", "loop", "today")
WORDS_OF_ONE = 9

RATES = (8.0, 8.05, 7.98, 8.03)
GAIN = (1.081, 1.077, 1.079, 1.083)
NOISE = (1.001, 0.998, 1.0, 1.002)
MINUTES = {"base": (0, 3, 4, 7), "new": (1, 2, 5, 6), "again": (8, 9, 10, 11)}
"""When each start began: A B B A A B B A, then A against itself."""
REQUESTS = 80


def replays_not_recorded() -> TraceBuilder:
    """A service whose steps are graph replays; the trace holds their launches and one small kernel each."""
    trace = TraceBuilder()
    trace.header["deviceProperties"] = [{"id": 0, "name": "made-up device (perfkit demo)"}]
    for number in range(REPLAYS):
        at_ns = number * REPLAY_EVERY_NS
        trace.graph_launch(at_ns, (), call_dur_ns=CALL_NS)
        start_ns = at_ns + SAMPLER_AFTER_NS
        trace.launch("sample_kernel", call_ns=start_ns - 10_000, start_ns=start_ns, dur_ns=SAMPLER_NS)
    trace.profiler_span(0, REPLAYS * REPLAY_EVERY_NS)
    trace.record_window_end(REPLAYS * REPLAY_EVERY_NS)
    return trace


def answers(changed: bool) -> str:
    """One answer a line, as a client of one's own would write it; one of them changed."""
    lines = []
    for number in range(ITEMS):
        said = [WORDS[(number * 5 + at * (1 + number % 7)) % len(WORDS)] for at in range(WORDS_OF_ONE)]
        if changed and number == CHANGED_ITEM:
            said[-1] = "tomorrow"
        row = {"id": f"item-{number}", "text": " ".join(said), "finish_reason": "stop"}
        lines.append(json.dumps(row) + "\n")
    return "".join(lines)


def results(arm: str) -> dict[str, str]:
    """Four results of `vllm bench serve --save-result`, a server start each."""
    factors = {"base": (1.0,) * len(RATES), "new": GAIN, "again": NOISE}[arm]
    return {
        f"{arm}-{n}.json": json.dumps(_result(rate * factor, minute), indent=1) + "\n"
        for n, (rate, factor, minute) in enumerate(zip(RATES, factors, MINUTES[arm], strict=True), 1)
    }


def _result(rate: float, minute: int) -> dict[str, object]:
    told = {
        "request_throughput": round(rate, 4),
        "output_throughput": round(10 * rate, 3),
        "duration": round(REQUESTS / rate, 4),
        "p90_e2el_ms": round(1000 / rate, 2),
    }
    return vllm(8, date=f"20260430-10{minute:02}00", **told)


def texts() -> dict[str, str]:
    """Every text file by its path in docs/examples/."""
    outputs = {
        "answers-before.jsonl": answers(changed=False),
        "answers-before-again.jsonl": answers(changed=False),
        "answers-after.jsonl": answers(changed=False),
        "answers-after-wrong.jsonl": answers(changed=True),
    }
    return outputs | {name: text for arm in MINUTES for name, text in results(arm).items()}


def traces() -> dict[str, TraceBuilder]:
    """Every trace by its path in docs/examples/."""
    return {"decode_loop.json.gz": decode_loop(), "replays_not_recorded.json.gz": replays_not_recorded()}


if __name__ == "__main__":
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    for name, trace in traces().items():
        trace.write(FOLDER / name)
