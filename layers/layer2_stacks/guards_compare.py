"""The guards on a comparison of two sets of captures. One that is void costs the comparison alone."""

from __future__ import annotations

from dataclasses import dataclass

from layers.collectors.stacks.recording import Mode
from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.strength_table import STACKS_MIN_CAPTURES, STACKS_MIN_TICKS
from layers.evidence.wording import counted, first_few, limit
from layers.layer2_stacks.compare import LINES_COMPARED
from layers.layer2_stacks.facts import CaptureFacts
from layers.layer2_stacks.model import ScopeAnalysis
from layers.layer2_stacks.shape import shape_of
from layers.layer2_stacks.words import STANDS_OUT


@dataclass(frozen=True, slots=True)
class CompareFacts:
    """The sound captures of the compared mode on either side, and the thread's stacks in them."""

    old: tuple[CaptureFacts, ...]
    new: tuple[CaptureFacts, ...]
    mode: Mode
    before: ScopeAnalysis | None
    after: ScopeAnalysis | None


def not_alike(facts: CompareFacts) -> Outcome | None:
    if not facts.old or not facts.new:
        return None
    differ = shape_of(facts.old).differences(shape_of(facts.new))
    return Outcome(bool(differ), first_few(differ) or "recorded alike, as far as is told")


def on_one_side(facts: CompareFacts) -> Outcome:
    for captures, scope, side in ((facts.old, facts.before, "before"), (facts.new, facts.after, "after")):
        if not captures:
            return Outcome(True, f"no sound capture in mode {facts.mode} {side}")
        if scope is None:
            return Outcome(True, f"no such thread {side}")
    return Outcome(False, "the thread is on both sides")


def few_on_a_side(facts: CompareFacts) -> Outcome | None:
    if facts.before is None or facts.after is None:
        return None
    sides = [(s.total_ticks, sum(1 for n in s.ticks if n)) for s in (facts.before, facts.after)]
    few = any(ticks < STACKS_MIN_TICKS or captures < STACKS_MIN_CAPTURES for ticks, captures in sides)
    said = [f"{counted(ticks, 'tick')} in {counted(captures, 'capture')}" for ticks, captures in sides]
    return Outcome(few, " before, ".join(said) + " after")


def lines_moved(facts: CompareFacts) -> Outcome | None:
    if facts.before is None or facts.after is None:
        return None
    old, new = (_lines_by_function(scope) for scope in (facts.before, facts.after))
    moved = [function for function in old.keys() & new.keys() if not old[function] & new[function]]
    return Outcome(bool(moved), first_few(sorted(moved)) or "no function has all its lines elsewhere")


def _lines_by_function(scope: ScopeAnalysis) -> dict[str, set[str]]:
    """Of the lines that stand out, by file and function."""
    found: dict[str, set[str]] = {}
    for row in scope.lines[:LINES_COMPARED]:
        if row.share.value >= STANDS_OUT:
            found.setdefault(f"{row.where.rpartition(':')[0]} {row.function}", set()).add(row.where)
    return found


def nothing_in_common(facts: CompareFacts) -> Outcome | None:
    if facts.before is None or facts.after is None:
        return None
    old, new = (_working_functions(scope) for scope in (facts.before, facts.after))
    entries = [scope.scope.entry or "no frame" for scope in (facts.before, facts.after)]
    shared = len(old & new)
    apart = bool(old and new) and not shared and entries[0] != entries[1]
    text = f"it enters at {entries[0]} before, at {entries[1]} after; {counted(shared, 'function')} in common"
    return Outcome(apart, text)


def _working_functions(scope: ScopeAnalysis) -> set[tuple[str, str]]:
    """By file and name; how threads wait is alike in all programs."""
    return {(row.where, row.function) for row in scope.functions if row.wait is None}


def not_told(facts: CompareFacts) -> Outcome | None:
    if not facts.old or not facts.new:
        return None
    told = shape_of(facts.old).is_told and shape_of(facts.new).is_told
    return Outcome(not told, "both sides say" if told else "version and switches of a side are not told")


NOT_ALIKE = Guard(
    code="PK240",
    name="captures-not-alike",
    layer="layer2",
    effect=Effect.VOID,
    sees="Lines that vanish and others that appear.",
    cause="The two sides were recorded by another py-spy, of another Python, or with other switches: the "
    "same frame has two names.",
    detection="Version, Python or switches differ where they are told; or only one side has threads, lines, "
    "full file names or native frames.",
    remedy="Record both sides alike.",
    source="py-spy 0.4.3 qualifies names on Python 3.11 and newer; --full-filenames changes every file.",
    check=not_alike,
)

ON_ONE_SIDE = Guard(
    code="PK241",
    name="thread-on-one-side",
    layer="layer2",
    effect=Effect.VOID,
    sees="A comparison with nothing to set against.",
    cause="The other side has no capture of this mode, or no thread of this name and entry.",
    detection="No sound capture of the mode that the verdict is of, or no such thread in them.",
    remedy="Name the thread (--thread, --entry), or record the other side in the same mode.",
    source="A thread is known by its ids, else by its name and entry frame.",
    check=on_one_side,
)

FEW_ON_A_SIDE = Guard(
    code="PK242",
    name="few-captures-a-side",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A difference with decimals.",
    cause="The two sides were recorded at two times: what else changed between them shows as a difference, "
    "and one capture a side cannot tell how much that is.",
    detection=f"Fewer than {STACKS_MIN_CAPTURES} captures or {STACKS_MIN_TICKS} ticks of the thread on a "
    "side.",
    remedy="Record both sides in turns, before after before after, three times each.",
    source="As for a single verdict (few-ticks).",
    check=few_on_a_side,
)

LINES_MOVED = Guard(
    code="PK243",
    name="lines-moved",
    layer="layer2",
    effect=Effect.NOTE,
    sees="A line that is gone and one that is new, in one function.",
    cause="The source was edited between the two: the same code stands on another line.",
    detection=f"A function with lines of {limit(STANDS_OUT)} or more on both sides, and none of them the "
    "same.",
    remedy="Compare its function (`functions` in --json), and read lines of it with the sources at hand.",
    source="py-spy names a frame by the line of its current instruction.",
    check=lines_moved,
)

NOT_TOLD = Guard(
    code="PK244",
    name="recording-not-told",
    layer="layer2",
    effect=Effect.NOTE,
    sees="Two sides that look alike.",
    cause="Nobody says with which version and switches they were recorded; what the frames show is the same.",
    detection="No log with py-spy's command and no recording by perfkit, on a side.",
    remedy="Keep the command with the log (set -x), or let perfkit record.",
    source="A raw file holds neither.",
    check=not_told,
)

NOTHING_IN_COMMON = Guard(
    code="PK245",
    name="nothing-in-common",
    layer="layer2",
    effect=Effect.VOID,
    sees="Every line gone, and every other one new.",
    cause="The two sides are of two programs, or of two processes of one service whose threads have the same "
    "name.",
    detection="The thread enters at another function, and no function is on both sides in which it does not "
    "wait.",
    remedy="Give captures of one thread of one program from before and after.",
    source="Nearly every Python process has a MainThread.",
    check=nothing_in_common,
)

COMPARE_GUARDS: tuple[Guard[CompareFacts], ...] = (
    *(NOT_ALIKE, ON_ONE_SIDE, FEW_ON_A_SIDE, LINES_MOVED, NOT_TOLD, NOTHING_IN_COMMON),
)
