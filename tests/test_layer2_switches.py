"""py-spy's switches out of a command, and what the shape of captures must share before they compare."""

from __future__ import annotations

import pytest

from layers.collectors.stacks.recording import Mode
from layers.layer2_stacks.facts import capture_facts
from layers.layer2_stacks.flags import mode_of_command, switches
from layers.layer2_stacks.model import ModeFrom
from layers.layer2_stacks.modes import mode_of
from layers.layer2_stacks.shape import shape_of
from layers.layer2_stacks.told import told_of
from parsers.pyspy_log import parse_log, parse_logs
from parsers.stack_model import ThreadName
from tests.stack_builders import LOOP, capture, recorded, recording, said, stack


@pytest.mark.parametrize(
    ("arguments", "on"),
    [
        ("--idle --threads", {"--idle", "--threads"}),
        ("-its", {"--idle", "--threads", "--subprocesses"}),
        ("-tp 7", {"--threads"}),
        ("-r 20 -d 25 -o idle.raw", set()),
        ("-r20 -d25", set()),
        ("--format raw --gil -F", {"--gil", "--function"}),
        ("-t -- python serve.py --idle -i", {"--threads"}),
        ("", set()),
    ],
)
def test_switches_of_a_command(arguments: str, on: set[str]) -> None:
    assert switches(arguments.split()) == on


@pytest.mark.parametrize(
    ("arguments", "mode"), [("-i", Mode.IDLE), ("-t", Mode.ACTIVE), ("-g", Mode.GIL), ("-g -i", Mode.GIL)]
)
def test_the_mode_of_a_command(arguments: str, mode: Mode) -> None:
    assert mode_of_command(arguments.split()) is mode


def test_ticks_tell_a_mode_only_where_none_is_missing() -> None:
    both = [stack(LOOP, 99), stack("f a.py 1", 99, ThreadName("8", "w"))]
    log = parse_log(said(198, rate_hz=20, seconds=5).splitlines())
    assert mode_of(recorded(*both), log, None) == (Mode.IDLE, ModeFrom.TICKS)
    assert mode_of(recorded(*both), None, None) == (Mode.IDLE, ModeFrom.TICKS)
    assert mode_of(recorded(both[0]), log, None) == (Mode.IDLE, ModeFrom.TICKS)
    assert mode_of(recorded(both[0]), None, None) == (Mode.UNKNOWN, ModeFrom.NOBODY)
    fewer = [stack(LOOP, 40), stack("f a.py 1", 40, ThreadName("8", "w"))]
    assert mode_of(recorded(*fewer), log, None) == (Mode.UNKNOWN, ModeFrom.NOBODY)
    assert mode_of(recorded(stack(LOOP, 99, None)), log, None) == (Mode.UNKNOWN, ModeFrom.NOBODY)
    assert mode_of(recorded(*both), log, Mode.GIL) == (Mode.GIL, ModeFrom.TOLD)


def test_a_recording_tells_what_a_log_does_not() -> None:
    told = told_of(capture(stack(LOOP, 499), log=None, recording=recording(26.0)))
    assert (told.rate_hz, told.expected_ticks, told.wall_s) == (20, 499, 26.0)
    assert (told.profiler, told.python, told.errors, told.lags_s) == ("py-spy 0.4.3", "3.11.7", None, ())
    assert told.flags == frozenset({"--idle", "--threads", "--full-filenames"})


def test_commands_and_runs_in_a_text() -> None:
    text = "user@gpu:~$ sudo py-spy record -i -p 7 -o 'a b.raw'\n" + said(5, name="a b.raw")
    text += "+ /opt/venv/bin/py-spy rec --pid 7 --threads\n" + said(6, name="c.raw") + said(7, name="d.raw")
    runs = parse_logs(text.splitlines())
    assert [(run.written, run.samples) for run in runs] == [("a b.raw", 5), ("c.raw", 6), ("d.raw", 7)]
    assert runs[0].command == ("-i", "-p", "7", "-o", "a b.raw")
    assert runs[1].command == ("--pid", "7", "--threads") and runs[2].command is None
    (open_quote,) = parse_logs(["py-spy record --idle -- python -c 'import time"])
    assert open_quote.command is not None and open_quote.command[0] == "--idle"


def test_frames_show_how_they_were_recorded() -> None:
    full = shape_of([capture_facts(capture(stack("f /srv/a.py 1", 9)))])
    short = shape_of([capture_facts(capture(stack("f a.py 1;g libc.so", 9, None)))])
    assert full.differences(full) == []
    assert full.differences(short) == [
        "threads on one side alone",
        "full file names on one side alone",
        "native frames on one side alone",
    ]
    windows = shape_of([capture_facts(capture(stack("f C:\\app\\a.py 1", 9)))])
    assert windows.full_names and not full.is_told
