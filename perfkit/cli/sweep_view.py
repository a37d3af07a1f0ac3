"""What `perfkit sweep` and `perfkit import` print: the verdict first, then what it rests on, in 80 columns.

It is made of the document that --json prints, so that both say the same. One table goes over the loads of the
curve that the verdict is of; other curves (arms, cells of a grid, tables) get a line each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from layers.evidence.result import Result
from layers.evidence.wording import first_few
from layers.layer3_sweep.named_points import SHOWN_NAMES
from perfkit.cli import output
from perfkit.cli.result_view import number, show_checks, show_footer, show_headline
from perfkit.cli.study_view import show_study

Entry = Mapping[str, Any]
FIRST_OUTPUT = ("ttft_ms", "first_audio_ms")
CURVES_SHOWN = 12
LOST_SHOWN = 3
VOID_SHOWN = 24


class Shown(NamedTuple):
    """A column over the loads: its title, and the cell of a point (empty: not measured)."""

    title: str
    cell: Callable[[Entry], str]


def show_sweep(result: Result) -> None:
    """Print the result of a sweep, perfkit's own or imported."""
    if "study" in result.sections:
        show_study(result)
    else:
        show_headline(result)
    curve = result.sections.get("curve")
    if curve is not None:
        points = _points_of(result, curve)
        _show_points(points, _points_of(result, curve, arm="control"))
        _show_named(curve)
        _show_utilisation(curve)
        _show_usl(curve)
        _show_laws(curve)
        _show_others(result, curve)
    else:
        _show_void(result.sections["points"])
    _show_lost(result)
    show_checks(result.guards)
    show_footer(result, result.guards)


def _points_of(result: Result, curve: Entry, arm: str | None = None) -> list[Entry]:
    """All repeats together at each load of a curve, or of another arm with the same settings."""
    wanted = (curve["arm"] if arm is None else arm, curve["settings"])
    points: list[Entry] = result.sections["points"]
    return [p for p in points if p["repeat"] is None and (p["arm"], p["settings"]) == wanted]


def _show_points(points: Sequence[Entry], control: Sequence[Entry]) -> None:
    load = "concurrency" if any("concurrency" in p for p in points) else "rate_per_s"
    columns = [column for column in _columns(load, control) if any(column.cell(p) for p in points)]
    rows = [[column.cell(p) or "-" for column in columns] for p in points]
    output.line()
    output.show(output.table([column.title for column in columns], rows, right=range(len(columns))))
    output.line("times in ms; n: repeats; sd: over them; failed: shed or not served (?: untold)")
    if any("void" in row for row in rows):
        output.line("void: see the checks below; all repeats of that load were taken out")


def _show_void(points: Sequence[Entry]) -> None:
    """Where nothing stands: every pass with what it counted, so that it is seen what was taken out."""
    passes = [p for p in points if p["repeat"] is not None]
    if not passes or not all(p["void"] for p in passes):  # a study has no one curve
        return
    rows = [_void_row(p) for p in passes[:VOID_SHOWN]]
    output.line()
    output.show(output.table(["load", "repeat", "req/s", "served", "failed", ""], rows, right=range(5)))
    if len(passes) > VOID_SHOWN:
        output.line(f"and {len(passes) - VOID_SHOWN} more passes: --json lists all")
    output.line("void: taken out by the checks below; these numbers stand for nothing")


def _void_row(p: Entry) -> list[str]:
    load = f"{p.get('concurrency') or p.get('rate_per_s'):g}"
    counts = [str(p.get("ok", "-")), _failed(p) or "-"]
    return [load, str(p["repeat"]), number(p.get("throughput_rps")), *counts, "void"]


