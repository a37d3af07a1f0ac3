"""Whatever stacks and words of the profiler come in: one result, a document in JSON, a text that prints."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layers.collectors.stacks.recording import Mode
from layers.evidence.result import to_document
from layers.evidence.verdict import Exit
from layers.layer2_stacks.judge import judge
from layers.layer2_stacks.model import Capture, ModeFrom
from layers.layer2_stacks.words import Word
from parsers.stack_model import Stack, ThreadName
from perfkit.cli.layer2_view import show_layer2
from tests.stack_builders import LOOP, capture, said, stack

FRAMES = (LOOP, "f a.py 1", "g /srv/b.py 2", "h libc.so", "wait threading.py 3", "get queue.py 171", "x y 0")
STACKS = st.builds(
    lambda frames, count, thread, pids: stack(";".join(frames), count, thread, *pids),
    st.lists(st.sampled_from(FRAMES), max_size=4),
    st.integers(1, 600),
    st.sampled_from([None, ThreadName("7", "MainThread"), ThreadName("8", "worker"), ThreadName("", "")]),
    st.lists(st.integers(1, 3), max_size=2),
)
LINES = st.sampled_from(
    [
        "",
        "py-spy> 1.5s behind in sampling, results may be inaccurate",
        "py-spy> Stopped sampling because process exited",
    ]
)
LOGS = st.none() | st.builds(
    lambda samples, line, errors, hz, s: said(samples, line, errors=errors, rate_hz=hz, seconds=s),
    st.integers(0, 999),
    LINES,
    st.integers(0, 99),
    st.sampled_from([1, 20]),
    st.sampled_from([1, 25]),
)
MODES = st.sampled_from([*((mode, ModeFrom.TOLD) for mode in Mode), (Mode.IDLE, ModeFrom.TICKS)])


def made(stacks: list[Stack], log: str | None, mode: tuple[Mode, ModeFrom], name: str) -> Capture:
    return capture(*stacks, log=log, mode=mode[0], mode_from=mode[1], name=name)


CAPTURES = st.lists(
    st.builds(made, st.lists(STACKS, max_size=5), LOGS, MODES, st.sampled_from(["a.raw", "b.raw"])),
    max_size=4,
)


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for part in value.values() for n in numbers(part)]
    if isinstance(value, list):
        return [n for part in value for n in numbers(part)]
    return [value] if isinstance(value, float) else []


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CAPTURES, CAPTURES, CAPTURES)
def test_any_captures_give_one_result_that_can_be_printed(
    capsys: pytest.CaptureFixture[str], captures: list[Capture], before: list[Capture], later: list[Capture]
) -> None:
    result = judge(captures, before=before, later=later)
    assert result.verdict.word in set(Word)
    assert all(map(math.isfinite, numbers(json.loads(json.dumps(to_document(result))))))
    if result.verdict.word == Word.VOID:
        assert result.verdict.exit_code is Exit.INVALID and result.findings == []
    elif result.verdict.exit_code is Exit.OK:
        assert result.findings and not result.verdict.directional
    show_layer2(result)
    assert capsys.readouterr().out.startswith(result.verdict.headline)


@settings(max_examples=100)
@given(CAPTURES)
def test_shares_of_the_document_add_up_and_lie_in_their_intervals(captures: list[Capture]) -> None:
    for scope in judge(captures).sections["scopes"]:
        leaves = scope["leaves"]
        assert all(leaf["low"] <= leaf["share"] <= leaf["high"] for leaf in leaves)
        if not scope["leaves_left_out"]:
            assert sum(leaf["hits"] for leaf in leaves) <= scope["ticks"] == sum(scope["ticks_by_capture"])


@given(CAPTURES)
@settings(max_examples=60)
def test_the_order_of_captures_changes_no_verdict(captures: list[Capture]) -> None:
    forth, back = (judge(of) for of in (captures, captures[::-1]))
    assert (forth.verdict.word, forth.verdict.exit_code) == (back.verdict.word, back.verdict.exit_code)
