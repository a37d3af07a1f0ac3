"""What the guards on the thread of the verdict look at: one pure function each, with their thresholds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from layers.collectors.stacks.frames import STANDARD_LIBRARY, package
from layers.evidence.guard import Effect, Outcome
from layers.evidence.strength_table import STACKS_MIN_CAPTURES, STACKS_MIN_TICKS
from layers.evidence.wording import counted, first_few, pct
from layers.layer2_stacks.choice import is_loop_scope
from layers.layer2_stacks.facts import CaptureFacts, Facts
from layers.layer2_stacks.flags import GIL, IDLE
from layers.layer2_stacks.kernel_cpu import core_wait, kernel_share, running_share
from layers.layer2_stacks.model import Row, WaitKind
from layers.layer2_stacks.wording import frame_in, short_path
from layers.layer2_stacks.words import BLOCKED_LIMIT, STANDS_OUT, deciding, poorest
from parsers.stack_model import Frame

ENTRY_LIMIT = 0.98
"""perfkit's choice: blocking captures have it in every stack."""
KERNEL_LIMIT = 0.15
"""perfkit's choice: three times the idle leak; two windows of 25 s of one service differ by less."""
NO_CORE_LIMIT = 0.20
"""perfkit's choice, of the thread's time: on a machine with a free core that much of it would be something
else, and every share with it."""
SECOND_CALLER = 0.10
"""perfkit's choice, of a line's hits: less hardly changes what the line costs."""
WAITS_ALL_THE_TIME = 0.95
ON_A_CPU = (WaitKind.SPIN, WaitKind.DEVICE)
"""Waits that may take a CPU: a spin does, and so does CUDA's default way to wait for the device."""
FOR_WORK = (WaitKind.QUEUE, WaitKind.SELECT, WaitKind.CONDITION)
LOOKED_AT = 5
"""Lines that a guard on lines goes through: those that the terminal shows first."""


def load_not_known(facts: Facts) -> Outcome:
    if sources := dict.fromkeys(load.source for load in facts.loads if load.counts_requests):
        return Outcome(False, first_few(sources))
    for_work = sum(part.hits for part in facts.main.waits if part.name in FOR_WORK)
    share = for_work / facts.main.total_ticks
    text = f"nobody counted requests meanwhile; the thread waits for work in {pct(share)} of its ticks"
    return Outcome(True, text, None if share >= BLOCKED_LIMIT else Effect.NOTE)


def inherited_loop(facts: Facts) -> Outcome:
    found = [s for analysis in facts.analyses for s in analysis.scopes if s.inherited_ticks]
    said = [f"{s.scope.name}: {counted(s.inherited_ticks, 'tick')}" for s in found]
    text = f"a parent's loop was cut off ({first_few(said)})" if found else "no fork carries a loop"
    return Outcome(bool(found), text)


def threads_not_recorded(facts: Facts) -> Outcome:
    if facts.reading.scope.threads_known:
        return Outcome(False, "every stack names its thread")
    of_mode = facts.of_mode(facts.reading.mode)
    looks = [c.told.expected_ticks for c in of_mode]
    one = all(n and ticks <= n for n, ticks in zip(looks, facts.main.ticks, strict=True))
    share = facts.main.total_ticks / sum(c.samples for c in of_mode)
    entry = facts.reading.scope.entry or "no frame of the program"
    text = f"all that enters at {entry} counts as one thread: {pct(share)} of all samples"
    return Outcome(True, text, Effect.NOTE if one else None)


def short_file_names(facts: Facts) -> Outcome:
    bare = [row for row in facts.main.lines if row.share.value >= STANDS_OUT and _is_bare(row)]
    merged = [row for row in bare if len(_functions(row)) > 1]
    shown = [f"{row.where} in {' and '.join(_functions(row))}" for row in merged]
    text = first_few(shown or [row.where for row in bare]) or "no file without a folder stands out"
    return Outcome(bool(bare), text, None if merged else Effect.NOTE)


def _is_bare(row: Row) -> bool:
    file = row.where.rpartition(":")[0] or row.where
    if "/" in file or "\\" in file or file.startswith("<") or not file.endswith(".py"):
        return False
    return package(Frame(row.function, file, 1)) != STANDARD_LIBRARY


def _functions(row: Row) -> list[str]:
    """Of one line: lambdas and comprehensions lie inside another function."""
    return [part.name for part in row.merges if not part.name.startswith("<")]


def several_modes(facts: Facts) -> Outcome:
    said = [f"{len(analysis.captures)} {analysis.mode}" for analysis in facts.analyses]
    return Outcome(len(said) > 1, f"captures: {', '.join(said)}")


def few_ticks(facts: Facts) -> Outcome:
    ticks, captures = poorest(facts.reading)
    few = ticks < STACKS_MIN_TICKS or captures < STACKS_MIN_CAPTURES
    return Outcome(few, f"{counted(ticks, 'tick')} in {counted(captures, 'capture')}")


def captures_disagree(facts: Facts) -> Outcome | None:
    decides, threshold = deciding(facts.reading)
    shares = decides.per_capture
    if len(shares) < 2:
        return None
    crosses = min(shares) < threshold <= max(shares)
    line = facts.top.share if facts.top else decides
    differs = line.agrees is False
    told = shares if crosses else line.per_capture
    text = f"{'what decides' if crosses else 'the first line'}: {_shares(told)}"
    return Outcome(crosses or differs, text, None if crosses else Effect.NOTE)


def _shares(shares: Sequence[float]) -> str:
    return f"{pct(min(shares))} to {pct(max(shares))} in {counted(len(shares), 'capture')}"


