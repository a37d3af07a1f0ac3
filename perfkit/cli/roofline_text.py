"""The roofline as people read it: the answer, one row a bound, what it rests on and what was left out."""

from __future__ import annotations

import textwrap

from layers.evidence.result import Result
from layers.layer1_gpu_busy.roofline.answer import Prefill, Roofline
from layers.layer1_gpu_busy.roofline.bounds import Bound
from layers.layer1_gpu_busy.roofline.gpu_table import GPUS, GpuSpec, NoSpec
from layers.layer1_gpu_busy.roofline.judge import byte_model, gpus, launches_bind, ms
from perfkit.cli import output

INDENT = 11

UNITS = "dense TFLOP/s (sparse rates of datasheets halved); ridge: FLOP per byte at the fp16 peak"

Row = tuple[str, str, str, str]


def show_roofline(result: Result, answer: Roofline | NoSpec) -> None:
    """Print a judged answer."""
    paragraph(result.verdict.headline, result.verdict.because)
    if isinstance(answer, Roofline):
        output.line()
        output.show(output.table(["bound", "value", "set by", "assumes"], _rows(answer), right=[1]))
        output.line()
        paragraph("rests on", _rests_on(answer))
        for term in answer.left_out:
            paragraph("left out", term)
    if result.verdict.next_step:
        paragraph("next", result.verdict.next_step)


def show_gpus() -> None:
    """Print the table of GPUs."""
    headers = ["GPU", "TB/s", "bf16", "fp16", "fp8", "ridge", "source"]
    output.show(output.table(headers, [_gpu_row(gpu) for gpu in GPUS], right=range(1, 6)))
    output.line()
    paragraph("units", UNITS)


def paragraph(label: str, text: str) -> None:
    """A label and its text, wrapped beside it."""
    indent = max(INDENT, len(label) + 2)
    wrapped = textwrap.wrap(text, output.width() - indent, break_on_hyphens=False)
    for number, row in enumerate(wrapped):
        output.line(f"{label if number == 0 else '':<{indent}}{row}")


def _rows(answer: Roofline) -> list[Row]:
    """Every bound, the strict one first."""
    routing = ", uniform routing" if answer.question.moe_experts else ""
    rows = [
        _row("decode step", answer.decode, f"everything overlaps{routing}"),
        ("decode step", ms(answer.decode_sum_s), "sum", f"attention, then matrix products{routing}"),
    ]
    if answer.question.moe_experts:
        rows.append(_row("decode step", answer.floor, "all rows take the same experts"))
    most = answer.question.batch / answer.floor.time_s
    rows.append(("tokens/s", f"<= {most:,.0f}", answer.floor.side, "one token per row and step"))
    return rows + _optional_rows(answer)


def _optional_rows(answer: Roofline) -> list[Row]:
    rows = []
    if answer.critical_tokens is not None:
        tokens = f"{answer.critical_tokens:,.0f} tokens"
        rows.append(("critical", tokens, "", "a step with more is compute-bound"))
    if answer.prefill is not None:
        rows.append(_row(_prompt(answer.prefill), answer.prefill.bound, "one prompt, everything overlaps"))
    if answer.launch_floor_s is not None:
        side = "launches: binds" if launches_bind(answer) else "launches"
        rows.append(("host", ms(answer.launch_floor_s), side, "no CUDA graph, one launching thread"))
    if answer.real_time_factor is not None:
        rows.append(
            ("RTF", f">= {answer.real_time_factor:.3g}", answer.floor.side, "one frame per row and step")
        )
    return rows


def _row(name: str, bound: Bound, assumes: str) -> Row:
    return (name, ms(bound.time_s), bound.side, assumes)


def _prompt(prefill: Prefill) -> str:
    return f"prefill {prefill.tokens:,}" + (f" after {prefill.cached:,}" if prefill.cached else "")


def _rests_on(answer: Roofline) -> str:
    """Rates and byte model, with their sources."""
    card, q = answer.card, answer.question
    peak = f"{card.peak_tflops:,.4g} TFLOP/s {q.dtype} dense" if card.peak_tflops else f"no {q.dtype} peak"
    each = " each" if q.tp > 1 else ""
    rates = f"{gpus(answer)}: {card.bandwidth_tb_s:g} TB/s, {peak}{each} ({card.source})"
    if card.achievable_tflops:
        rates += f"; the vendor itself reached {card.achievable_tflops:g} TFLOP/s"
    return f"{rates}; a step reads {byte_model(answer)}"


def _gpu_row(gpu: GpuSpec) -> tuple[str, ...]:
    peaks = [gpu.peak_tflops.get(dtype) for dtype in ("bf16", "fp16", "fp8")]
    shown = [f"{peak:,.4g}" if peak else "" for peak in peaks]
    ridge = gpu.peak_tflops["fp16"] / gpu.bandwidth_tb_s
    return (gpu.name, f"{gpu.bandwidth_tb_s:g}", *shown, f"{ridge:.0f}", gpu.source)