def _columns(load: str, control: Sequence[Entry]) -> list[Shown]:
    """In the order of the table; those that no point fills are left out."""
    ratios = {p.get(load): p.get("throughput_rps") for p in control}
    return [
        Shown("conc" if load == "concurrency" else "rate/s", lambda p: f"{p[load]:g}"),
        Shown("n", lambda p: str(p.get("repeats") or "")),
        Shown("req/s", lambda p: "void" if p["void"] else number(p.get("throughput_rps"))),
        Shown("sd", lambda p: number(p.get("throughput_sd"), digits=2)),
        Shown("e2e p50", lambda p: _ms(p, ("latency_ms",), "p50")),
        Shown("mean", lambda p: "" if _ms(p, ("latency_ms",), "p50") else _ms(p, ("latency_ms",), "mean")),
        Shown("p99", lambda p: _ms(p, ("latency_ms",), "p99")),
        Shown("p95", lambda p: "" if _ms(p, ("latency_ms",), "p99") else _ms(p, ("latency_ms",), "p95")),
        Shown("first p50", lambda p: _ms(p, FIRST_OUTPUT, "p50")),
        Shown("p99", lambda p: _ms(p, FIRST_OUTPUT, "p99")),
        Shown("TPOT", lambda p: _ms(p, ("tpot_ms",), "p50")),
        Shown("GPU %", lambda p: f"{p['gpu_util_pct']:.0f}" if "gpu_util_pct" in p else ""),
        Shown("acc", lambda p: f"{p['accuracy']:.4f}" if "accuracy" in p else ""),
        Shown("failed", _failed),
        Shown("control", lambda p: _ratio(ratios.get(p.get(load)), p.get("throughput_rps"))),
    ]


def _ms(point: Entry, times: Sequence[str], statistic: str) -> str:
    """A time of a point in milliseconds, of the first of these that it has."""
    return next((number(point[time].get(statistic)) for time in times if time in point), "")


def _failed(point: Entry) -> str:
    """Sheds and errors, of how many."""
    if "ok" not in point:
        return ""
    if "errors" not in point:
        return "?"
    failed = point.get("shed", 0) + point["errors"]
    return f"{failed:,}/{point['ok'] + failed:,}" if failed else "0"


def _ratio(control: float | None, own: float | None) -> str:
    return f"{control / own:.2f}x" if control and own else ""


def _show_named(curve: Entry) -> None:
    rows = [
        [SHOWN_NAMES.get(p["name"], p["name"]), f"{p['concurrency']:.3g}", p["because"]]
        for p in curve["named"]
    ]
    if rows:
        output.line()
        output.show(output.table(["where it bends", "at", "by what"], rows, right=[1]))


def _show_utilisation(curve: Entry) -> None:
    for one in curve["utilisation"]:
        output.paragraph("devices", f"{one['metric']} ({one['source']}) {one['trend']}: {one['because']}")


def _show_usl(curve: Entry) -> None:
    usl = curve.get("usl")
    if usl is not None:
        text = ", ".join(f"{name} {_interval(usl, name)}" for name in ("gamma", "alpha", "beta"))
        held = "fits" if usl["fits"] else "does not fit"
        output.paragraph("USL", f"{held}: {text}; R² {usl['r2']:.3f}. {usl['because']}")
    elif curve.get("usl_refused"):
        output.paragraph("USL", f"none: {curve['usl_refused']}")


def _show_laws(curve: Entry) -> None:
    for law in curve["batch_laws"]:
        output.paragraph("batches", law["text"])


def _interval(usl: Entry, name: str) -> str:
    low, high = usl["intervals"][name]
    return f"{usl[name]:.3g} [{low:.3g}, {high:.3g}]"


def _show_others(result: Result, shown: Entry) -> None:
    """One line for each other curve."""
    others = [
        c for c in result.sections["curves"] if (c["arm"], c["settings"]) != (shown["arm"], shown["settings"])
    ]
    if not others:
        return
    rows = [[_name(c), c["class"], _highest(_points_of(result, c))] for c in others[:CURVES_SHOWN]]
    output.line()
    output.show(output.table(["other curves", "class", "highest req/s"], rows, right=[2]))
    if len(others) > CURVES_SHOWN:
        output.line(f"and {len(others) - CURVES_SHOWN} more: --json lists all")


def _name(curve: Entry) -> str:
    """The arm and the settings that tell a curve from others."""
    return (
        ", ".join([*([curve["arm"]] if curve["arm"] else []), *map(str, curve["settings"].values())])
        or "this"
    )


def _highest(points: Sequence[Entry]) -> str:
    told = [p for p in points if p.get("throughput_rps") is not None]
    best = max(told, key=lambda p: float(p["throughput_rps"]), default=None)
    if best is None:
        return "void"
    return f"{number(best['throughput_rps'])} at {best.get('concurrency') or best.get('rate_per_s'):g}"


def _show_lost(result: Result) -> None:
    not_run, lost = result.sections["not_run"], result.sections["lost"]
    if not_run or lost or result.sections["regime"]:
        output.line()
    if result.sections["regime"]:
        output.paragraph("caches", result.sections["regime"])
    if not_run:
        output.paragraph("not run", ", ".join(not_run))
    if lost:
        output.paragraph("lost", first_few(lost, LOST_SHOWN))
