"""What `perfkit investigate` says on its way, what it asks, and what it ends with."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted
from parsers.children import child_command
from perfkit.cli import output
from perfkit.cli.messages import say
from perfkit.cli.record import record_result
from perfkit.walk.journal import Told
from perfkit.walk.model import Candidate, Decision, Outcome, Part, Profile
from perfkit.walk.run import People
from perfkit.walk.subject import Investigated

CLEAR_LINE = "\r\x1b[2K"
GONE_ON = "perfkit investigate --resume"


def open_walk(whom: Investigated, profile: Profile) -> None:
    """What is about to happen, how long it takes, and what it can conclude."""
    say(f"investigating {whom.subject}: profile {profile.name}, {profile.minutes} minutes")
    say(f"it {profile.can}; it cannot: {profile.cannot}")


def people(told: Callable[[], bool], *, yes: bool) -> People:
    """Those at the terminal, or --yes in their place."""
    shown = _Shown()
    return People(
        told=told,
        begins=shown.begins,
        waits=shown.waits,
        ended=shown.ended,
        left_out=shown.left_out,
        may_load=lambda: yes or _agrees(),
        choose=lambda found: found[0] if yes else _choice(found),
    )


class _Shown:
    """Progress on stderr: a line for each part that ended, and a moving one on a terminal."""

    def __init__(self) -> None:
        self._part, self._began_s = Part.PREFLIGHT, time.monotonic()

    def begins(self, part: Part, arguments: Sequence[str]) -> None:
        self._part, self._began_s = part, time.monotonic()

    def waits(self) -> None:
        if sys.stderr.isatty():
            number = list(Part).index(self._part) + 1
            seconds = time.monotonic() - self._began_s
            text = f"{number}/{len(Part)} {self._part.label}: perfkit {self._part} {seconds:.0f} s"
            print(f"{CLEAR_LINE}{text}", end="", file=sys.stderr, flush=True)

    def ended(self, outcome: Outcome, decision: Decision) -> None:
        seconds = time.monotonic() - self._began_s
        self._line(f"{outcome.part.label}: {outcome.headline}, {outcome.because} ({seconds:.0f} s)")
        say(f"    → {decision.because}")

    def left_out(self, part: Part, because: str) -> None:
        self._line(f"{part.label}: left out: {because}")

    @staticmethod
    def _line(text: str) -> None:
        if sys.stderr.isatty():
            print(CLEAR_LINE, end="", file=sys.stderr)
        say(text)


def _agrees() -> bool:
    """The first stop: load on somebody's server."""
    return _asked("Load is sent to this server now. Go on? [y/N] ").lower() in ("y", "yes")


def _choice(found: Sequence[Candidate]) -> Candidate | None:
    """The second stop: which variable Layer 4 changes."""
    for number, one in enumerate(found, 1):
        say(f"{number}. {one.name}: {one.set_} against {one.vs}")
        say(f"   {one.why}")
        for evidence in one.evidence:
            say(f"   {evidence}")
    answer = _asked("Which one is tried? (number; nothing: none now) ")
    chosen = int(answer) if answer.isdecimal() else 0
    return found[chosen - 1] if 0 < chosen <= len(found) else None


def _asked(question: str) -> str:
    """The answer; none where nobody sits there."""
    if not sys.stdin.isatty():
        say(f"{question.split('?')[0].strip()}: nobody to ask. {GONE_ON} --yes goes on")
        return ""
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def result_of(told: Told, *, whole: bool, interrupted: bool) -> Result:
    """The walk as one document: what each part said, what was decided, what was tried."""
    sections: dict[str, Any] = {
        "walk": [_row(part, told) for part in Part if part in told.decisions or part in told.left_out],
        "candidates": [asdict(one) for one in told.candidates],
        "tried": asdict(told.chosen) if told.chosen is not None else None,
    }
    return Result("investigate", _verdict(told, whole, interrupted), sections=sections)


def _row(part: Part, told: Told) -> dict[str, Any]:
    if part in told.left_out:
        return {"layer": part.label, "command": part.value, "left_out": told.left_out[part]}
    outcome, decision = told.outcomes[part], told.decisions[part]
    return {
        "layer": part.label,
        "command": part.value,
        "word": outcome.word,
        "directional": outcome.directional,
        "because": outcome.because,
        "exit_code": outcome.exit_code,
        "way": str(decision.way),
        "decision": decision.because,
    }


def _verdict(told: Told, whole: bool, interrupted: bool) -> Verdict:
    done = f"{counted(len(told.decisions), 'part')} of {len(Part)} done, {len(told.left_out)} left out"
    if not whole:
        code = Exit.INTERRUPTED if interrupted else Exit.NO_CONCLUSION
        return Verdict("partial", False, done, code, GONE_ON)
    change = told.outcomes.get(Part.LAYER4)
    if change is not None and change.word == "improvement" and told.chosen is not None:
        answers = told.outcomes.get(Part.LAYER5)
        after = f"; answers: {answers.word}" if answers is not None else ""
        because = f"{told.chosen.name}: {change.because}{after}"
        code = Exit(answers.exit_code) if answers is not None and answers.exit_code in list(Exit) else Exit.OK
        return Verdict("cause-found", change.directional, because, code, "see the report")
    if told.candidates:
        because = f"{told.candidates[0].name}: {told.candidates[0].evidence[0]}"
        tried = f" (Layer 4: {change.word})" if change is not None else " (not tried)"
        return Verdict("cause-proposed", True, because + tried, Exit.NO_CONCLUSION, told.candidates[0].how)
    first = told.outcomes.get(Part.LAYER1)
    said = f"Layer 1: {first.headline}, {first.because}" if first is not None else done
    return Verdict("no-cause-named", False, said, Exit.NO_CONCLUSION, "see the report")


def finish(result: Result, investigation: Path, started: datetime, *, as_json: bool) -> int:
    """Record the walk, write the report, say where it is."""
    record_result(investigation, result, started)
    command = child_command("perfkit.bootstrap:main", "report", "--html", f"--investigation={investigation}")
    written = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if written.returncode:
        say(f"the report was not written: {written.stderr.strip() or written.stdout.strip()}")
    code = output.finish(result, as_json=as_json, show=lambda r: _show(r, investigation))
    return code or (Exit.INTERNAL if written.returncode else Exit.OK)


def _show(result: Result, investigation: Path) -> None:
    output.paragraph(result.verdict.headline, result.verdict.because)
    output.paragraph("→", result.verdict.next_step)
    output.line()
    rows = [
        (row["layer"], row.get("word", "left out"), row.get("decision") or row["left_out"])
        for row in result.sections["walk"]
    ]
    output.show(output.table(["layer", "said", "so"], rows))
    output.line()
    output.paragraph("report", f"{investigation / 'report.md'}, {investigation / 'report.html'}")
