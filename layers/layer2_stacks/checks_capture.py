"""What the guards on one capture look at: one pure function each, with the thresholds they go by."""

from __future__ import annotations

from layers.collectors.stacks.rates import SPREADS, longest_s, spread_s
from layers.collectors.stacks.recording import LoadEvidence, Mode
from layers.evidence.guard import Effect, Outcome
from layers.evidence.wording import counted, first_few, pct
from layers.layer2_stacks.facts import CaptureFacts
from layers.layer2_stacks.model import ModeFrom
from layers.layer2_stacks.told import EXITED
from parsers.loss import Loss
from parsers.pyspy_raw import REST_OF_TORN, RUN_THROUGH

ERRORS_LIMIT = 0.01
"""perfkit's choice, of looks: healthy captures have none."""
ERRORS_VOID = 0.05
"""perfkit's choice: what fails is no random part of the time."""
TICKS_LIMIT = 0.95
"""perfkit's choice: healthy captures have every tick (public vLLM captures: 5,999 of 5,999)."""
IDLE_CPU_SHARE = 0.02
"""perfkit's choice, of a core: an idle server that wakes up now and then takes less. One whose scheduler
spins may take a whole core, so that more proves no load (PK210)."""
IDLE_IN_FLIGHT = 0.01
"""perfkit's choice: on average, of a watch that asks now and then."""
SUSPICIOUS_THREADS = 3
"""perfkit's choice: beside the one that holds the interpreter's lock a second may run in C all the time."""
IMPORTING_LIMIT = 0.01
IMPORTING_VOID = 0.50
"""perfkit's choice: then the capture is of the start and not of the service."""

WHY_EMPTY = {
    Mode.ACTIVE: "without --idle every thread was blocked in calls that this mode skips, or idle",
    Mode.GIL: "with --gil: at no look did a thread hold the interpreter's lock",
    Mode.IDLE: "with --idle, which skips no thread: none was read",
    Mode.UNKNOWN: "the mode is not told; without --idle blocked threads are skipped",
}


def no_samples(facts: CaptureFacts) -> Outcome:
    if facts.samples:
        return Outcome(False, counted(facts.samples, "sample"))
    told = facts.told
    asked = f" in {told.asked_s:g} s" if told.asked_s else ""
    failed = f", {counted(told.errors, 'failed read')}" if told.errors else ""
    said = f"; {told.fatal}" if told.fatal else f"; {told.stopped}" if told.stopped else ""
    why = "every read failed" if told.errors else WHY_EMPTY[facts.mode]
    return Outcome(True, f"0 samples{asked}{failed}. This is not a clean result: {why}{said}")


def fell_behind(facts: CaptureFacts) -> Outcome | None:
    if facts.capture.log is None:
        return None
    lags = facts.told.lags_s
    if not lags:
        return Outcome(False, "py-spy never said it was behind")
    return Outcome(True, f"{max(lags):.2f} s behind, said {counted(len(lags), 'time')}: left out")


def failed_reads(facts: CaptureFacts) -> Outcome | None:
    errors = facts.told.errors
    looks = facts.told.expected_ticks or (facts.ticks + errors if errors is not None else 0)
    if errors is None or not looks:
        return None
    text = f"{counted(errors, 'failed read')} in {counted(looks, 'look')} ({pct(errors / looks)})"
    lenient = Effect.DIRECTIONAL if errors <= ERRORS_VOID * looks else None
    return Outcome(errors > ERRORS_LIMIT * looks, text, lenient)


def ticks_missing(facts: CaptureFacts) -> Outcome | None:
    expected = facts.told.expected_ticks
    if facts.mode is not Mode.IDLE or not expected or not facts.samples:
        return None
    text = f"{facts.ticks:,} of {expected:,} ticks in the fullest thread"
    return Outcome(facts.ticks < TICKS_LIMIT * expected, text)


def _is_torn(loss: Loss) -> bool:
    return RUN_THROUGH in loss.what or REST_OF_TORN in loss.what


def messages_among_stacks(facts: CaptureFacts) -> Outcome:
    torn = [loss.what for loss in facts.capture.recorded.losses if _is_torn(loss)]
    return Outcome(bool(torn), first_few(torn) or "no message runs through a stack")


def stacks_lost(facts: CaptureFacts) -> Outcome:
    lost = [loss.what for loss in facts.capture.recorded.losses if not _is_torn(loss)]
    return Outcome(bool(lost), first_few(lost) or "all of the file was read")


def ended_early(facts: CaptureFacts) -> Outcome | None:
    if facts.capture.log is None and facts.capture.recording is None:
        return None
    stopped, recording = facts.told.stopped, facts.capture.recording
    if facts.told.fatal:
        return Outcome(True, f"py-spy ended in an error ({facts.told.fatal}), {counted(facts.ticks, 'tick')}")
    by_us = bool(stopped) and stopped != EXITED and recording is not None
    who = f"perfkit ended py-spy ({recording.ended_how})" if by_us and recording is not None else stopped
    text = f"{who or 'nothing stopped it'}, {counted(facts.ticks, 'tick')}"
    return Outcome(bool(stopped), text, None if stopped == EXITED else Effect.NOTE)


