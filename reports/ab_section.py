"""An A/B as a section of a report: the pairs, the yardsticks they are held against, and the three gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.verdict import Exit
from layers.evidence.wording import first_few
from layers.layer4_ab.numbers import pct_text
from reports.ab_document import AbRun, Entry, ab_strength
from reports.ab_evidence import ab_evidence
from reports.ab_figures import ab_figures
from reports.ab_study_section import story_table, study_blocks
from reports.history import verdict_of
from reports.model import Block, Cell, Column, Computed, Folded, Heading, Layer, Name, Paragraph, Table

METHOD = (
    "A server start is the unit; a start of A and one of B are a pair. An effect is claimed where the mean "
    "of the pairs' log-ratios passes its own 95 % interval and the A/A floor: what an arm does to itself, "
    "and what A/A runs did. What could have been detected is that of the same rule."
)
GATES = "The three gates of a change that is safe"
NOT_KNOWN = "not known"
FIRST = {True: "A", False: "B", None: NOT_KNOWN}


def ab_layer(title: str, question: str, runs: Sequence[AbRun]) -> Layer:
    """All recorded A/Bs that count, the latest first."""
    blocks = [block for run in reversed(runs) for block in _run(run)]
    return Layer(title, question, "", METHOD, tuple(blocks), "; ".join(_strength(r, len(runs)) for r in runs))


def _strength(r: AbRun, runs: int) -> str:
    strength, rule = ab_strength(r)
    whose = f"run {r.run.id}: " if runs > 1 else ""
    return f"{whose}{strength}: {rule}" if strength else f"{whose}none: an invalid result has no strength"


def _run(r: AbRun) -> Iterator[Block]:
    yield Heading(f"Run {r.run.id}: {r.title}")
    if r.study is not None:
        yield from study_blocks(r.study, r.run.id, r.basis)
    primary = r.primary
    if primary is None or verdict_of(r.run).exit_code is Exit.INVALID:
        why = str(r.run.document["verdict"]["because"])
        yield Paragraph("No result", why, Computed(f"perfkit ab, run {r.run.id}; the ratio is not told"))
    else:
        yield from ab_figures(r, primary)
        yield _pairs(r, primary)
        yield from _yardsticks(r, primary)
        yield from _beside(r)
        yield from _shifts(r)
    yield from _differences(r)
    yield from _treatment(r)
    yield from ab_evidence(r)
    yield _gates(r)
    if (story := r.run.document.get("story")) is not None:
        yield story_table(story, r.basis)
    yield _runs(r)
    if lost := r.run.document["lost"]:
        yield Paragraph("Lost", first_few(lost), Computed(f"perfkit ab, run {r.run.id}"))


def _pairs(r: AbRun, primary: Entry) -> Table:
    columns = (
        *(Column("pair", "of starts"), Column("start of A"), Column("A", primary["unit"], numeric=True)),
        *(Column("start of B"), Column("B", primary["unit"], numeric=True), Column("B/A", numeric=True)),
        Column("ran first"),
    )
    pairs = [p for p in r.run.document["pairs"] if None not in (p["a_value"], p["b_value"])]
    rows = tuple((f"{n}", *_pair(pair)) for n, pair in enumerate(pairs, 1))
    return Table(f"{primary['metric']} of the pairs, at {primary['load']}", columns, rows, r.basis)


def _pair(pair: Entry) -> tuple[Cell, ...]:
    a, b = pair["a_value"], pair["b_value"]
    values = Name(pair["a"]), f"{a:,.5g}", Name(pair["b"]), f"{b:,.5g}"
    return (*values, change(b / a), FIRST[pair["a_first"]])


def change(ratio: float) -> str:
    """A ratio as percent with its sign."""
    return f"{100 * (ratio - 1):+.2f} %"


def _yardsticks(r: AbRun, primary: Entry) -> Iterator[Block]:
    if primary["low"] is None:
        yield Paragraph("One pair", "has a ratio and no interval: nothing can be claimed of it", r.basis)
        return
    floors = [f"{floor['kind']} of {floor['runs']} runs" for floor in r.run.document["floors"]]
    margin = r.run.document["question"]["margin"]
    rows = [
        ("mean ratio", change(primary["ratio"]), "geometric mean of the pairs"),
        ("interval", f"{change(primary['low'])} to {change(primary['high'])}", "Student's t, 95 %"),
        (
            "A/A floor",
            f"±{pct_text(primary['floor_pct'])}",
            f"highest of: {', '.join(['repeats of each arm', *floors])}",
        ),
    ]
    if primary["mde_pct"] is not None:
        detected = f"±{pct_text(primary['mde_pct'])}"
        rows.append(("detectable", detected, "claimed by the whole rule in 4 of 5 experiments"))
    if margin is not None:
        rows.append(("margin", f"±{100 * margin:g} %", "a difference that does not matter, as declared"))
    if primary["wanted_pct"] is not None:
        needed = primary["pairs_needed"]
        told = f"{needed} pairs" if needed is not None else "more than 100 pairs"
        rows.append(("pairs needed", told, f"for {primary['wanted_pct']:.2f} %, with this noise"))
    columns = (Column("yardstick"), Column("value", numeric=True), Column("what it is"))
    yield Table("What the ratio is held against", columns, tuple(rows), r.basis)


def _beside(r: AbRun) -> Iterator[Block]:
    metrics: list[Entry] = r.run.document["metrics"]
    if not metrics:
        return
    columns = (
        *(Column("metric"), Column("load"), Column("n", "pairs", numeric=True), Column("B/A", numeric=True)),
        *(Column("p", "Holm", numeric=True), Column("after Holm")),
    )
    rows = tuple(
        (
            *(m["metric"], m["load"], f"{m['n_pairs']}", change(m["ratio"])),
            *("" if m["p_adjusted"] is None else f"{m['p_adjusted']:.3g}", m["call"]),
        )
        for m in metrics
    )
    yield Table("Metrics beside it, which decide nothing", columns, rows, r.basis)


def _shifts(r: AbRun) -> Iterator[Block]:
    for name, what in (("drift", "from the first run to the last"), ("order_effect", "first to second")):
        shift = r.run.document.get(name)
        if shift is not None:
            low, high = f"{shift['low_pct']:+.2f}", f"{shift['high_pct']:+.2f}"
            said = f"{shift['pct']:+.2f} % [{low}, {high}] {what}, n = {shift['n']}"
            yield Paragraph(name.replace("_", " ").capitalize(), said, r.basis)


def _differences(r: AbRun) -> Iterator[Block]:
    differences: list[Entry] = r.run.document.get("differences", [])
    if differences:
        columns = (Column("fact"), Column("A"), Column("B"))
        rows = tuple((Name(one["name"]), Name(one["a"]), Name(one["b"])) for one in differences)
        yield Table("In what the arms differ, as their recordings tell", columns, rows, r.basis)


def _treatment(r: AbRun) -> Iterator[Block]:
    document = r.run.document
    for label, counts in (
        ("Treatment", document["treatment"]["evidence"]),
        ("Unblocked", document["unblocked"]),
    ):
        for one in counts:
            said = f"{one['name']}: {one['a']:,.10g} in A, {one['b']:,.10g} in B ({one['where']})"
            yield Paragraph(label, said, r.basis)


def _gates(r: AbRun) -> Table:
    gates = r.run.document["gates"]
    rows = [(name, gate["state"], gate["because"]) for name, gate in gates.items()]
    rows.append(("safe", "yes" if r.run.document["safe"] else "not shown", "it takes all three"))
    return Table(GATES, (Column("gate"), Column("state"), Column("because")), tuple(rows), r.basis)


def _runs(r: AbRun) -> Folded:
    """Every run, those left out with their reason."""
    unit = r.primary["unit"] if r.primary else "-"
    columns = (
        *(
            Column("arm"),
            Column("start"),
            Column("round", "of its start"),
            Column("value", unit, numeric=True),
        ),
        Column("left out because"),
    )
    rows = tuple(
        (
            *(run["arm"], Name(run["start"]), f"{run['round']}"),
            "not measured" if run["value"] is None else f"{run['value']:,.5g}",
            Name(run["excluded"] or "-"),
        )
        for run in r.run.document["runs"]
    )
    table = Table("Every run", columns, rows, r.basis)
    return Folded("Every run of both arms", (table,))
