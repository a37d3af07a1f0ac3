"""What `perfkit stages` prints: the verdict first, then the ledger that it rests on, in 80 columns.

It is made of the document that --json prints, so that both say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layers.evidence.finding import FindingKind
from layers.evidence.result import Result
from layers.evidence.wording import counted, first_few, limit, pct
from perfkit.cli import output
from perfkit.cli.joining import show_joined
from perfkit.cli.result_view import number, show_checks, show_footer, show_headline

Entry = Mapping[str, Any]
RUNS_SHOWN, LAWS_SHOWN, LOST_SHOWN = 12, 6, 3
LOADS_BY_LENGTH, STAGES_BY_LENGTH = 4, 3
SMALL_SHARE = 0.0005
"""Rows of less are left to --json."""
BAR_WIDTH = 30
BARS = (("queue", "."), ("hop", ">"), ("work", "#"), ("unaccounted", "?"))
FULL = 1.0


def show_stages(result: Result) -> None:
    """Print the ledger of the run that the verdict is of, then all runs in short."""
    show_headline(result)
    runs: list[Entry] = result.sections["runs"]
    chosen = next((run for run in runs if run["run"] == result.sections["run"]), None)
    if chosen is not None:
        _show_ledger(chosen)
        _show_runs(runs)
        _show_lengths(result.sections["by_length"])
        _show_laws(chosen)
    if recorded := result.sections.get("recorded"):
        _show_recorded(recorded)
    _show_symptoms(result.sections["symptoms"])
    for finding in result.findings:
        if finding.kind is FindingKind.OBSERVATION and not finding.disproof:
            output.paragraph("seen", finding.statement)
    if result.sections["lost"]:
        output.paragraph("lost", first_few(result.sections["lost"], LOST_SHOWN))
    show_joined(result)
    concerning = [g for g in result.guards if g.scope in ("", result.sections["run"])]
    show_checks(concerning)
    show_footer(result, concerning)


def _show_ledger(run: Entry) -> None:
    rows = [row for row in run["stages"] if row["share"] >= SMALL_SHARE]
    head = ["stage", "interval", "n", "mean ms", "p50", "p95", "max", "share"]
    cells = [_cells(row) for row in rows]
    e2e = run["e2e_ms"]
    cells.append(["", "end to end", *_times(e2e, run["requests"]["complete"] or None, e2e.get("within")), ""])
    cells.append(["", "unaccounted", "", "", "", "", "", pct(run["residual_share"])])
    output.line()
    output.show(output.table(head, cells, right=range(2, len(head))))
    hidden = len(run["stages"]) - len(rows)
    notes = (
        [f"{counted(hidden, 'row')} of less than {limit(SMALL_SHARE)} left out (--json)"] if hidden else []
    )
    if run["overlap_share"] >= SMALL_SHARE:
        notes.append(f"intervals overlap by {pct(run['overlap_share'])} of end-to-end time")
    if notes:
        output.paragraph("", "; ".join(notes))
    if run["enclosing"]:
        told = (f"{row['stage']} {number(row['mean_ms'])} ms" for row in run["enclosing"])
        output.paragraph("", f"times that hold some of these: {', '.join(told)} (means)")


def _cells(row: Entry) -> list[str]:
    times = {name: row.get(f"{name}_ms") for name in ("mean", "p50", "p95", "max")}
    what = " ".join(word for word in (row["interval"], _part(row)) if word)
    return [row["stage"], what, *_times(times, row.get("n"), row.get("within_ms")), pct(row["share"])]


def _part(row: Entry) -> str:
    meant = ", meant" if row["intended"] else ""
    told = (row["stage"], "payload", row["interval"].replace("_", " "))
    part = row["part"] if row["part"] not in told else ""
    return f"({f'{part}{meant}'.lstrip(', ')})" if part or meant else ""


def _times(times: Mapping[str, Any], n: int | None, within: Mapping[str, Any] | None = None) -> list[str]:
    """n, mean, p50, p95 and max; of a percentile the bucket where no more is known."""
    values = [
        number(times.get(name), digits=3) or bucket_text((within or {}).get(name))
        for name in ("mean", "p50", "p95", "max")
    ]
    return [f"{n:,}" if n is not None else "-", *values]


def bucket_text(bucket: Sequence[float | None] | None) -> str:
    """`300-500`, `>8000`, or `-` for none."""
    if not bucket:
        return "-"
    low, high = (number(bound, digits=3) for bound in bucket)
    return f"{low}-{high}" if high else f">{low}"


def _show_runs(runs: Sequence[Entry]) -> None:
    """Stacked bars over load: waiting, hops, work, unaccounted."""
    if len(runs) < 2:
        return
    rows = [
        [
            run["run"],
            number(run["concurrency"] or run["in_flight"], digits=3),
            number(run["e2e_ms"]["mean"]),
            pct(run["queue_share"]),
            pct(run["residual_share"]),
            bar(run),
        ]
        for run in runs[-RUNS_SHOWN:]
    ]
    head = ["run", "in flight", "e2e ms", "queue", "unacc.", "share of a request's time"]
    output.line()
    output.show(output.table(head, rows, right=[1, 2, 3, 4]))
    legend = "  ".join(f"{mark} {name}" for name, mark in BARS)
    more = f"; {len(runs) - RUNS_SHOWN} runs with less load left out" if len(runs) > RUNS_SHOWN else ""
    output.line(f"{legend}{more}")


def bar(run: Entry) -> str:
    """One run's shares as BAR_WIDTH characters; the work is what is left of the others."""
    waits, hops, rest = run["queue_share"], run["hop_share"], max(0.0, run["residual_share"])
    ends = [waits, waits + hops, max(waits + hops, FULL - rest), FULL]
    text = ""
    for (_, mark), end in zip(BARS, ends, strict=True):
        text += mark * (round(end * BAR_WIDTH) - len(text))
    return text


