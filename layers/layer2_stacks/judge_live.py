"""From a live recording to the result of `perfkit layer2`: captures judged, with the guards on how they came.

A capture that fell behind is judged with the others, and voided by its own guard, so that it is seen in the
document; one without a file is named alone. Where nothing could be recorded the result is void and says what
to change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from layers.collectors.stacks.live_facts import Attempt, LiveFacts
from layers.evidence.guard import Checked, Effect, apply_guards
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import first_few
from layers.layer2_stacks.choice import ANY_THREAD, Choice
from layers.layer2_stacks.guards_recording import (
    CUT_SHORT,
    LIVE_STACK_GUARDS,
    TARGET_DIED,
    THROWN_AWAY,
    inside,
)
from layers.layer2_stacks.judge import COMMAND, judge, remedy_as_step
from layers.layer2_stacks.model import Capture
from layers.layer2_stacks.sections import sections
from layers.layer2_stacks.words import Word

UNPRIVILEGED = "perfkit stages --help (which stage holds the requests needs no right to trace)"


def judge_live(
    live: LiveFacts, captures: Sequence[Capture], *, choice: Choice = ANY_THREAD, unread: Sequence[str] = ()
) -> Result:
    """`captures` are those of the attempts that were not cut, and left a file."""
    guards = apply_guards(LIVE_STACK_GUARDS, live)
    if captures:
        result = judge(captures, target=live.target, choice=choice, unread=unread, more_guards=guards)
        result = replace(result, sections=result.sections | {"recording": recording_section(live)})
        if step := _step_of_recording(live, result.verdict):
            result = replace(result, verdict=replace(result.verdict, next_step=step))
    else:
        result = _nothing(live, guards, unread)
    return result.interrupted() if live.cut_short else result


def _nothing(live: LiveFacts, guards: Sequence[Checked], unread: Sequence[str]) -> Result:
    """Nothing was recorded: why, and the change that helps."""
    fired = [g for g in guards if g.fired and g.effect is Effect.VOID]
    if live.obstacles:  # their guards' messages say what to do as well, which is the next step here
        why = f"{first_few(one.seen for one in live.obstacles)} ({', '.join(g.title for g in fired)})"
        step = live.obstacles[0].fix
    else:
        why = first_few(f"{g.message} ({g.title})" for g in fired) or "no capture was made"
        step = _step_of_guards(guards)
    told = sections((), (), None, live.target, unread) | {"recording": recording_section(live)}
    return Result(COMMAND, Verdict(Word.VOID, False, why, Exit.INVALID, step), list(guards), sections=told)


def _step_of_guards(guards: Sequence[Checked]) -> str:
    """What the guard asks for that says most of why there is no capture."""
    chief = next((one for one in (TARGET_DIED, CUT_SHORT, THROWN_AWAY) if one.fired_in(guards)), None)
    return remedy_as_step(chief.remedy) if chief is not None else UNPRIVILEGED


def _step_of_recording(live: LiveFacts, verdict: Verdict) -> str:
    """The next step where how it was recorded decides it; "" where it is the thread's.

    What was found stopped behind the captures makes them say nothing of what a thread waits for; from outside
    of the target's PID namespace nothing tells work from calls that block.
    """
    if live.obstacles:
        return live.obstacles[0].fix
    if live.nested and verdict.word == Word.UNDECIDED:
        return f"{inside(live.target)}: from outside nothing tells work from calls that block"
    return ""


def recording_section(live: LiveFacts) -> dict[str, Any]:
    """How the captures came about, for the document."""
    return {
        "asked": live.asked,
        "asked_rate_hz": live.asked_rate_hz,
        "look": msgspec.to_builtins(live.cost) if live.cost else None,
        "attempts": [_attempt(attempt) for attempt in live.attempts],
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    recording = attempt.recording
    return {
        "file": attempt.path,
        "log": attempt.log_path,
        "mode": recording.mode,
        "command": list(recording.command),
        "profiler": recording.profiler,
        "target_python": recording.target_python,
        "rate_hz": recording.rate_hz,
        "asked_s": recording.asked_s,
        "begun": recording.begun.isoformat(),
        "ended": recording.ended.isoformat(),
        "wall_s": recording.wall_s,
        "exit_code": recording.exit_code,
        "ended_how": str(recording.ended_how),
        "discarded": attempt.discarded,
        "largest_lag_s": attempt.lag_s,
        "tracers": list(attempt.tracers),
        "load": msgspec.to_builtins(recording.load) if recording.load else None,
        "threads": [msgspec.to_builtins(thread) for thread in recording.threads],
    }
