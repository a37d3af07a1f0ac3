"""What `perfkit layer2` prints of a recording that it made: which process and why, under which load, at what
price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layers.evidence.wording import counted, first_few, pct
from perfkit.cli import output

Entry = Mapping[str, Any]
COMMAND_CHARACTERS = 60


def show_recording(target: Entry, recording: Entry) -> None:
    """The process, the others of its tree, the load and the cost of a look."""
    output.line()
    command = " ".join(target["argv"])
    short = command if len(command) <= COMMAND_CHARACTERS else f"{command[: COMMAND_CHARACTERS - 1]}…"
    output.paragraph("process", f"{target['pid']} ({short}): {'; '.join(target['why'])}")
    if target["others"]:
        output.paragraph("not", first_few(f"{one['pid']}: {one['why_not']}" for one in target["others"]))
    attempts: list[Entry] = recording["attempts"]
    loads = [attempt["load"] for attempt in attempts if attempt["load"]]
    if loads:
        output.paragraph("load", _load_words(loads))
    look = recording["look"]
    if look:
        rates = sorted({attempt["rate_hz"] for attempt in attempts if not attempt["discarded"]})
        share = f", {pct(rates[-1] * look['pause_ms'] / 1000)} of its time" if rates else ""
        said = f"stops {counted(look['threads'], 'thread')} for {look['pause_ms']:.2g} ms"
        at = f" at {' and '.join(map(str, rates))} Hz" if rates else ""
        output.paragraph("a look", f"{said} (median of {look['n']}){share}{at}")


def _load_words(loads: Sequence[Entry]) -> str:
    """Over all captures: what was answered in them, and the least and the most under way."""
    completed = [one["completed"] for one in loads if one["completed"] is not None]
    in_flight = [one["in_flight_mean"] for one in loads if one["in_flight_mean"] is not None]
    cores = [one["cpu_share"] for one in loads if one["cpu_share"] is not None]
    said = [f"{counted(sum(completed), 'request')} completed in the captures"] if completed else []
    said += [f"{min(in_flight):.1f} to {max(in_flight):.1f} in flight"] if in_flight else []
    said += [f"{min(cores):.2f} to {max(cores):.2f} cores busy in the process"] if cores else []
    sources = first_few(dict.fromkeys(one["source"] for one in loads))
    return f"{', '.join(said) or 'nothing is known'} ({sources})"
