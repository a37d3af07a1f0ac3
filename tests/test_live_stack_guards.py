"""Each guard on a live recording fires on its trap and not on the nearest recording without it."""

from __future__ import annotations

from typing import Any

import pytest

from layers.collectors.stacks.live_facts import Likelier, LiveFacts, Obstacle, Obstacles
from layers.collectors.stacks.recording import Ended, Target, TickCost
from layers.evidence.guard import Checked, Effect, apply_guards
from layers.layer2_stacks.guards_recording import LIVE_STACK_GUARDS
from tests.stack_targets import attempt, live

INNER = Target(100, ("python",), (), (), 8, "3.12", 7)


def checks(code: str, facts: LiveFacts) -> list[Checked]:
    """What one guard says; nothing where it does not apply."""
    return apply_guards([guard for guard in LIVE_STACK_GUARDS if guard.code == code], facts)


def outcome(code: str, facts: LiveFacts) -> tuple[bool, Effect, str]:
    """Fired, effect and message."""
    (checked,) = checks(code, facts)
    return checked.fired, checked.effect, checked.message


def stands(kind: Obstacles) -> dict[str, Any]:
    return {"obstacles": (Obstacle(kind, "seen this", "change that"),), "attempts": ()}


def test_a_whole_recording_fires_none() -> None:
    cost = TickCost(0.5, 20, 8)
    checked = apply_guards(LIVE_STACK_GUARDS, live(cost=cost))
    assert [c.title for c in checked if c.fired] == []
    assert len(checked) == len(LIVE_STACK_GUARDS)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("PK250", Obstacles.NO_PROFILER),
        ("PK251", Obstacles.RIGHTS),
        ("PK252", Obstacles.STOPPED),
        ("PK253", Obstacles.ENDED),
        ("PK254", Obstacles.TRACED),
        ("PK255", Obstacles.INTERPRETER),
    ],
)
def test_what_stands_against_a_recording_voids_it_with_the_change_that_helps(
    code: str, kind: Obstacles
) -> None:
    assert outcome(code, live(**stands(kind))) == (True, Effect.VOID, "seen this. Do: change that")
    other = next(one for one in Obstacles if one is not kind)
    assert checks(code, live(**stands(other))) == []
    assert not outcome(code, live())[0]


@pytest.mark.parametrize(
    ("code", "changed", "effect", "words"),
    [
        ("PK256", {"nested": True, "target": INNER}, Effect.DIRECTIONAL, "--pid 7"),
        ("PK256", {"nested": True, "target": INNER}, Effect.DIRECTIONAL, "and the one with --gil"),
        ("PK257", {"likelier": Likelier(5, "a loop")}, Effect.DIRECTIONAL, "perfkit layer2 --pid 5"),
        ("PK258", {"attempts": (attempt(discarded="late"),)}, Effect.VOID, "none is left"),
        ("PK258", {"attempts": (attempt(discarded="late"), attempt())}, Effect.NOTE, "at 20 Hz"),
        ("PK259", {"cost": TickCost(9.0, 20, 159)}, Effect.DIRECTIONAL, "18.0 % of its time at 20 Hz"),
        ("PK260", {"attempts": (attempt(left_stopped=True),)}, Effect.DIRECTIONAL, "kill -CONT 100"),
        ("PK261", {"attempts": (attempt(ended=Ended.TARGET_ENDED),)}, Effect.VOID, "0 captures of 6"),
        (
            "PK261",
            {"attempts": (attempt(), attempt("active", Ended.TARGET_ENDED))},
            Effect.DIRECTIONAL,
            "25.2 s into a capture (active)",
        ),
        ("PK263", {"attempts": (attempt(tracers=(77,)), attempt())}, Effect.DIRECTIONAL, "process 77"),
        ("PK262", {"cut_short": True, "attempts": (attempt(),)}, Effect.DIRECTIONAL, "1 capture of 6"),
    ],
)
def test_what_befell_a_recording(code: str, changed: dict[str, Any], effect: Effect, words: str) -> None:
    fired, found, message = outcome(code, live(**changed))
    assert (fired, found) == (True, effect)
    assert words in message
    assert not outcome(code, live(cost=TickCost(0.5, 20, 8)))[0]


@pytest.mark.parametrize("code", ["PK258", "PK259", "PK260", "PK261", "PK262", "PK263"])
def test_nothing_is_said_of_captures_that_were_not_made(code: str) -> None:
    assert checks(code, live(attempts=())) == []
