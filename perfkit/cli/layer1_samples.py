"""What `perfkit layer1` reads and prints for sampled series: the table of methods, and how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layers.evidence.result import Result
from layers.evidence.wording import counted, exact_pct
from layers.layer1_gpu_busy.collect import Collected
from layers.layer1_gpu_busy.thresholds import Thresholds
from perfkit.cli import output
from perfkit.cli.layer1_added_sections import AddedSection
from perfkit.cli.result_view import (
    show_artifacts,
    show_checks,
    show_headline,
    show_strength,
    show_what_explains,
)

if TYPE_CHECKING:
    from layers.layer1_gpu_busy.cross_check import Comparison
    from layers.layer1_gpu_busy.cross_judge import CrossChecked
    from layers.layer1_gpu_busy.methods import Method
    from layers.layer1_gpu_busy.sampled_model import SampledAnalysis

METHODS_SHOWN = 24
NAME_CHARACTERS = 24
LABELS = {True: "agree", None: "beside"}


def read_samples(paths: Sequence[str], shift_ns: int) -> list[SampledAnalysis]:
    """Every named log, analysed; `shift_ns` is how far their clock was ahead of UTC."""
    from layers.layer1_gpu_busy.collect_sampled import collect_samples

    with output.progress(f"reading {counted(len(paths), 'log')}", len(paths)) as step:
        return collect_samples(paths, shift_ns, step)


def cross_judged(
    collected: Collected, samples: Sequence[SampledAnalysis], thresholds: Thresholds
) -> CrossChecked:
    """The result of traces, if any, and logs together."""
    from layers.layer1_gpu_busy.cross_judge import judge_with_samples

    return judge_with_samples(collected.traces, samples, thresholds, collected.unread)


def methods_section(checked: CrossChecked) -> AddedSection:
    """The table of methods, to be shown beside a trace."""
    return AddedSection("methods", checked.result.sections["methods"], lambda: _show_methods(checked))


def show_samples(result: Result, checked: CrossChecked, added: Sequence[AddedSection]) -> None:
    """Print a result that rests on sampled series alone."""
    show_headline(result)
    for section in added:
        output.line()
        section.show()
    show_checks(result.guards)
    output.line()
    show_strength(result)
    for file in dict.fromkeys(card.file.artifact for card in checked.cards):
        show_artifacts([file])
    show_what_explains(result, result.guards)


def _show_methods(checked: CrossChecked) -> None:
    rows = [_row(method) for method in checked.methods[:METHODS_SHOWN]]
    head = ["method", "card", "measures", "value", "n", "window s"]
    if rows:
        output.show(output.table(head, rows, right=[3, 4, 5]))
    if len(checked.methods) > METHODS_SHOWN:
        output.line(f"and {len(checked.methods) - METHODS_SHOWN} more: --json lists all")
    for meaning in dict.fromkeys(method.meaning for method in checked.methods):
        output.paragraph(meaning.measures, f"{meaning.means} ({meaning.instrument}, {meaning.scale})")
    for comparison in _telling(checked.comparisons):
        output.paragraph(LABELS[comparison.agree], _compared(comparison))


def _row(method: Method) -> list[str]:
    seconds = f"{method.window.length_ns / 1e9:,.1f}" if method.window else "not known"
    card = method.card[:NAME_CHARACTERS]
    return [method.method, card, method.measures, exact_pct(method.value), f"{method.n:,}", seconds]


def _telling(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """One of each kind that does not differ (PK158 says what does): eight cards say the same eight times."""
    quiet = [c for c in comparisons if c.agree is not False]
    first = {(c.b.measures, c.agree and c.a.measures, c.times): c for c in reversed(quiet)}
    return list(first.values())[::-1]


def _compared(c: Comparison) -> str:
    return (
        f"{c.a.card}: {c.a.measures} {exact_pct(c.a.value)} and {c.b.measures} {exact_pct(c.b.value)} "
        f"(n = {c.b.n:,}, {c.times}): {c.why}"
    )
