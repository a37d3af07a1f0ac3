"""The start-up gate: did the servers of B come up with everything that those of A came up with, and serve?

A server that skips graph capture, or falls back from it, answers all the same and is another server. What
came up is read off the lines that SGLang, vLLM and the bundled engine write to their logs; a phase that A
tells and B does not is missing. "Captured" in a log does not prove that serving uses it: that is what the
treatment check is for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from layers.evidence.wording import counted
from layers.layer4_ab.model import Gate, GateState, Start
from parsers.loss_tally import LossTally
from parsers.text_lines import TextLines

WEIGHTS, GRAPHS, READY = "weights loaded", "graphs captured", "ready"
PHASES = {
    WEIGHTS: re.compile(r"Load weight ends?\b|Loading weights took|Model loading took"),
    GRAPHS: re.compile(r"Capture .*cuda graph end|Graph capturing finished", re.IGNORECASE),
    READY: re.compile(r"fired up and ready to roll|Application startup complete|sample_engine: serving "),
}
"""What SGLang and vLLM write (logs of 2024 to 2026), and the bundled engine."""


def phases_in(path: str) -> frozenset[str]:
    """The phases that a log tells; UnreadableInput where it cannot be read. An empty log tells none."""
    lines = TextLines(path, LossTally())
    try:
        return frozenset(
            name for line in lines for name, pattern in PHASES.items() if pattern.search(line) is not None
        )
    finally:
        lines.close()


def startup_gate(starts: Sequence[Start], logs_a: Sequence[str], logs_b: Sequence[str]) -> Gate:
    """Every start served; every log of B tells what a log of A tells, the readiness at least."""
    served = sum(any(one.swept.throughput_rps > 0 for one in start.rounds) for start in starts)
    said = f"{served} of {counted(len(starts), 'start')} served requests"
    if served < len(starts):
        return Gate(GateState.FAILED, said)
    if not logs_a or not logs_b:
        return Gate(GateState.NOT_SHOWN, f"{said}; no logs of both arms tell what came up before")
    told_a, told_b = ([phases_in(path) for path in logs] for logs in (logs_a, logs_b))
    of_a = frozenset[str]().union(*told_a)
    missing = [name for name in PHASES if name in of_a and any(name not in told for told in told_b)]
    if missing:
        return Gate(GateState.FAILED, f"{said}; logs of B lack what those of A tell: {', '.join(missing)}")
    if READY not in of_a:
        return Gate(GateState.NOT_SHOWN, f"{said}; no log has a line of start-up that perfkit knows")
    told = ", ".join(name for name in PHASES if name in of_a)
    return Gate(GateState.PASSED, f"{said}; {told} in every log of B ({len(logs_b)})")