def several_callers(facts: Facts) -> Outcome:
    found = [row for row in facts.main.lines[:LOOKED_AT] if _has_several_callers(row)]
    said = [f"{short_path(row.where)}: {_callers(row)}" for row in found]
    return Outcome(bool(found), first_few(said) or "no line that stands out has several callers")


def _has_several_callers(row: Row) -> bool:
    several = len(row.callers) > 1 and row.callers[1].hits >= SECOND_CALLER * row.share.hits
    return row.share.value >= STANDS_OUT and several


def _callers(row: Row) -> str:
    return ", ".join(f"{part.hits} from {frame_in(part.name)}" for part in row.callers[:2])


def wrong_process(facts: Facts) -> Outcome | None:
    if facts.reading.idle is None:
        return None
    scopes = [s for a in facts.analyses if a.mode is facts.reading.mode for s in a.scopes]
    loops = [s.scope.name for s in scopes if is_loop_scope(s.scope)]
    if loops:
        return Outcome(False, f"there is a loop of an engine: {first_few(loops)}")
    waiting = all(s.waiting.value >= WAITS_ALL_THE_TIME for s in scopes)
    selects = any(part.name == WaitKind.SELECT for s in scopes for part in s.waits)
    text = f"no loop of an engine in {counted(len(scopes), 'thread')}"
    text += ", and all of them wait all the time" if waiting else ""
    return Outcome(waiting and selects, text)


def profilers_differ(facts: Facts) -> Outcome | None:
    captures = facts.of_mode(facts.reading.mode)
    if len(captures) < 2:
        return None
    lined = {_has_lines(c) for c in captures if c.samples}
    differ = [*_several(c.told.profiler for c in captures), *_several(c.told.python for c in captures)]
    differ += _several(" ".join(sorted(c.told.flags - {IDLE, GIL})) for c in captures if c.told.flags)
    if len(lined) > 1:
        return Outcome(True, f"some captures have lines and some have none; {first_few(differ)}".rstrip("; "))
    return Outcome(bool(differ), first_few(differ) or "no difference that is told", Effect.NOTE)


def _several(values: Iterable[str]) -> list[str]:
    known = sorted({value for value in values if value})
    return known if len(known) > 1 else []


def _has_lines(capture: CaptureFacts) -> bool:
    return any(frame.line is not None for stack in capture.capture.recorded.stacks for frame in stack.frames)


def busy_spin(facts: Facts) -> Outcome:
    spins = sum(part.hits for part in facts.main.waits if part.name == WaitKind.SPIN)
    share = spins / facts.main.total_ticks
    text = f"{pct(share)} of {counted(facts.main.total_ticks, 'tick')} spin"
    return Outcome(share >= STANDS_OUT, text)


def torn_stacks(facts: Facts) -> Outcome | None:
    scope = facts.main
    if not is_loop_scope(scope.scope) or not scope.scope.threads_known:
        return None
    share = scope.entry_ticks / scope.total_ticks
    text = f"{scope.scope.entry} is in {scope.entry_ticks:,} of {counted(scope.total_ticks, 'tick')}"
    return Outcome(share < ENTRY_LIMIT, text)


def work_or_wait(facts: Facts) -> Outcome | None:
    reading, top = facts.reading, facts.top
    if reading.idle is None or top is None:
        return None
    unseen = reading.on_cpu is None and top.wait is None and not top.native
    return Outcome(
        unseen,
        f"{short_path(top.where)} ({pct(top.share.value)}): whether it works or blocks there is not seen",
    )


def kernel_disagrees(facts: Facts) -> Outcome | None:
    kernel, stacks = kernel_share(facts), running_share(facts)
    if kernel is None or stacks is None:
        return None
    text = f"on a CPU or waiting for one: {pct(stacks)} by stacks, {pct(kernel)} by the kernel"
    return Outcome(abs(kernel - stacks) > KERNEL_LIMIT, text)


def no_core(facts: Facts) -> Outcome | None:
    wait = core_wait(facts)
    if wait is None:
        return None
    text = f"by the kernel's count the thread was on a CPU for {pct(wait.on_cpu)} of the time and waited for "
    text += f"one for {pct(wait.waiting)} ({counted(wait.captures, 'capture')})"
    return Outcome(wait.waiting > NO_CORE_LIMIT, text)


def several_workers(facts: Facts) -> Outcome:
    scopes = [s for a in facts.analyses if a.mode is facts.reading.mode for s in a.scopes]
    loops = [s.scope.name for s in scopes if is_loop_scope(s.scope)]
    return Outcome(len(loops) > 1, first_few(loops) or "no loop of an engine")


def modes_contradict(facts: Facts) -> Outcome | None:
    idle, running = facts.reading.idle, running_share(facts)
    if idle is None or running is None:
        return None
    off_cpu = sum(part.hits for part in idle.waits if part.name not in ON_A_CPU) / idle.total_ticks
    text = f"waits off the CPU {pct(off_cpu)} (--idle), runs {pct(running)} (without)"
    return Outcome(off_cpu + running > 1 + KERNEL_LIMIT, text)


def copies(facts: Facts) -> Outcome:
    """Files whose stacks all have the same count are left out: threads that never move write them alike."""
    names = defaultdict[str, list[str]](list)
    for captured in facts.captures:
        recorded = captured.capture.recorded
        if recorded.sha256 and len({stack.count for stack in recorded.stacks}) > 1:
            names[recorded.sha256].append(captured.capture.name)
    same = [" and ".join(paths) for paths in names.values() if len(paths) > 1]
    text = f"{first_few(same)}: byte for byte the same" if same else "no two captures are the same file"
    return Outcome(bool(same), text)
