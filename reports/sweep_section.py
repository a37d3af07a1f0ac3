"""Layer 3 as a section of a report: the curve of the verdict whole, the others in a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.layer3_sweep.named_points import SHOWN_NAMES
from reports.model import Block, Cell, Column, Computed, Folded, Heading, Layer, Name, Paragraph, Table
from reports.study_section import study_blocks
from reports.sweep_document import CONTROL, Entry, SweepRun, sweep_strength
from reports.sweep_figure import curve_name, sweep_figure

METHOD = (
    "At every load together: throughput, latency, what became of every request, accuracy where answers can "
    "be judged, and the devices' utilisation. The class is read off the last doubling of load and names "
    "its evidence; where the curve bends is told by each definition that has a name."
)
FIRST_OUTPUT = ("ttft_ms", "first_audio_ms")


def sweep_layer(title: str, question: str, runs: Sequence[SweepRun]) -> Layer:
    """All runs that count, the latest first."""
    blocks = [block for run in reversed(runs) for block in _run(run)]
    strengths = (_strength(run, len(runs)) for run in runs)
    return Layer(title, question, "", METHOD, tuple(blocks), "; ".join(strengths))


def _strength(r: SweepRun, runs: int) -> str:
    strength, rule = sweep_strength(r)
    whose = f"run {r.run.id}: " if runs > 1 else ""
    return f"{whose}{strength}: {rule}" if strength else f"{whose}none: a void result has no strength"


def _run(r: SweepRun) -> Iterator[Block]:
    yield Heading(f"Run {r.run.id}: {r.title}")
    if r.study is not None and r.study["mixes"]:
        yield from study_blocks(r, r.study)
        yield from _rest(r)
        return
    if r.curve is None:
        why = str(r.run.document["verdict"]["because"])
        yield Paragraph("No curve", why, Computed(f"perfkit {r.command}, run {r.run.id}; no pass stands"))
        return
    yield from _curve(r, r.curve)
    yield from _others(r, r.curve)
    yield from _rest(r)


def _curve(r: SweepRun, curve: Entry) -> Iterator[Block]:
    points, control = r.pooled(curve), r.pooled(curve, CONTROL) if curve["arm"] != CONTROL else []
    basis = r.basis(points)
    of = f" of {name.removesuffix(': ')}" if (name := curve_name(curve)) else ""
    if len([p for p in points if not p["void"]]) > 1:
        yield sweep_figure(r, curve, basis)
    yield _points_table(f"Points{of}", r, points, control)
    named = [
        (SHOWN_NAMES.get(p["name"], p["name"]), f"{p['concurrency']:.3g}", p["because"])
        for p in curve["named"]
    ]
    if named:
        columns = (Column("where it bends"), Column("load", "at a time", numeric=True), Column("by what"))
        yield Table("Where the curve bends, by each definition", columns, tuple(named), basis)
    for one in curve["utilisation"]:
        said = f"by {one['metric']} ({one['source']}): {one['trend']}, {one['because']}"
        yield Paragraph("Devices", said, basis)
    yield from _law(curve, r, points)
    for law in curve.get("batch_laws", ()):
        yield Paragraph("Batches", law["text"], basis)


def _law(curve: Entry, r: SweepRun, points: Sequence[Entry]) -> Iterator[Block]:
    usl = curve.get("usl")
    if usl is None:
        if curve.get("usl_refused"):
            yield Paragraph(
                "Universal scalability law", f"not fitted: {curve['usl_refused']}", r.basis(points)
            )
        return
    told = ", ".join(
        f"{name} {usl[name]:.3g} [{usl['intervals'][name][0]:.3g}, {usl['intervals'][name][1]:.3g}]"
        for name in ("gamma", "alpha", "beta")
    )
    held = "fits" if usl["fits"] else "does not fit"
    said = f"{held}: {told}; R² {usl['r2']:.3f}. {usl['because']}"
    yield Paragraph("Universal scalability law", said, r.basis(points))


def _points_table(title: str, r: SweepRun, points: Sequence[Entry], control: Sequence[Entry]) -> Table:
    ratios = {_load(p): p.get("throughput_rps") for p in control}
    told = [(column, [cell(p, ratios) for p in points]) for column, cell in _COLUMNS]
    kept = [(column, cells) for column, cells in told if any(cells)]
    rows = tuple(zip(*([c or "not measured" for c in cells] for _, cells in kept), strict=True))
    return Table(title, tuple(column for column, _ in kept), rows, r.basis(points))


def _load(point: Entry) -> float | None:
    found: float | None = point.get("concurrency") or point.get("rate_per_s")
    return found


def _rate(point: Entry) -> str:
    return "void" if point["void"] else _number(point.get("throughput_rps"))


def _number(value: float | None, digits: int = 4) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def _ms(point: Entry, statistic: str, *times: str) -> str:
    return next((_number(point[time].get(statistic)) for time in times if time in point), "")


def _counts(point: Entry) -> str:
    if "ok" not in point:
        return ""
    told = (f"{point[name]:,}" if name in point else "not told" for name in ("ok", "shed", "errors"))
    return " / ".join(told)


def _ratio(point: Entry, ratios: dict[float | None, float | None]) -> str:
    control, own = ratios.get(_load(point)), point.get("throughput_rps")
    return f"{control / own:.2f}x" if control and own else ""


_COLUMNS = (
    (Column("load", "at a time or a second", numeric=True), lambda p, _: f"{_load(p):g}"),
    (Column("repeats", "passes", numeric=True), lambda p, _: str(p.get("repeats") or "")),
    (Column("throughput", "req/s", numeric=True), lambda p, _: _rate(p)),
    (Column("sd", "req/s", numeric=True), lambda p, _: _number(p.get("throughput_sd"), 2)),
    (Column("mean", "ms", numeric=True), lambda p, _: _ms(p, "mean", "latency_ms")),
    (Column("p50", "ms", numeric=True), lambda p, _: _ms(p, "p50", "latency_ms")),
    (Column("p95", "ms", numeric=True), lambda p, _: _ms(p, "p95", "latency_ms")),
    (Column("p99", "ms", numeric=True), lambda p, _: _ms(p, "p99", "latency_ms")),
    (Column("first output p50", "ms", numeric=True), lambda p, _: _ms(p, "p50", *FIRST_OUTPUT)),
    (Column("first output p99", "ms", numeric=True), lambda p, _: _ms(p, "p99", *FIRST_OUTPUT)),
    (Column("TPOT p50", "ms", numeric=True), lambda p, _: _ms(p, "p50", "tpot_ms")),
    (Column("GPU util", "%", numeric=True), lambda p, _: _number(p.get("gpu_util_pct"), 3)),
    (Column("accuracy", "as named", numeric=True), lambda p, _: _number(p.get("accuracy"))),
    (Column("served / shed / failed"), lambda p, _: _counts(p)),
    (Column("X R / N", "ratio", numeric=True), lambda p, _: _number(p.get("littles_ratio"), 3)),
    (Column("control over this", numeric=True), _ratio),
)


def _others(r: SweepRun, shown: Entry) -> Iterator[Block]:
    curves = r.run.document["curves"]
    others = [c for c in curves if (c["arm"], c["settings"]) != (shown["arm"], shown["settings"])]
    rows = [row for curve in others if (row := _other(r, curve)) is not None]
    if rows:
        columns = (
            Column("curve"),
            Column("class"),
            Column("highest", "req/s", numeric=True),
            Column("because"),
        )
        points = [p for curve in others for p in r.pooled(curve)]
        yield Folded("Other curves", (Table("Other curves", columns, tuple(rows), r.basis(points)),))


def _other(r: SweepRun, curve: Entry) -> tuple[Cell, ...] | None:
    rates = [p["throughput_rps"] for p in r.pooled(curve) if p.get("throughput_rps") is not None]
    if not rates:
        return None
    name = ", ".join([*filter(None, [curve["arm"]]), *map(str, curve["settings"].values())])
    return Name(name or "the server"), str(curve["class"]), _number(max(rates)), str(curve["because"])


def _rest(r: SweepRun) -> Iterator[Block]:
    """What was left out, and the state of caches."""
    document, how = r.run.document, Computed(f"perfkit {r.command}, run {r.run.id}")
    for label, text in (
        ("Caches", document["regime"]),
        ("Not run", ", ".join(document["not_run"])),
        ("Lost", "; ".join(document["lost"])),
    ):
        if text:
            yield Paragraph(label, text, how)
