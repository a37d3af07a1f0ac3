"""What `perfkit layer1` prints: the verdict first, then what it rests on, in 80 columns.

One device is shown with its anatomy. Several get one row each, and the anatomy of the least busy one, since
that is where something can be won.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from layers.evidence.finding import FindingKind
from layers.evidence.result import Result
from layers.evidence.wording import counted, exact_pct, pct, time_text
from layers.layer1_gpu_busy.collect import Collected
from layers.layer1_gpu_busy.exposed import exposed_times
from layers.layer1_gpu_busy.findings import ncu_command
from layers.layer1_gpu_busy.idle_model import Gap, IdleAnatomy
from layers.layer1_gpu_busy.kernel_names import distinct_names, short_name
from layers.layer1_gpu_busy.model import WINDOWS, DeviceAnalysis, LaunchStats, WindowRatio
from layers.layer1_gpu_busy.runs import group_runs, rank_tables
from layers.layer1_gpu_busy.thresholds import Word
from layers.layer1_gpu_busy.training import OF_TRAINING
from perfkit.cli import output
from perfkit.cli.layer1_added_sections import AddedSection
from perfkit.cli.layer1_many import show_ranks, show_spread
from perfkit.cli.layer1_nsys import show_nsys
from perfkit.cli.result_view import show_artifacts, show_checks, show_headline, show_what_explains

TOP_KERNELS_SHOWN = 5
LARGEST_GAPS_SHOWN = 3
EXPOSED_SHOWN_FROM = 0.01
"""Of the window: less is neither shown nor missed."""
KERNEL_NAME_CHARACTERS = 40
HOST_NAME_CHARACTERS = 60


def show_layer1(result: Result, collected: Collected, added: Sequence[AddedSection]) -> None:
    """Print the result of one or more traces."""
    show_headline(result)
    if any(trace.training for trace in collected.traces) and result.verdict.word != Word.VOID:
        output.paragraph("training", OF_TRAINING)
    _show_sections(section for section in added if section.leads)
    if len(_traced(result)) > 1:
        _device_table(result)
    void = result.verdict.word == Word.VOID
    if len(_traced(result)) > 1 and not void:
        show_spread(result)
    for table in [] if void else rank_tables(group_runs(collected.traces)):
        show_ranks(table)
    shown = _least_busy(result, collected)
    if shown is not None:
        if len(_traced(result)) > 1:
            output.line()
            output.paragraph("shown", f"{shown.scope}, the least busy one")
        _ratios(shown.device)
        if not void:
            _inside(shown.device)
    show_nsys(collected.traces)
    _show_sections(section for section in added if not section.leads)
    show_checks(result.guards)
    _footer(result, collected, shown)


def _show_sections(added: Iterable[AddedSection]) -> None:
    for section in added:
        output.line()
        section.show()


@dataclass(frozen=True, slots=True)
class _Shown:
    """The device whose anatomy is printed."""

    scope: str
    device: DeviceAnalysis


def _least_busy(result: Result, collected: Collected) -> _Shown | None:
    """The least busy device that is not void; of void ones where there is no other."""
    devices = [device for trace in collected.traces for device in trace.devices]
    named = list(zip(_traced(result), devices, strict=True))
    standing = [(entry, device) for entry, device in named if entry["word"] != Word.VOID]
    if not named:
        return None
    entry, device = min(standing or named, key=lambda pair: pair[0].get("device_op_ratio", 0.0))
    return _Shown(entry["scope"], device)


def _traced(result: Result) -> list[dict[str, Any]]:
    """The devices of traces; those of sampled series have no windows and are shown by their own table."""
    return [entry for entry in result.sections["devices"] if "windows" in entry]


def _inside(device: DeviceAnalysis) -> None:
    """What a void result leaves out: it says nothing of where time goes."""
    if device.idle is not None:
        _idle(device.idle)
    _exposed(device)
    if device.launches is not None:
        _launches(device.launches)
    if device.kernels:
        _kernels(device)
    if device.symptoms:
        _symptoms(device)


def _ratios(device: DeviceAnalysis) -> None:
    busy = device.busy
    rows = [
        _ratio_row("device-op time", busy.device_window.device_op_ratio, busy.events, busy.device_window),
        _ratio_row("kernel time", busy.device_window.kernel_ratio, busy.kernels, busy.device_window),
    ]
    rows += [
        _ratio_row("device-op time", window.device_op_ratio, busy.events, window)
        for window in (busy.steps_window, busy.recorded_window)
        if window is not None
    ]
    output.line()
    output.show(output.table(["ratio", "value", "n", "window ms", "window"], rows, right=[1, 2, 3]))


def _ratio_row(name: str, ratio: float | None, n: int, window: WindowRatio) -> Sequence[str]:
    value = exact_pct(ratio) if ratio is not None else "not measured"
    return name, value, f"{n:,}", f"{window.window.length_ns / 1e6:,.2f}", WINDOWS[window.window.name]


def _idle(idle: IdleAnatomy) -> None:
    if not idle.idle_ns:
        return
    output.line()
    rows = [[cause, pct(ns / idle.idle_ns), f"{ns / 1e6:,.2f}"] for cause, ns in idle.causes]
    title = f"where the idle time is (n = {counted(idle.gaps, 'gap')})"
    output.show(output.table([title, "share", "ms"], rows, right=[1, 2]))
    places = ", ".join(f"{place} {pct(ns / idle.idle_ns)}" for place, ns in idle.places)
    output.paragraph("it lies", places)
    for text in list(dict.fromkeys(map(_gap, idle.largest)))[:LARGEST_GAPS_SHOWN]:
        output.paragraph("gap", text)


def _gap(gap: Gap) -> str:
    host = f"; host was in {gap.host_op[:HOST_NAME_CHARACTERS]}" if gap.host_op else ""
    before = short_name(gap.before_op) or "the end"
    return f"{time_text(gap.end_ns - gap.start_ns)} before {before} ({gap.cause}{host})"


def _exposed(device: DeviceAnalysis) -> None:
    """What is busy and computes nothing."""
    found = [str(exposed) for exposed in exposed_times(device) if exposed.share >= EXPOSED_SHOWN_FROM]
    if found:
        output.line()
        output.paragraph("exposed", "; ".join(found))


def _count_of(stats: LaunchStats) -> str:
    """How many launches the delays and queues are of."""
    if stats.tied_launches == stats.launches:
        return f"{stats.launches:,}"
    return f"{stats.tied_launches:,} with recorded work, of {stats.launches:,}"


def _launches(stats: LaunchStats) -> None:
    if stats.delay_p50_ns is None or stats.empty_queue_share is None or stats.queue_depth_p50 is None:
        return
    text = (
        f"n = {_count_of(stats)}; {pct(stats.empty_queue_share)} found the device's queue empty, median "
        f"queue {stats.queue_depth_p50:,.0f}; launch to start {time_text(stats.delay_p50_ns)} at the median"
    )
    output.line()
    output.paragraph("launches", text)


def _kernels(device: DeviceAnalysis) -> None:
    output.line()
    top = device.kernels[:TOP_KERNELS_SHOWN]
    names = distinct_names([k.name for k in top], KERNEL_NAME_CHARACTERS)
    rows = [
        [name, k.group, f"{k.n:,}", pct(k.share), time_text(k.median_ns)]
        for name, k in zip(names, top, strict=True)
    ]
    head = ["most device time", "kind", "n", "of busy", "median"]
    output.show(output.table(head, rows, right=[2, 3, 4]))


def _symptoms(device: DeviceAnalysis) -> None:
    output.line()
    for symptom in device.symptoms:
        if symptom.present:
            output.paragraph(symptom.code, f"{symptom.title}: {symptom.numbers}")
            output.paragraph("", f"Usual cause: {symptom.usual_cause} Look next: {symptom.look_next}")
    absent = [s.code for s in device.symptoms if s.present is False]
    untold = [s.code for s in device.symptoms if s.present is None]
    present = f"{len(device.symptoms) - len(absent) - len(untold)} present"
    rest = f"not there: {', '.join(absent) or 'none'}; this trace cannot tell: {', '.join(untold) or 'none'}"
    output.paragraph("symptoms", f"{present}; {rest}")
    close = [f"{s.code} {s.title.lower()}: {s.close}" for s in device.symptoms if s.close]
    if close:
        output.paragraph("close", "; ".join(close))


def _device_table(result: Result) -> None:
    output.line()
    rows = [
        [
            str(d["scope"]),
            str(d["word"]) + ("?" if d.get("directional") else ""),
            exact_pct(d["device_op_ratio"]) if "device_op_ratio" in d else "not measured",
            exact_pct(d["kernel_time_ratio"]) if "kernel_time_ratio" in d else "not measured",
            f"{d['events']:,}",
            f"{d['window_us'] / 1e3:,.2f}",
        ]
        for d in _traced(result)
    ]
    head = ["device", "verdict", "device-op", "kernel", "n", "window ms"]
    output.show(output.table(head, rows, right=[2, 3, 4, 5]))


def _footer(result: Result, collected: Collected, shown: _Shown | None) -> None:
    output.line()
    verdicts = (finding for finding in result.findings if finding.kind is FindingKind.VERDICT)
    verdict = next((f for f in verdicts if shown is not None and f.scope == shown.scope), None)
    if verdict is not None and shown is not None:
        whose = f"of {shown.scope}: " if len(_traced(result)) > 1 else ""
        output.paragraph("strength", f"{whose}{verdict.strength} ({verdict.rule})")
    show_artifacts([trace.artifact for trace in collected.traces])
    if result.verdict.word == Word.DEVICE_BOUND and shown is not None:
        _ncu(ncu_command(shown.device))
    show_what_explains(result, result.guards)


def _ncu(command: str | None) -> None:
    """On a line of its own, to be copied."""
    if command is not None:
        output.line("ncu")
        output.line(f"  {command}")
