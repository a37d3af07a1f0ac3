"""From captures to one verdict on one thread, with its guards, measurements and findings. Pure.

A capture that is void is left out, and what is left is counted anew; nothing of it reaches a share. Where all
are void there is no finding, only the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from layers.collectors.stacks.recording import Target
from layers.evidence.guard import Checked, Effect, apply_guards, strongest_effect
from layers.evidence.result import Result
from layers.evidence.strength import exit_code_for
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import first_few
from layers.layer2_stacks.because import UNDER_LOAD, because, next_step
from layers.layer2_stacks.checks_thread import KERNEL_LIMIT
from layers.layer2_stacks.choice import ANY_THREAD, Choice
from layers.layer2_stacks.collect import artifact_of
from layers.layer2_stacks.comparison import compare_weighed
from layers.layer2_stacks.facts import Facts
from layers.layer2_stacks.findings import findings_of
from layers.layer2_stacks.findings_compare import comparison_findings, over_time_findings
from layers.layer2_stacks.guards_capture import CAPTURE_GUARDS, IDLE_SERVER
from layers.layer2_stacks.guards_thread import THREAD_GUARDS
from layers.layer2_stacks.kernel_cpu import core_wait, kernel_share, running_share
from layers.layer2_stacks.measurements import thread_measurements
from layers.layer2_stacks.model import Capture
from layers.layer2_stacks.reading import Reading
from layers.layer2_stacks.sections import sections
from layers.layer2_stacks.weigh import Weighed, weigh
from layers.layer2_stacks.words import Word, word_of

COMMAND = "layer2"


def judge(
    captures: Sequence[Capture],
    *,
    target: Target | None = None,
    choice: Choice = ANY_THREAD,
    before: Sequence[Capture] = (),
    later: Sequence[Capture] = (),
    unread: Sequence[str] = (),
    more_guards: Sequence[Checked] = (),
) -> Result:
    """The result of `perfkit layer2`, of captures in any modes.

    `before`: captures to compare with, of the same thread before a change. `later`: captures taken long
    after, to tell a one-off cost from a steady one. Neither changes the verdict.
    `unread`: files that could not be read; `more_guards`: what whoever recorded found on the recording.
    """
    weighed = weigh(captures, choice)
    reading = weighed.reading
    compared = compare_weighed(weigh(before), weighed, reading) if before and reading else None
    over_time = compare_weighed(weighed, weigh(later), reading) if later and reading else None
    sides = [side for side in (compared, over_time) if side is not None]
    guards = [*weighed.guards, *more_guards, *(g for side in sides for g in side.guards)]
    files = map(artifact_of, [*captures, *before, *later])
    of_captures = (weighed.captures, weighed.analyses, reading)
    told = sections(*of_captures, target, unread, compared, over_time, files)
    if reading is None:
        return Result(COMMAND, _void(weighed), guards, sections=told)
    facts = Facts(tuple(weighed.sound), weighed.analyses, reading)
    if (wait := core_wait(facts)) is not None:
        told["thread"]["core_wait"] = msgspec.to_builtins(wait)
    of_thread = apply_guards(THREAD_GUARDS, facts)
    concerning = [*_of_sound(weighed), *more_guards, *of_thread]
    artifacts = [artifact_of(c.capture) for c in weighed.sound]
    measured = list(thread_measurements(reading, artifacts))
    found = findings_of(reading, concerning, measured, artifacts, kernel_agrees=_kernel_agrees(facts))
    if found:  # none: the result is void, and so is what it is compared with
        found += over_time_findings(over_time) if over_time else []
        found += comparison_findings(compared) if compared else []
    return Result(COMMAND, _verdict(reading, concerning), [*guards, *of_thread], measured, found, told)


def _of_sound(weighed: Weighed) -> list[Checked]:
    return [checked for capture in weighed.captures if not capture.void for checked in capture.guards]


def _kernel_agrees(facts: Facts) -> bool:
    kernel, stacks = kernel_share(facts), running_share(facts)
    return kernel is not None and stacks is not None and abs(kernel - stacks) <= KERNEL_LIMIT


def _verdict(reading: Reading, guards: Sequence[Checked]) -> Verdict:
    if strongest_effect(guards) is Effect.VOID:
        first = next(g for g in guards if g.fired and g.effect is Effect.VOID)
        return Verdict(Word.VOID, False, f"{first.message} ({first.title})", Exit.INVALID, next_step(reading))
    word = word_of(reading)
    idle = IDLE_SERVER.fired_in(guards)
    step = UNDER_LOAD if idle is not None else next_step(reading)
    why = because(reading) + (f"; or it had no work: {idle.message}" if idle is not None else "")
    concluded = word is not Word.UNDECIDED
    doubted = any(g.fired and g.effect is Effect.DIRECTIONAL for g in guards)
    reached = Exit.OK if concluded else Exit.NO_CONCLUSION
    code = exit_code_for(reached, guards, directional=concluded and doubted)
    return Verdict(word, concluded and doubted, why, code, step)


def _void(weighed: Weighed) -> Verdict:
    """All captures are void: why, and what the strongest reason asks for."""
    fired = [g for g in weighed.guards if g.fired and g.effect is Effect.VOID]
    if not fired:
        return Verdict(Word.VOID, False, "there is no capture", Exit.INVALID, "record one under load")
    why = first_few(dict.fromkeys(f"{g.scope}: {g.message} ({g.code})" for g in fired))
    remedy = next(guard.remedy for guard in CAPTURE_GUARDS if guard.code == fired[0].code)
    return Verdict(Word.VOID, False, why, Exit.INVALID, remedy_as_step(remedy))


def remedy_as_step(remedy: str) -> str:
    """A guard's advice as the next step: no sentence, unless it begins with a name in capitals."""
    begins = remedy[:1].lower() if remedy[1:2].islower() else remedy[:1]
    return begins + remedy[1:].rstrip(".")