def _show_symptoms(symptoms: Sequence[Entry]) -> None:
    """Those that are there; of the others which were looked for, and which could not be."""
    if not symptoms:
        return
    output.line()
    for one in symptoms:
        if one["present"]:
            output.paragraph(one["code"], f"{one['title']}: {one['numbers']}")
            output.paragraph("", f"Usual cause: {one['usual_cause']} Look next: {one['look_next']}")
    absent = [one["code"] for one in symptoms if one["present"] is False]
    untold = [one["code"] for one in symptoms if one["present"] is None]
    there = f"{len(symptoms) - len(absent) - len(untold)} there"
    said = [there, *([f"not there: {', '.join(absent)}"] if absent else [])]
    said += [f"not measured: {', '.join(untold)} (--json says what it takes)"] if untold else []
    output.paragraph("symptoms", "; ".join(said))


def _show_lengths(table: Entry | None) -> None:
    """Shares by input length, over load; the stages with most work each have a column."""
    if table is None:
        return
    output.line()
    if table["why_none"]:
        output.paragraph("by length", f"not told: {table['why_none']}")
        return
    cells: list[Entry] = table["cells"]
    shown = set(list(dict.fromkeys(cell["run"] for cell in cells))[-LOADS_BY_LENGTH:])
    most = {stage: max(cell["work"].get(stage, 0.0) for cell in cells) for c in cells for stage in c["work"]}
    stages = sorted(sorted(most, key=lambda stage: -most[stage])[:STAGES_BY_LENGTH], key=list(most).index)
    head = [table["unit"], "in flight", "n", "e2e ms", "waits", *stages, "unacc."]
    rows = [_length_cells(cell, stages) for cell in cells if cell["run"] in shown]
    output.show(output.table(head, rows, right=range(1, len(head))))


def _length_cells(cell: Entry, stages: Sequence[str]) -> list[str]:
    bounds = f"{number(cell['low'], digits=3)} to {number(cell['high'], digits=3)}"
    work = [pct(cell["work"][stage]) if stage in cell["work"] else "-" for stage in stages]
    waits, rest = pct(cell["queue_share"] + cell["hop_share"]), pct(cell["residual_share"])
    load, n = number(cell["load"], digits=3), f"{cell['n']:,}"
    return [bounds, load, n, number(cell["e2e_mean_ms"]), waits, *work, rest]


def _show_laws(run: Entry) -> None:
    laws = run["littles_law"][:LAWS_SHOWN]
    if laws:
        told = [f"{law['stage']} {law['held']:.3g} ({law['ratio']:.2f})" for law in laws]
        output.line()
        output.paragraph("holds", f"{', '.join(told)} requests (Little's law over what was integrated)")


def _show_recorded(recorded: Entry) -> None:
    """How the ledger came about: server, time, load; what the server and its devices said meanwhile."""
    lasted = f"{recorded['lasted_s']:.1f} s"
    output.line()
    output.paragraph("recorded", f"{recorded['kind']} at {recorded['server']}, {lasted}, {_load(recorded)}")
    for device in recorded["devices"]:
        said = f"{device['metric']} {device['mean']:.3g} (n = {counted(device['n'], 'sample')})"
        output.paragraph("device", f"{device['device']}: {said}")
    for problem in recorded["problems"]:
        output.paragraph("note", problem)


def _load(recorded: Entry) -> str:
    """The load, perfkit's or somebody's."""
    driven, means = recorded["load"], recorded["server_means"]
    if driven is not None:
        counts = driven["tally"]
        told = f"{counts['ok']:,} served, {counts['shed']:,} shed, {counts['errors']:,} failed"
        return f"perfkit's load of {driven['concurrency']} at a time: {told}"
    held = [
        f"{means[name]:.3g} {name}" for name in ("running", "waiting") if means and means[name] is not None
    ]
    return f"your load: {', '.join(held)} (the server's own metrics)" if held else "your load"
