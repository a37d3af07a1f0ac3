"""What `perfkit investigate` asks, and what it ends with: the recorded walk, the report, a table."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from layers.evidence.result import Result
from layers.evidence.secrets import masked_text
from layers.evidence.verdict import Exit
from parsers.children import child_command
from perfkit.cli import output
from perfkit.cli.investigate_progress import Shown
from perfkit.cli.messages import complain, say
from perfkit.cli.record import record_result
from perfkit.walk.conclude import GO_ON, PARTIAL
from perfkit.walk.model import Candidate, Profile
from perfkit.walk.run import People
from perfkit.walk.subject import Investigated

LOOK_EVERY_S = 0.2


def open_walk(whom: Investigated, profile: Profile) -> None:
    """What is about to happen, how long it takes, and what it can conclude."""
    subject = masked_text(str(whom.subject))
    say(f"investigating {subject}: profile {profile.name}, {profile.minutes} minutes on two cores")
    say(f"it can: {profile.can}")
    say(f"it cannot: {profile.cannot}")


def people(told: Callable[[], bool], profile: Profile, *, yes: bool) -> People:
    """Those at the terminal, or --yes in their place."""
    shown = Shown(profile)
    return People(
        told=told,
        begins=shown.begins,
        waits=shown.waits,
        cut=shown.cut,
        ended=shown.ended,
        left_out=shown.left_out,
        rests=shown.rest,
        may_load=lambda: yes or _agrees(told),
        choose=lambda found: found[0] if yes else _choice(found, told),
    )


def _agrees(told: Callable[[], bool]) -> bool:
    """The first stop: load on somebody's server."""
    return _asked("Load is sent to this server now. Go on? [y/N] ", told).lower() in ("y", "yes")


def _choice(found: Sequence[Candidate], told: Callable[[], bool]) -> Candidate | None:
    """The second stop: which variable Layer 4 changes."""
    for number, one in enumerate(found, 1):
        say(f"{number}. {one.name}: {one.set_} against {one.vs}")
        say(f"   {one.why}")
        for evidence in one.evidence:
            say(f"   {evidence}")
    answer = _asked("Which one is tried? (number; nothing: none now) ", told)
    chosen = int(answer) if answer.isdecimal() else 0
    return found[chosen - 1] if 0 < chosen <= len(found) else None


def _asked(question: str, told: Callable[[], bool]) -> str:
    """The answer; none where nobody sits there, or who sits there ends the walk."""
    if not sys.stdin.isatty():
        say(f"{question.split('?')[0].strip()}: nobody to ask. {GO_ON} --yes goes on")
        return ""
    print(question, end="", file=sys.stderr, flush=True)
    while not told():
        if select.select([sys.stdin], [], [], LOOK_EVERY_S)[0]:
            return sys.stdin.readline().strip()
    return ""


# The end


def keep(result: Result, investigation: Path, started: datetime) -> bool:
    """Record the walk and write the report of what there is; whether that went well. The report is written
    apart from the terminal, so that another Ctrl-C does not cut it."""
    record_result(investigation, result, started)
    command = child_command("perfkit.bootstrap:main", "report", "--html", f"--investigation={investigation}")
    written = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        start_new_session=True,
    )
    if written.returncode:
        complain(f"the report was not written: {written.stderr.strip() or written.stdout.strip()}")
    return written.returncode == 0


def finish(
    result: Result, investigation: Path, started: datetime, *, as_json: bool, zero_when_done: bool
) -> int:
    """Record the walk, write the report, say where it is."""
    written = keep(result, investigation, started)
    code = output.finish(result, as_json=as_json, show=lambda r: _show(r, investigation))
    if not written:
        return code or Exit.INTERNAL
    return Exit.OK if zero_when_done and went_through(result) else code


def went_through(result: Result) -> bool:
    """Whether every part ran or was left out for a reason; what they concluded is another matter."""
    faults = [row for row in result.sections["walk"] if row.get("exit_code") in (Exit.USAGE, Exit.INTERNAL)]
    return result.verdict.word != PARTIAL and not faults


def _show(result: Result, investigation: Path) -> None:
    output.paragraph(result.verdict.headline, result.verdict.because)
    output.paragraph("→", result.verdict.next_step)
    output.paragraph("strength", f"{result.sections['strength']} ({result.sections['rule']})")
    output.line()
    rows = [
        (
            row["layer"],
            row.get("word", "left out"),
            row.get("decision") or f"{row['left_out']}: {row['weakens']}",
        )
        for row in result.sections["walk"]
    ]
    output.show(output.table(["layer", "said", "so"], rows))
    for one in result.sections["ruled_out"]:
        output.paragraph("ruled out", f"{one['layer']}: {one['statement']} ({one['strength']})")
    output.line()
    output.paragraph("report", f"{investigation / 'report.md'}")
    output.paragraph("", f"{investigation / 'report.html'}")
