"""The guards on how a sweep was set up: did settings take, are the arms comparable, what did the burst at the
start of a pass meet?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted

ON, OFF = frozenset({"on", "true", "1", "yes"}), frozenset({"off", "false", "0", "no"})
"""How settings spell a switch."""


@dataclass(frozen=True, slots=True)
class SetUp:
    """One pass: the settings that its cell asks for, those that the server reports (None: it reports none),
    and how many requests of its warm-up there were and were shed."""

    asked: Mapping[str, str]
    reported: Mapping[str, Any] | None
    warmup: int = 0
    warmup_shed: int = 0


@dataclass(frozen=True, slots=True)
class Arms:
    """The whole of a sweep: by arm the models that its server names and the machine that it runs on ("" where
    that is another one, or not known); by arm and cell how many passes there are."""

    models: Mapping[str, Collection[str]]
    machines: Mapping[str, str]
    passes: Mapping[tuple[str, int], int]


def reported_values(name: str, settings: Mapping[str, Any]) -> Iterator[Any]:
    """Every value that a server's settings hold under a name, at any depth; dashes count as underscores."""
    wanted = _plain(name)
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from reported_values(name, value)
        elif _plain(str(key)) == wanted:
            yield value


def same_value(asked: str, reported: Any) -> bool:
    """Whether a value as it was given is the one that a server reports: as a switch, a number or a word."""
    given, told = asked.strip().lower(), str(reported).strip().lower()
    if given == told or {given, told} <= ON or {given, told} <= OFF:
        return True
    try:
        return float(given) == float(told)
    except ValueError:
        return False


def _plain(name: str) -> str:
    return name.strip("-").replace("-", "_").lower()


def _untaken(setup: SetUp) -> Outcome | None:
    if not setup.asked or setup.reported is None:
        return None
    told = {name: list(reported_values(name, setup.reported)) for name in setup.asked}
    wrong = [
        f"{name}={asked} was asked for, the server says {told[name][0]}"
        for name, asked in setup.asked.items()
        if told[name] and not any(same_value(asked, value) for value in told[name])
    ]
    known = sum(map(bool, told.values()))
    return Outcome(bool(wrong), "; ".join(wrong) or f"{known} of {counted(len(told), 'setting')} confirmed")


def _unverified(setup: SetUp) -> Outcome | None:
    if not setup.asked:
        return None
    reported = setup.reported or {}
    silent = [name for name in setup.asked if not any(True for _ in reported_values(name, reported))]
    text = f"the server does not say {', '.join(silent)}" if silent else "the server says each of them"
    return Outcome(bool(silent), text)


def _burst_shed(setup: SetUp) -> Outcome | None:
    if not setup.warmup:
        return None
    text = f"{setup.warmup_shed} of {counted(setup.warmup, 'request')} of the warm-up were shed"
    return Outcome(setup.warmup_shed > 0, text)


def _other_models(arms: Arms) -> Outcome | None:
    named = {arm: set(models) for arm, models in arms.models.items() if models}
    if len(named) < 2:
        return None
    one, other = named.values()
    text = f"{', '.join(sorted(one))} and {', '.join(sorted(other))}"
    return Outcome(not one & other, text)


def _one_machine(arms: Arms) -> Outcome | None:
    if len(arms.machines) < 2:
        return None
    known = [machine for machine in arms.machines.values() if machine]
    shared = len(known) > 1 and len(set(known)) == 1
    return Outcome(shared, "both servers run on this machine" if shared else "on machines of their own")


def _uneven(arms: Arms) -> Outcome | None:
    if len(arms.passes) < 2:
        return None
    counts = sorted(set(arms.passes.values()))
    text = f"from {counts[0]} to {counted(counts[-1], 'pass')} an arm or cell"
    return Outcome(len(counts) > 1, text)