def run_length(facts: CaptureFacts) -> Outcome | None:
    told = facts.told
    if told.wall_s is None or not told.asked_s or not told.rate_hz:
        return None
    deviation = spread_s(told.asked_s, told.rate_hz)
    longest = longest_s(told.asked_s, told.rate_hz)
    text = f"{told.wall_s:.1f} s for {told.asked_s:g} s asked, ± {deviation:.1f} s by the spacing of ticks"
    if told.wall_s > longest:
        return Outcome(True, f"{text}: up to {longest:.1f} s would be sound; left out")
    too_short = told.wall_s < told.asked_s - SPREADS * deviation and not told.stopped
    return Outcome(too_short, text, Effect.NOTE)


def idle_server(facts: CaptureFacts) -> Outcome | None:
    load = facts.capture.recording.load if facts.capture.recording else None
    if load is None:
        return None
    words, idle = _load_words(load)
    return Outcome(
        idle, f"{words} ({load.source})", None if load.completed is not None else Effect.DIRECTIONAL
    )


def _load_words(load: LoadEvidence) -> tuple[str, bool]:
    """What was seen of the load, and whether it was none; the CPU alone tells less than counters do."""
    completed, in_flight = load.completed, load.in_flight_mean
    said = [] if completed is None else [counted(completed, "request") + " completed"]
    said += [] if in_flight is None else [f"{in_flight:.2f} in flight on average"]
    said += [] if load.cpu_share is None else [f"{pct(load.cpu_share)} of a core"]
    if completed is None and in_flight is None:
        return ", ".join(said), load.cpu_share is not None and load.cpu_share < IDLE_CPU_SHARE
    return ", ".join(said), not completed and (in_flight or 0.0) < IDLE_IN_FLIGHT


def idle_detection(facts: CaptureFacts) -> Outcome | None:
    if facts.mode is not Mode.ACTIVE or not facts.samples or not facts.threads_known:
        return None
    looks = facts.told.expected_ticks or facts.ticks
    full = [thread.name for thread in facts.threads if thread.ticks >= looks]
    text = f"{len(full)} of {counted(len(facts.threads), 'thread')} with every one of {looks:,} ticks"
    text += f": {first_few(full)}" if full else ""
    confirmed = _busy_by_the_kernel(facts) >= len(full)
    text += "; the kernel counts as many" if full and confirmed else ""
    return Outcome(len(full) >= SUSPICIOUS_THREADS and not confirmed, text)


def _busy_by_the_kernel(facts: CaptureFacts) -> int:
    """Threads that ran, or waited for a CPU, nearly all the time; 0 where nobody read the kernel's count."""
    recording = facts.capture.recording
    threads = recording.threads if recording is not None else ()
    return sum(1 for cpu in threads if cpu.on_cpu_s + cpu.waiting_s >= TICKS_LIMIT * cpu.window_s > 0)


def starting_up(facts: CaptureFacts) -> Outcome | None:
    if not facts.samples:
        return None
    share = facts.importing / facts.samples
    text = f"{facts.importing:,} of {counted(facts.samples, 'sample')} inside an import ({pct(share)})"
    effect = (
        None if share > IMPORTING_VOID else Effect.DIRECTIONAL if share > IMPORTING_LIMIT else Effect.NOTE
    )
    return Outcome(facts.importing > 0, text, effect)


def mode_not_told(facts: CaptureFacts) -> Outcome:
    source = facts.capture.mode_from
    if source is ModeFrom.TICKS:
        text = f"no thread of {len(facts.threads)} lacks one of {facts.ticks:,} ticks: read as --idle"
        return Outcome(True, text, Effect.NOTE)
    if source is not ModeFrom.NOBODY:
        return Outcome(False, f"{facts.mode}, as told by {source}")
    looks = facts.told.expected_ticks
    few = (
        f"; {facts.ticks:,} of {looks:,} ticks, so some were left out"
        if looks and facts.ticks < looks
        else ""
    )
    return Outcome(True, f"shares are of its ticks, and nobody says what those are of{few}: say --mode")


def second_tracer(facts: CaptureFacts) -> Outcome | None:
    if facts.capture.log is None:
        return None
    times = facts.told.second_tracer
    return Outcome(times > 0, f"{counted(times, 'read')} found the process held by another tracer")


def another_log(facts: CaptureFacts) -> Outcome | None:
    said, expected = facts.told.samples, facts.told.expected_ticks
    if said is None and expected is None:
        return None
    whole = not facts.capture.recorded.losses
    if said is not None and whole and said != facts.samples:
        return Outcome(True, f"py-spy said {said:,} samples, the file holds {facts.samples:,}")
    if expected and facts.threads_known and facts.ticks > expected:
        return Outcome(True, f"{facts.ticks:,} ticks in one thread, of {counted(expected, 'look')}")
    return Outcome(False, f"{counted(facts.samples, 'sample')}, as py-spy said")


def no_log(facts: CaptureFacts) -> Outcome:
    alone = facts.capture.log is None and facts.capture.recording is None
    return Outcome(alone, "no log" if alone else "a log, or perfkit's own recording")
