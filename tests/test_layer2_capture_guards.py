"""Guards on one capture of stacks: each fires on its trap and not without it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layers.collectors.stacks.rates import longest_s
from layers.collectors.stacks.recording import Ended, LoadEvidence, Mode, ThreadCpu
from layers.evidence.guard import Checked, Effect
from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from layers.evidence.wording import limit
from layers.layer2_stacks.checks_capture import IDLE_CPU_SHARE
from layers.layer2_stacks.guards_capture import CAPTURE_GUARDS, IDLE_SERVER
from layers.layer2_stacks.judge import judge
from layers.layer2_stacks.model import Capture, ModeFrom
from parsers.loss import Loss
from parsers.pyspy_raw import REST_OF_TORN, RUN_THROUGH
from parsers.stack_model import Frame, Stack, ThreadName
from tests.stack_builders import LOOP, MAIN, capture, recording, said, stack

OTHER = ThreadName("8", "watchdog")
SOUND = (stack(f"{LOOP};burn engine.py 14", 300), stack(f"{LOOP};f engine.py 2", 199))
IMPORT = (Frame("f", "a.py", 1), Frame("_find_and_load", "<frozen importlib._bootstrap>", 1027))


def checked(of: Capture, code: str) -> Checked | None:
    return next((g for g in judge([of]).guards if g.code == code), None)


def fires(of: Capture, code: str) -> Checked | None:
    """The guard where it fired."""
    found = checked(of, code)
    return found if found is not None and found.fired else None


def effect(of: Capture, code: str) -> Effect | None:
    found = fires(of, code)
    return found.effect if found else None


def void(result: Result) -> bool:
    return (result.verdict.word, result.verdict.exit_code, result.findings) == ("void", Exit.INVALID, [])


def test_a_sound_capture_fires_no_guard_on_captures() -> None:
    result = judge([capture(*SOUND)])
    codes = {g.code for g in CAPTURE_GUARDS}
    assert [g.title for g in result.guards if g.fired and g.code in codes] == []
    assert result.verdict.word != "void"


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (Mode.ACTIVE, "without --idle every thread was blocked"),
        (Mode.GIL, "hold the interpreter's lock"),
        (Mode.IDLE, "none was read"),
    ],
)
def test_pk201_zero_samples_is_void_with_its_reason(mode: Mode, words: str) -> None:
    result = judge([capture(mode=mode)])
    assert void(result) and "0 samples in 25 s. This is not a clean result" in result.verdict.because
    assert words in result.verdict.because and "PK201" in result.verdict.because
    assert "--idle" in result.verdict.next_step
    assert not fires(capture(*SOUND), "PK201")


def test_pk201_says_what_failed() -> None:
    failed = capture(log=said(0, errors=51))
    assert "every read failed" in judge([failed]).verdict.because
    gone = capture(log=said(0, "py-spy> Stopped sampling because process exited"))
    assert "process exited" in judge([gone]).verdict.because


def test_pk202_a_capture_that_fell_behind_is_void() -> None:
    late = capture(*SOUND, log=said(499, "py-spy> 1.02s behind in sampling, results may be inaccurate."))
    assert void(judge([late])) and effect(late, "PK202") is Effect.VOID
    assert not fires(capture(*SOUND), "PK202")
    assert checked(capture(*SOUND, log=None), "PK202") is None


def test_a_void_capture_is_left_out_and_the_rest_counts() -> None:
    late = capture(
        *SOUND, log=said(499, "py-spy> 1.02s behind in sampling, results may be inaccurate"), name="late.raw"
    )
    result = judge([capture(stack(f"{LOOP};wait threading.py 3", 499), name="sound.raw"), late])
    assert result.verdict.word == "blocked" and [g.scope for g in result.guards if g.code == "PK202"] == [
        "sound.raw",
        "late.raw",
    ]
    assert [(c["file"], c["void"]) for c in result.sections["captures"]] == [
        ("sound.raw", False),
        ("late.raw", True),
    ]
    assert [s["ticks"] for s in result.sections["scopes"]] == [499]


@pytest.mark.parametrize(("errors", "found"), [(4, None), (6, Effect.DIRECTIONAL), (26, Effect.VOID)])
def test_pk203_failed_reads(errors: int, found: Effect | None) -> None:
    assert effect(capture(*SOUND, log=said(499, errors=errors)), "PK203") is found


def test_pk204_ticks_missing_of_an_idle_capture() -> None:
    half = capture(stack(LOOP, 240))
    assert fires(half, "PK204") and not fires(capture(*SOUND), "PK204")
    assert checked(capture(stack(LOOP, 240), mode=Mode.ACTIVE), "PK204") is None


@pytest.mark.parametrize("words", [RUN_THROUGH, REST_OF_TORN])
def test_pk205_messages_among_stacks(words: str) -> None:
    torn = capture(*SOUND, losses=(Loss(f"line 1: {words}", -1, 30, 1, False),))
    assert fires(torn, "PK205") and not fires(torn, "PK206")


def test_pk206_stacks_that_were_lost() -> None:
    cut = capture(*SOUND, losses=(Loss("line 9: a record that does not end in a count", -1, 3, 1, False),))
    assert fires(cut, "PK206") and not fires(cut, "PK205") and not fires(capture(*SOUND), "PK206")


def test_pk207_a_target_that_ended() -> None:
    exited, stopped = (
        capture(*SOUND, log=said(499, f"py-spy> Stopped sampling because {why}"))
        for why in ("process exited", "Control-C pressed")
    )
    assert effect(exited, "PK207") is Effect.DIRECTIONAL and effect(stopped, "PK207") is Effect.NOTE
    assert not fires(capture(*SOUND), "PK207")
    broken = fires(capture(*SOUND, log=said(499, "Error: Failed to write", "py-spy> ")), "PK207")
    assert broken and "ended in an error (Error: Failed to write)" in broken.message
    late = replace(recording(), ended_how=Ended.LATE)
    ours = fires(
        capture(*SOUND, log=said(499, "py-spy> Stopped sampling because Control-C pressed"), recording=late),
        "PK207",
    )
    assert ours and "perfkit ended py-spy (stopped late)" in ours.message and "Control-C" not in ours.message


@pytest.mark.parametrize(("wall_s", "found"), [(26.4, None), (60.0, Effect.VOID), (12.0, Effect.NOTE)])
def test_pk208_wall_clock_against_what_was_asked(wall_s: float, found: Effect | None) -> None:
    assert effect(capture(*SOUND, recording=recording(wall_s)), "PK208") is found
    assert checked(capture(*SOUND), "PK208") is None


@pytest.mark.parametrize(
    ("load", "found"),
    [
        (LoadEvidence("the server's counters", 0, 0.0, None), Effect.VOID),
        (LoadEvidence("the server's counters", 0, 3.0, None), None),
        (LoadEvidence("the server's counters", 12, 3.0, None), None),
        (LoadEvidence("/proc", None, None, 0.004), Effect.DIRECTIONAL),
        (LoadEvidence("/proc", None, None, 0.9), None),
        (LoadEvidence("a gauge", None, 0.0, 0.9), Effect.DIRECTIONAL),
    ],
)
def test_pk209_an_idle_server(load: LoadEvidence, found: Effect | None) -> None:
    assert effect(capture(*SOUND, recording=recording(load=load)), "PK209") is found


@pytest.mark.parametrize("words", ["directional", f"below {limit(IDLE_CPU_SHARE)} of a core", "PK210"])
def test_pk209_says_what_it_does_where_nobody_counts_answers(words: str) -> None:
    assert words in IDLE_SERVER.detection


@pytest.mark.parametrize(("rate_hz", "asked_s"), [(20, 25.0), (1, 25.0), (5, 300.0)])
def test_pk208_goes_by_the_rule_that_ends_a_late_capture(rate_hz: int, asked_s: float) -> None:
    def of(wall_s: float) -> Effect | None:
        made = replace(recording(wall_s), rate_hz=rate_hz, asked_s=asked_s)
        return effect(capture(*SOUND, recording=made), "PK208")

    assert of(longest_s(asked_s, rate_hz) - 0.01) is None
    assert of(longest_s(asked_s, rate_hz) + 0.01) is Effect.VOID


def test_pk211_idle_detection_that_failed() -> None:
    threads = [stack("f a.py 1", 499, ThreadName(str(n), f"t{n}")) for n in range(3)]
    assert void(judge([capture(*threads, mode=Mode.ACTIVE)]))
    assert effect(capture(*threads, mode=Mode.ACTIVE, log=None), "PK211") is Effect.VOID
    cpus = tuple(ThreadCpu(n, f"t{n}", 24.9, 0.1, 25.0) for n in range(3))
    spinning = capture(*threads, mode=Mode.ACTIVE, recording=recording(threads=cpus))
    assert not fires(spinning, "PK211"), "the kernel says that they run"
    two = capture(*threads[:2], stack("g a.py 2", 30, ThreadName("9", "x")), mode=Mode.ACTIVE)
    assert not fires(two, "PK211")
    assert checked(capture(*threads), "PK211") is None


@pytest.mark.parametrize(
    ("importing", "found"), [(0, None), (2, Effect.NOTE), (20, Effect.DIRECTIONAL), (300, Effect.VOID)]
)
def test_pk212_frames_of_start_up(importing: int, found: Effect | None) -> None:
    stacks = [Stack((), MAIN, IMPORT, importing)] if importing else []
    assert effect(capture(*stacks, stack(LOOP, 499 - importing)), "PK212") is found


def test_pk217_a_mode_that_nobody_tells() -> None:
    unknown = capture(*SOUND, mode=Mode.UNKNOWN, mode_from=ModeFrom.NOBODY)
    assert effect(unknown, "PK217") is Effect.DIRECTIONAL
    assert judge([unknown]).verdict.word == "undecided" and "say --mode" in judge([unknown]).verdict.next_step
    assert effect(capture(*SOUND, mode_from=ModeFrom.TICKS), "PK217") is Effect.NOTE
    assert not fires(capture(*SOUND, mode_from=ModeFrom.COMMAND), "PK217")


def test_pk220_two_profilers_on_one_process() -> None:
    warning = (
        "[2026-11-29T13:43:51Z WARN  py_spy::sampler] Failed to get stack trace from PID: Failed to suspend "
        "process"
    )
    held = capture(*SOUND, log=said(499, warning))
    assert fires(held, "PK220") and not fires(capture(*SOUND), "PK220")


def test_pk227_the_log_of_another_capture() -> None:
    assert fires(capture(*SOUND, log=said(700)), "PK227")
    assert fires(capture(stack(LOOP, 600)), "PK227"), "more ticks in a thread than looks"
    assert not fires(capture(*SOUND), "PK227")


def test_pk231_no_word_of_the_profiler() -> None:
    assert fires(capture(*SOUND, log=None), "PK231") and not fires(capture(*SOUND), "PK231")
    assert not fires(capture(*SOUND, log=None, recording=recording()), "PK231")
