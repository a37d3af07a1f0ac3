"""What `perfkit layer1` prints: the verdict first, then what it rests on, in 80 columns.

One device is shown with its anatomy. Several get one row each, and the anatomy of the least busy one, since
that is where something can be won.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from layers.evidence.guard import Checked, Effect
from layers.evidence.result import Result
from layers.evidence.wording import exact_pct, pct, time_text
from layers.layer1_gpu_busy.collect import Collected
from layers.layer1_gpu_busy.findings import ncu_command, short_name
from layers.layer1_gpu_busy.judge import ranks_of
from layers.layer1_gpu_busy.model import DeviceAnalysis, IdleAnatomy, LaunchStats, WindowRatio
from layers.layer1_gpu_busy.ranks import RankTable
from layers.layer1_gpu_busy.trace_analysis import TraceAnalysis
from perfkit.cli import output
from perfkit.cli.layer1_extras import Extra

LABEL = 11
TOP_KERNELS_SHOWN = 5
LARGEST_GAPS_SHOWN = 3
WINDOWS = {
    "device": "first to last device activity",
    "steps": "ProfilerStep range, as the host saw it",
    "recorded": "all that was recorded",
}


def show_layer1(result: Result, collected: Collected, extras: Sequence[Extra]) -> None:
    """Print the result of one or more traces."""
    _headline(result)
    ranks = ranks_of(collected.traces)
    devices = [(trace, device) for trace in collected.traces for device in trace.devices]
    if len(devices) > 1:
        _device_table(result)
    if ranks is not None:
        _rank_lines(ranks)
    if devices:
        trace, device = min(devices, key=lambda pair: pair[1].busy.device_window.device_op_ratio or 0.0)
        if len(devices) > 1:
            output.line()
            output.line(f"the least busy one: {_name(trace)}, device {device.busy.device}")
        _device(device)
    for extra in extras:
        output.line()
        extra.show()
    _checks(result.guards)
    _footer(result, collected)


def _headline(result: Result) -> None:
    verdict = result.verdict
    _paragraph(verdict.headline, verdict.because, max(LABEL, len(verdict.headline) + 2))
    if verdict.next_step:
        _paragraph("", f"→ {verdict.next_step}", max(LABEL, len(verdict.headline) + 2))


def _paragraph(label: str, text: str, indent: int = LABEL) -> None:
    for number, row in enumerate(wrap(text, output.width() - indent, break_on_hyphens=False)):
        output.line(f"{label if number == 0 else '':<{indent}}{row}")


def _name(trace: TraceAnalysis) -> str:
    return f"rank {trace.meta.rank}" if trace.meta.rank >= 0 else trace.artifact.path.rsplit("/", 1)[-1]


def _device(device: DeviceAnalysis) -> None:
    _ratios(device)
    if device.idle is not None:
        _idle(device.idle)
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
    causes = sorted(idle.by_cause_ns.items(), key=lambda item: -item[1])
    rows = [[str(cause), f"{pct(ns / idle.idle_ns)}", f"{ns / 1e6:,.2f}"] for cause, ns in causes if ns]
    title = f"where the idle time is (n = {idle.gaps:,} gaps)"
    output.show(output.table([title, "share", "ms"], rows, right=[1, 2]))
    places = sorted(idle.by_place_ns.items(), key=lambda item: -item[1])
    _paragraph("it lies", ", ".join(f"{place} {pct(ns / idle.idle_ns)}" for place, ns in places if ns))
    for gap in idle.largest[:LARGEST_GAPS_SHOWN]:
        host = f"; host was in {gap.host_op[:60]}" if gap.host_op else ""
        before = short_name(gap.before_op) or "the end"
        text = f"{(gap.end_ns - gap.start_ns) / 1e6:,.3f} ms before {before} ({gap.cause}{host})"
        _paragraph("gap", text)


def _launches(stats: LaunchStats) -> None:
    if stats.delay_p50_ns is None or stats.empty_queue_share is None or stats.queue_depth_p50 is None:
        return
    text = (
        f"n = {stats.launches:,}; {pct(stats.empty_queue_share)} found the device's queue empty, "
        f"median queue {stats.queue_depth_p50:,.0f}; launch to start {time_text(stats.delay_p50_ns)} at the median"
    )
    output.line()
    _paragraph("launches", text)


def _kernels(device: DeviceAnalysis) -> None:
    output.line()
    rows = [
        [short_name(k.name)[:40], k.group, f"{k.n:,}", pct(k.share), time_text(k.median_ns)]
        for k in device.kernels[:TOP_KERNELS_SHOWN]
    ]
    head = ["most device time", "kind", "n", "of busy", "median"]
    output.show(output.table(head, rows, right=[2, 3, 4]))


def _symptoms(device: DeviceAnalysis) -> None:
    output.line()
    for symptom in device.symptoms:
        if symptom.present:
            _paragraph(f"{symptom.code}", f"{symptom.title}: {symptom.numbers}")
            _paragraph("", f"Usual cause: {symptom.usual_cause} Look next: {symptom.look_next}")
    absent = [s.code for s in device.symptoms if s.present is False]
    untold = [s.code for s in device.symptoms if s.present is None]
    counted = (
        f"not there: {', '.join(absent) or 'none'}; this trace cannot tell: {', '.join(untold) or 'none'}"
    )
    _paragraph("symptoms", f"{len(device.symptoms) - len(absent) - len(untold)} present; {counted}")


def _device_table(result: Result) -> None:
    output.line()
    rows = [
        [
            str(d["scope"]),
            str(d["word"]),
            exact_pct(d["device_op_ratio"]) if "device_op_ratio" in d else "not measured",
            exact_pct(d["kernel_time_ratio"]) if "kernel_time_ratio" in d else "not measured",
            f"{d['events']:,}",
            f"{d['window_us'] / 1e3:,.2f}",
        ]
        for d in result.sections["devices"]
    ]
    head = ["device", "verdict", "device-op", "kernel", "n", "window ms"]
    output.show(output.table(head, rows, right=[2, 3, 4, 5]))


def _rank_lines(ranks: RankTable) -> None:
    output.line()
    low, middle, high = ranks.min_ratio, ranks.median_ratio, ranks.max_ratio
    if low is not None and middle is not None and high is not None:
        _paragraph("ranks", f"{len(ranks.rows)} from {pct(low)} to {pct(high)}, median {pct(middle)}")
    named = f"rank {ranks.straggler.rank}" if ranks.straggler is not None else "none named"
    _paragraph("straggler", f"{named}: {ranks.because}")


def _checks(guards: Sequence[Checked]) -> None:
    output.line()
    fired: dict[tuple[Effect, str], list[Checked]] = {}
    for guard in guards:
        if guard.fired:
            fired.setdefault((guard.effect, guard.code), []).append(guard)
    order = list(Effect)
    for (effect, code), same in sorted(fired.items(), key=lambda item: (order.index(item[0][0]), item[0][1])):
        whose = f"{same[0].scope}: " if same[0].scope else ""
        more = f" (and {len(same) - 1} more devices)" if len(same) > 1 else ""
        _paragraph(code, f"{same[0].name}: {effect}. {whose}{same[0].message}{more}")
    clear = [g.code for g in guards if not g.fired and g.code not in {code for _, code in fired}]
    if clear:
        _paragraph("clear", ", ".join(dict.fromkeys(clear)))


def _footer(result: Result, collected: Collected) -> None:
    output.line()
    first = next(iter(result.findings), None)
    if first is not None:
        _paragraph("strength", f"{first.strength} ({first.rule})")
    for trace in collected.traces[:1]:
        more = f" and {len(collected.traces) - 1} more" if len(collected.traces) > 1 else ""
        _paragraph("artifact", f"{trace.artifact.path} sha256 {trace.artifact.sha256[:16]}…{more}")
    command = next((ncu_command(d) for t in collected.traces for d in t.devices if d.kernels), None)
    if result.verdict.word == "device-bound" and command:
        output.line("ncu")
        output.line(f"  {command}")
    codes = [g.code for g in result.guards if g.fired]
    if codes:
        _paragraph("explain", f"perfkit explain {codes[0]}")
