"""Layer 5 as a section of a report: cells, where samples part, accuracy, the self-test, keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.wording import counted, first_few, pct
from reports.figure_data import Divergences
from reports.model import Block, Column, Computed, Figure, Heading, Layer, Name, Paragraph, Table
from reports.regress_document import Entry, RegressRun, regress_strength

METHOD = (
    "Samples are paired by item, cell and repeat; sets first, then how answers ended and how long they are, "
    "then raw bytes with type and shape. Bytes are judged in cells in which a second run of A repeats the "
    "first; elsewhere right and wrong are, on the same items. Planted faults must be found before a result "
    "is reported."
)
SAMPLES_SHOWN = 20
NOT_ASKED = "not asked"


def regress_layer(title: str, question: str, runs: Sequence[RegressRun]) -> Layer:
    """All recorded comparisons that count, the latest first."""
    blocks = [block for run in reversed(runs) for block in _run(run)]
    return Layer(title, question, "", METHOD, tuple(blocks), "; ".join(_strength(r, len(runs)) for r in runs))


def _strength(r: RegressRun, runs: int) -> str:
    strength, rule = regress_strength(r)
    whose = f"run {r.run.id}: " if runs > 1 else ""
    return f"{whose}{strength}: {rule}" if strength else f"{whose}none: an invalid result has no strength"


def _run(r: RegressRun) -> Iterator[Block]:
    yield Heading(f"Run {r.run.id}: {r.title}")
    if r.keys is not None:
        yield from _keys(r, r.keys)
        return
    if not r.run.document["compared"]:
        why = str(r.run.document["verdict"]["because"])
        yield Paragraph("Nothing compared", why, Computed(f"perfkit regress, run {r.run.id}"))
        return
    yield from _arms(r)
    yield _cells(r)
    if r.different:
        yield from _figure(r)
        yield _samples(r)
    yield from _accuracy(r)
    yield _control(r, r.run.document["control"], "times", "caught")
    if lost := r.run.document["lost"]:
        yield Paragraph("Lost", first_few(lost), Computed(f"perfkit regress, run {r.run.id}"))


def _arms(r: RegressRun) -> Iterator[Block]:
    """Whose outputs they are, and by what counter the changed path is known to have run."""
    for arm in r.run.document["arms"]:
        if arm["server"]:
            settings = ", ".join(f"{name}={value}" for name, value in arm["declared"].items())
            proofs = [f"{one['counter']} grew by {one['grew_by']:,.6g}" for one in arm["proofs"]]
            said = "; ".join(filter(None, [f"{arm['server']} {settings}".strip(), *proofs]))
            yield Paragraph(arm["name"], (Name(said),), r.basis)


def _cells(r: RegressRun) -> Table:
    columns = (
        *(Column("cell"), Column("n", "samples", numeric=True), Column("differ", "samples", numeric=True)),
        *(Column("A differs from itself"), Column("judged by")),
    )
    rows = tuple(
        (
            Name(one["cell"] or "all"),
            f"{one['n']:,}",
            f"{one['different']:,}",
            NOT_ASKED if one["aa_n"] is None else f"{one['aa_different']:,} of {one['aa_n']:,}",
            "bytes" if one["exact"] else f"right and wrong: {one['why_not']}",
        )
        for one in r.run.document["cells"]
    )
    return Table("Cells", columns, rows, r.basis)


def _samples(r: RegressRun) -> Table:
    shown = r.different[:SAMPLES_SHOWN]
    columns = (Column("item"), Column("cell"), Column("what differs first"), Column("A repeats itself"))
    rows = tuple(
        (Name(one["item"]), Name(one["cell"] or "all"), Name(one["text"]), _repeats(one)) for one in shown
    )
    more = f", the first {len(shown)} of {len(r.different)}" if len(r.different) > len(shown) else ""
    return Table(f"Samples that differ{more}", columns, rows, r.basis)


def _repeats(one: Entry) -> str:
    if "aa_same" not in one:
        return NOT_ASKED
    return "yes" if one["aa_same"] else "no"


def _figure(r: RegressRun) -> Iterator[Figure]:
    """How far into the answers they part; samples without a place (not answered, another type) are left
    out."""
    places = [place for one in r.different if (place := place_of(one)) is not None]
    if not places:
        return
    early = sum(place < 0.1 for place in places)
    yield Figure(
        name=f"run{r.run.id}-divergence",
        title="Where answers part, by how much of them is the same before",
        about=f"{counted(len(places), 'sample')} of {r.basis.n:,} that differ at a place; n = {len(places)}",
        caption="Of the shorter answer: a bar at the right end is an answer that was cut, or went on.",
        alternative=f"A histogram of {counted(len(places), 'place')}: {early} in the first tenth.",
        data=Divergences(tuple(places)),
        basis=r.basis,
    )


def place_of(one: Entry) -> float | None:
    """The place of the first difference over the length of the shorter answer, both in one unit."""
    at, lengths = one.get("at"), one.get("lengths")
    if at is None or not lengths or one["what"] not in ("content", "length"):
        return None
    shorter = min(lengths)
    return min(1.0, at / shorter) if shorter else 0.0


def _accuracy(r: RegressRun) -> Iterator[Block]:
    accuracy = r.run.document["accuracy"]
    if accuracy is None:
        return
    share = accuracy["detectable_share"]
    shown = f"a loss of {pct(share)} would have shown" if share is not None else "no loss would have shown"
    flips = f"{accuracy['lost']:,} lost and {accuracy['gained']:,} gained of {counted(accuracy['n'], 'item')}"
    said = f"right is {accuracy['right']}; {flips}; McNemar p {accuracy['p_value']:.2g}; {shown}"
    if (rates := accuracy["error_rates"]) is not None:
        change = f"{100 * rates['low']:+.2f} to {100 * rates['high']:+.2f} points"
        said += f"; {rates['metric'].upper()} {pct(rates['a'])} → {pct(rates['b'])} ({change})"
    yield Paragraph("Right and wrong", said, r.basis)


def _control(r: RegressRun, trials: Sequence[Entry], times: str, caught: str) -> Paragraph:
    told = [f"{one['planted']}: {int(one[caught]):,} of {int(one.get(times, 1)):,}" for one in trials]
    return Paragraph("Self-test", f"planted and found: {'; '.join(told) or 'nothing'}", r.basis)


def _keys(r: RegressRun, layer: Entry) -> Iterator[Block]:
    spec = layer["spec"]
    what = f"{spec['channels']} channels of {spec['values']:,} values, {spec['range']:,} keys"
    yield Paragraph("Asked", (Name(layer["command"]), f": rows of {what}"), r.basis)
    columns = (Column("property"), Column("n", "rows", numeric=True), Column("holds"), Column("seen"))
    rows = tuple(
        (one["name"], f"{one['n']:,}", "yes" if one["holds"] else "no", one["seen"])
        for one in layer["properties"]
    )
    yield Table("What keys must hold", columns, rows, r.basis)
    yield _control(r, layer["control"], "times", "caught")
