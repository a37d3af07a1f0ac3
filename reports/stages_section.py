"""The stage ledger as a section of a report: the ledger of the verdict whole, all runs as bars and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.wording import counted, first_few, pct
from layers.stages.findings import EXPLAINS
from layers.stages.thresholds import QUEUE_LIMIT
from reports.figure_data import StageBars
from reports.model import (
    Block,
    Cell,
    Column,
    Computed,
    Figure,
    Folded,
    Heading,
    Layer,
    Name,
    Paragraph,
    Table,
)
from reports.stages_document import Entry, StageRun, stages_strength

METHOD = (
    "Events are paired first in, first out per request and stage. A share is of the end-to-end time of all "
    "complete requests; where intervals of a request overlap, work has the time before waits and waits "
    "before hops. What no interval covers is told as unaccounted. Refused and cut requests are counted apart."
)
RUNS_SHOWN = 12
SMALL_SHARE = 0.0005
UNACCOUNTED = "unaccounted"
NOT_MEASURED = "not measured"


def stages_layer(title: str, question: str, runs: Sequence[StageRun]) -> Layer:
    """All recorded ledgers that count, the latest first."""
    blocks = [block for run in reversed(runs) for block in _run(run)]
    return Layer(title, question, "", METHOD, tuple(blocks), "; ".join(_strength(r, len(runs)) for r in runs))


def _strength(r: StageRun, runs: int) -> str:
    strength, rule = stages_strength(r)
    whose = f"run {r.run.id}: " if runs > 1 else ""
    return f"{whose}{strength}: {rule}" if strength else f"{whose}none: a void result has no strength"


def _run(r: StageRun) -> Iterator[Block]:
    yield Heading(f"Run {r.run.id}: {r.title}")
    chosen = r.chosen
    if chosen is None:
        why = str(r.run.document["verdict"]["because"])
        yield Paragraph("No ledger", why, Computed(f"perfkit stages, run {r.run.id}; no request is complete"))
        return
    yield from _recorded(r)
    yield _bars(r)
    yield _ledger(r, chosen)
    if len(r.ledgers) > 1:
        yield _runs(r)
    yield from _by_length(r)
    yield from _laws(r, chosen)
    yield from _symptoms(r, chosen)
    if lost := r.run.document["lost"]:
        yield Paragraph("Lost", first_few(lost), Computed(f"perfkit stages, run {r.run.id}"))


def _recorded(r: StageRun) -> Iterator[Block]:
    """How the ledger came about, where perfkit recorded it; and what it says together with stacks."""
    basis = r.basis(r.ledgers)
    if told := r.run.document.get("recorded"):
        load = told["load"]
        under = f"{load['concurrency']} at a time by perfkit" if load else "a load that was there"
        said = f"{told['kind']} at {told['server']}, {told['lasted_s']:.1f} s under {under}"
        devices = [
            f"{d['device']}: {d['metric']} {_number(d['mean'])}, n = {d['n']}" for d in told["devices"]
        ]
        yield Paragraph("Recorded", "; ".join([said, *devices]), basis)
    joined = r.run.document.get("joined")
    if joined and joined["why_not"]:
        yield Paragraph("Together with stacks", joined["statement"], basis)


def _bars(r: StageRun) -> Figure:
    shown = r.ledgers[-RUNS_SHOWN:]
    basis = r.basis(shown)
    bars = tuple((_bar_name(one), tuple(_segments(one))) for one in shown)
    least, most = (pct(edge(one["queue_share"] for one in shown)) for edge in (min, max))
    return Figure(
        name=f"run{r.run.id}-stages",
        title="Where the time of a request goes, by load",
        about=f"{counted(len(shown), 'run')}; n = {basis.n:,} {basis.n_unit}",
        caption="A bar is the mean time of a request, end to end; the dashed line is the limit of waiting.",
        alternative=f"Stacked bars of {counted(len(shown), 'run')}: waiting takes {least} to {most}.",
        data=StageBars(bars, QUEUE_LIMIT),
        basis=basis,
    )


def _bar_name(one: Entry) -> str:
    return f"{one['run']}: {_number(one['e2e_ms']['mean'])} ms"


def _segments(one: Entry) -> Iterator[tuple[str, float]]:
    """Waits first, so that they begin at 0 and are read against the limit."""
    split = one["split"]
    for kind in ("queue", "hop", "intended", "build", "first_forward", "decode", "service"):
        if split[kind] >= SMALL_SHARE:
            yield kind, split[kind]
    if one["residual_share"] >= SMALL_SHARE:
        yield UNACCOUNTED, one["residual_share"]


def _number(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _ledger(r: StageRun, chosen: Entry) -> Table:
    columns = (
        *(Column("stage"), Column("interval"), Column("n", "intervals", numeric=True)),
        *(Column(name, "ms", numeric=True) for name in ("mean", "p50", "p95", "max")),
        *(Column("share", numeric=True), Column("held", "at a time", numeric=True)),
    )
    rows = [_row(row) for row in chosen["stages"] if row["share"] >= SMALL_SHARE]
    e2e = (_number(chosen["e2e_ms"].get(name)) for name in ("mean", "p50", "p95", "max"))
    complete = chosen["requests"]["complete"]
    rows.append(
        ("all", "end to end", f"{complete:,}" if complete else NOT_MEASURED, *e2e, pct(1.0), _held(chosen))
    )
    blank = ("",) * 5
    rows.append(("all", UNACCOUNTED, *blank, pct(chosen["residual_share"]), ""))
    return Table(f"The ledger of {chosen['run']}", columns, tuple(rows), r.basis([chosen]))


def _held(one: Entry) -> str:
    return _number(one["in_flight"] or one["concurrency"])


def _row(row: Entry) -> tuple[Cell, ...]:
    part = f" ({row['part']})" if row["part"] not in ("", "payload") else ""
    meant = ", intended" if row["intended"] else ""
    n = f"{row['n']:,}" if "n" in row else NOT_MEASURED
    times = (_number(row.get(f"{name}_ms")) for name in ("mean", "p50", "p95", "max"))
    return (
        Name(row["stage"]),
        Name(f"{row['interval']}{part}{meant}"),
        n,
        *times,
        pct(row["share"]),
        _number(row.get("held")),
    )


def _runs(r: StageRun) -> Table:
    columns = (
        *(Column("run"), Column("verdict"), Column("in flight", "requests", numeric=True)),
        *(Column("complete / shed / failed / cut"), Column("end to end", "ms", numeric=True)),
        *(Column(name, numeric=True) for name in ("queue share", "hop share", UNACCOUNTED)),
    )
    rows = tuple(
        (
            Name(one["run"]),
            one["word"],
            _held(one),
            _counts(one),
            _number(one["e2e_ms"]["mean"]),
            *(pct(one[name]) for name in ("queue_share", "hop_share", "residual_share")),
        )
        for one in r.ledgers
    )
    return Table("All runs, by load", columns, rows, r.basis(r.ledgers))


def _by_length(r: StageRun) -> Iterator[Block]:
    """Shares by input length and load; older documents have no such table."""
    found = r.run.document.get("by_length")
    if not found:
        return
    if found["why_none"]:
        yield Paragraph("By input length", f"not told: {found['why_none']}", r.basis(r.ledgers))
        return
    cells: list[Entry] = found["cells"]
    stages = list(dict.fromkeys(stage for cell in cells for stage in cell["work"]))
    columns = (
        *(Column("input", found["unit"]), Column("run"), Column("in flight", "requests", numeric=True)),
        *(Column("n", "requests", numeric=True), Column("end to end", "ms", numeric=True)),
        *(Column(name, numeric=True) for name in ("queue", "hops", *stages, UNACCOUNTED)),
    )
    rows = tuple(tuple(_length_row(cell, stages)) for cell in cells)
    yield Table("Shares by input length and load", columns, rows, r.basis(r.ledgers))


def _length_row(cell: Entry, stages: Sequence[str]) -> Iterator[Cell]:
    yield f"{_number(cell['low'])} to {_number(cell['high'])}"
    yield Name(cell["run"])
    yield from (_number(cell["load"]), f"{cell['n']:,}", _number(cell["e2e_mean_ms"]))
    yield from (pct(cell[name]) for name in ("queue_share", "hop_share"))
    yield from (pct(cell["work"].get(stage, 0.0)) for stage in stages)
    yield pct(cell["residual_share"])


def _counts(one: Entry) -> str:
    counts = one["requests"]
    told = " / ".join(f"{counts[name]:,}" for name in ("complete", "shed", "failed", "cut"))
    return told if counts["complete"] else NOT_MEASURED


def _symptoms(r: StageRun, chosen: Entry) -> Iterator[Block]:
    """Those that are there, with their numbers; the others folded, each with why it is not. Older documents
    have none."""
    basis = r.basis([chosen])
    symptoms: list[Entry] = r.run.document.get("symptoms", [])
    for one in (one for one in symptoms if one["present"]):
        said = f"{one['numbers']}. Usual cause: {one['usual_cause']} Threshold: {one['threshold']}"
        yield Paragraph(f"{one['code']} {one['title']}", said, basis)
    others = [one for one in symptoms if not one["present"]]
    if others:
        title = f"Symptoms that are not there, or not measured: {', '.join(one['code'] for one in others)}"
        blocks = (
            Paragraph(
                f"{one['code']} {one['title']}",
                f"{'not there' if one['present'] is False else NOT_MEASURED}: {one['numbers']}. "
                f"Threshold: {one['threshold']}",
            )
            for one in others
        )
        yield Folded(title, tuple(blocks), basis)


def _laws(r: StageRun, chosen: Entry) -> Iterator[Block]:
    basis = r.basis([chosen])
    if laws := chosen["littles_law"]:
        told = (f"{one['stage']} {one['held']:.3g} ({one['ratio']:.2f})" for one in laws)
        how = "requests held over the middle half of the run, and arrivals times mean time over that"
        yield Paragraph("Little's law", f"{', '.join(told)}: {how}", basis)
    for fit in (fit for fit in chosen["batch_fits"] if fit["r2"] >= EXPLAINS):
        law = f"{fit['a_ms']:.3g} + {fit['b_ms']:.3g} B^{fit['p']:g} ms"
        said = f"{fit['stage']} {fit['kind']}: {law}, R² {fit['r2']:.2f}, {counted(fit['batches'], 'batch')}"
        yield Paragraph("Time by batch size", said, basis)
