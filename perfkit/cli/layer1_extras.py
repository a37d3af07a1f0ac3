"""What `perfkit layer1` adds on request: the distance to the roofline, and the comparison with another trace.

Each is a section of the document and the lines that show it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from layers.evidence.result import Result
from layers.layer1_gpu_busy.collect import Collected
from layers.layer1_gpu_busy.compare import ChangeRow, Comparison
from layers.layer1_gpu_busy.compare_files import compare_files
from layers.layer1_gpu_busy.findings import short_name
from layers.layer1_gpu_busy.roofline_answer import tpot_distance
from layers.layer1_gpu_busy.roofline_judge import judge
from layers.layer1_gpu_busy.roofline_question import Question
from parsers.errors import UsageError
from perfkit.cli import output
from perfkit.cli.roofline_text import show_roofline

CHANGES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Extra:
    """A section that stands beside those of the layer."""

    name: str
    content: Any
    show: Callable[[], None]


def with_sections(result: Result, extras: Sequence[Extra]) -> Result:
    """The result with the extra sections in its document."""
    return replace(result, sections={**result.sections, **{extra.name: extra.content for extra in extras}})


def roofline_extra(collected: Collected, question: Question) -> Extra:
    """How far the measured TPOT is from the lower bound of the GPU that the traces name."""
    names = {d.busy.device_name for t in collected.traces for d in t.devices if d.busy.device_name}
    if len(names) > 1 and question.gpu is None:
        raise UsageError(f"the traces name several GPUs ({', '.join(sorted(names))}): say which with --gpu")
    answer = tpot_distance(next(iter(names), ""), question)
    result = judge(answer)
    verdict = {"word": result.verdict.word, "because": result.verdict.because}
    content = {"verdict": verdict, **result.sections.get("roofline", {})}
    return Extra("roofline", content, lambda: show_roofline(result, answer))


def comparison_extra(before: str, collected: Collected) -> Extra:
    """The one trace of the command against an earlier one."""
    comparison = compare_files(before, collected.traces[0].artifact.path)
    return Extra("comparison", msgspec.to_builtins(comparison), lambda: _show_comparison(comparison))


def _show_comparison(c: Comparison) -> None:
    sides = f"{c.b.label} (n = {c.b.units}) against {c.a.label} (n = {c.a.units})"
    output.paragraph("compared", f"per {c.unit}: {sides}")
    output.line()
    rows = [
        ["busy", _ms(c.a.busy_ns), _ms(c.b.busy_ns), _ratio(c.a.busy_ns, c.b.busy_ns)],
        ["idle", _ms(c.a.idle_ns), _ms(c.b.idle_ns), _ratio(c.a.idle_ns, c.b.idle_ns)],
    ]
    output.show(output.table(["", "before ms", "after ms", "ratio"], rows, right=[1, 2, 3]))
    output.line()
    changes = [_change(row) for row in c.kernels[:CHANGES_SHOWN]]
    head = ["kernel", "", "before ms", "after ms", "n before", "n after"]
    output.show(output.table(head, changes, right=[2, 3, 4, 5]))
    for caveat in c.caveats:
        output.paragraph("note", caveat)


def _change(row: ChangeRow) -> list[str]:
    name = short_name(row.name)[:32]
    return [name, str(row.change), _ms(row.a_ns), _ms(row.b_ns), f"{row.a_count:,.1f}", f"{row.b_count:,.1f}"]


def _ms(ns: float) -> str:
    return f"{ns / 1e6:,.3f}"


def _ratio(before: float, after: float) -> str:
    return f"{after / before:.2f}x" if before else "no base"
