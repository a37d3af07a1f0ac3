"""Sections that `perfkit layer1` adds to its document on request: the distance to the roofline, and the
comparison with another trace. Each comes with the lines that show it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from layers.evidence.measurement import Artifact
from layers.evidence.result import Result
from layers.evidence.wording import clipped
from layers.layer1_gpu_busy.collect import Collected
from layers.layer1_gpu_busy.compare_files import NotCompared, compare_files
from layers.layer1_gpu_busy.roofline.answer import tpot_distance
from layers.layer1_gpu_busy.roofline.judge import judge
from layers.layer1_gpu_busy.roofline.question import Question
from layers.layer1_gpu_busy.thresholds import Thresholds
from parsers.errors import UsageError
from perfkit.cli.comparison_text import show_comparison, show_not_compared
from perfkit.cli.roofline_text import show_roofline


@dataclass(frozen=True, slots=True)
class AddedSection:
    """A section that stands beside those of the layer. `leads`: it is shown right after the verdict;
    `read`: the files that it was made from beside those of the command."""

    name: str
    content: Any
    show: Callable[[], None]
    leads: bool = False
    read: tuple[Artifact, ...] = ()


def with_sections(result: Result, added: Sequence[AddedSection]) -> Result:
    """The result with the added sections in its document."""
    contents = {section.name: section.content for section in added}
    return replace(result, sections=result.sections | contents)


def roofline_section(collected: Collected, question: Question) -> AddedSection:
    """How far the measured TPOT is from the lower bound of the GPU that the traces name."""
    names = {d.busy.device_name for t in collected.traces for d in t.devices if d.busy.device_name}
    if len(names) > 1 and question.gpu is None:
        raise UsageError(f"the traces name several GPUs ({', '.join(sorted(names))}): say which with --gpu")
    answer = tpot_distance(names, question)
    verdict = (result := judge(answer)).verdict
    said = {"word": verdict.word, "directional": verdict.directional, "because": verdict.because}
    content = {"verdict": said, **result.sections.get("roofline", {})}
    return AddedSection("roofline", content, lambda: show_roofline(result, answer))


def comparison_section(before: str, collected: Collected, thresholds: Thresholds) -> AddedSection:
    """The one trace of the command against an earlier one, or why they could not be compared."""
    compared = compare_files(before, collected.traces[0].artifact.path, thresholds)
    outcome, read = compared.outcome, () if compared.earlier is None else (compared.earlier,)
    if isinstance(outcome, NotCompared):
        content = clipped(msgspec.to_builtins(outcome))
        return AddedSection("not_compared", content, lambda: show_not_compared(outcome), True, read)
    content = clipped(msgspec.to_builtins(outcome) | {"earlier": msgspec.to_builtins(compared.earlier)})
    return AddedSection("comparison", content, lambda: show_comparison(outcome), True, read)