SETTING_UNTAKEN = Guard(
    code="PK340",
    name="setting-untaken",
    layer="layer3",
    effect=Effect.VOID,
    sees="A cell of a grid that is named after a setting which the server does not run with.",
    cause="The setting was ignored, overruled by another one, or clamped to what fits, and the server says "
    "so itself.",
    detection="The server reports another value under that name, in its own resolved settings.",
    remedy="Look at what the server printed when it started; ask for a value that it takes.",
    source="perfkit: a setting is what the server says it is, not what it was told.",
    check=_untaken,
)

SETTING_UNVERIFIED = Guard(
    code="PK341",
    name="setting-unverified",
    layer="layer3",
    effect=Effect.NOTE,
    sees="A cell of a grid of which nothing proves that its setting took.",
    cause="The server does not report its settings, or not this one.",
    detection="No setting of that name in what the server says of itself.",
    remedy="Look for the value in the log of the server (server-<n>.log in the folder of the sweep).",
    source="perfkit: a setting that nobody confirms may be a typing error.",
    check=_unverified,
)

BURST_SHED = Guard(
    code="PK342",
    name="burst-shed",
    layer="layer3",
    effect=Effect.NOTE,
    sees="A load that is served without a single refusal, by a server that refused part of it at first.",
    cause="A pass begins with all its requests at once, and the server lets in fewer at a time: its waiting "
    "room is smaller than the burst. Steady load of the same size may pass, since requests then end and "
    "begin one by one; clients that come back together after a restart will not.",
    detection="A request of the warm-up of a closed loop was shed.",
    remedy="Raise the limit on requests that wait to be taken in, or have clients retry with a back-off "
    "(--after-shed retry shows how that goes).",
    source="The bundled engine on a busy machine: with the limits that SGLang-Omni had up to August 2026 (2 "
    "workers, 16 places, 32 running) 9 to 21 requests of each of 7 bursts of 64 were refused and none "
    "afterwards, with those since (8, 32, 64) none of 4 bursts.",
    check=_burst_shed,
)

ARMS_OTHER_MODELS = Guard(
    code="PK343",
    name="arms-other-models",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="A control that is faster or slower than the server under test.",
    cause="The two serve other models, by their own names; what is compared may be the models.",
    detection="No name of a model is in both servers' lists.",
    remedy="Serve the same checkpoint under the same name on both.",
    source="perfkit: an arm may differ in one thing.",
    check=_other_models,
)

ARMS_ONE_MACHINE = Guard(
    code="PK344",
    name="arms-on-one-machine",
    layer="layer3",
    effect=Effect.NOTE,
    sees="Two servers that are loaded in turn.",
    cause="They share a machine. The one that is not loaded still holds its device memory, and may poll on a "
    "core: both may be slower than each would be alone.",
    detection="The processes of both were found on the client's own machine.",
    remedy="Give each its own cards and cores, or sweep one after the other with the other one stopped.",
    source="perfkit: an idle server still holds what it took when it started.",
    check=_one_machine,
)

CELLS_UNEVEN = Guard(
    code="PK345",
    name="cells-uneven",
    layer="layer3",
    effect=Effect.NOTE,
    sees="A best cell, or an arm that is ahead, out of some that were measured less than others.",
    cause="Passes are missing: the sweep ended early, or climbed less far where a server failed or shed. The "
    "best of many is better than the best of few by chance alone.",
    detection="Arms or cells with other numbers of passes.",
    remedy="perfkit sweep --resume, or compare at the loads that all of them have.",
    source="perfkit: the maximum of a sample grows with its size.",
    check=_uneven,
)

SETUP_GUARDS: tuple[Guard[SetUp], ...] = (SETTING_UNTAKEN, SETTING_UNVERIFIED, BURST_SHED)
"""Those that look at one pass."""

ARMS_GUARDS: tuple[Guard[Arms], ...] = (ARMS_OTHER_MODELS, ARMS_ONE_MACHINE, CELLS_UNEVEN)
"""Those that look at the whole."""
