"""Layer 2 as a section of a report: the thread of the verdict and its lines, other threads, captures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.evidence.wording import counted, first_few, pct
from layers.layer1_gpu_busy.scopes import short_paths
from layers.layer2_stacks.wording import frame_in, short_path
from layers.layer2_stacks.words import STANDS_OUT
from reports.model import Basis, Block, Cell, Column, Computed, Heading, Layer, Name, Paragraph, Table
from reports.stacks_document import Entry, StackRun, stacks_strength
from reports.stacks_figure import figure_stacks, kept_pictures

METHOD = (
    "A tick is one look of the profiler at one thread. A share is of the thread's own ticks, with its 95 % "
    "interval: of all looks in captures with --idle, of those that found it running (or waiting for a CPU) "
    "in captures without, never pooled. Captures that fell behind, or measured something else, are left out."
)
LINES_SHOWN, THREADS_SHOWN, CHANGES_SHOWN = 15, 12, 10
NOT_TOLD = "not told"
TITLES = {
    "idle": "Where it is at all looks (--idle)",
    "active": "Where it is on a CPU (no --idle)",
    "gil": "Where it holds the interpreter's lock (--gil)",
    "unknown": "Where its ticks are (mode not told)",
}
TIMED = {"on_cpu": "on a CPU", "holds_lock": "with the lock"}
"""What a line holds of the thread's time beside its looks: of a CPU, or of the interpreter's lock alone."""
SHARE = (Column("share", numeric=True), Column("95 % interval"))


def stacks_layer(title: str, question: str, runs: Sequence[StackRun]) -> Layer:
    """All recorded runs that count, the latest first."""
    blocks = [block for run in reversed(runs) for block in _run(run)]
    return Layer(title, question, "", METHOD, tuple(blocks), "; ".join(_strength(r, len(runs)) for r in runs))


def _strength(r: StackRun, runs: int) -> str:
    strength, rule = stacks_strength(r)
    whose = f"run {r.run.id}: " if runs > 1 else ""
    return f"{whose}{strength}: {rule}" if strength else f"{whose}none: a void result has no strength"


def _run(r: StackRun) -> Iterator[Block]:
    yield Heading(f"Run {r.run.id}: {r.title}")
    thread = r.thread
    if thread is None:
        why = str(r.run.document["verdict"]["because"])
        yield Paragraph("No stacks", why, Computed(f"perfkit layer2, run {r.run.id}; no capture counts"))
    else:
        yield _thread(r, thread)
        enough = [scope for scope in r.chosen if not _too_few(scope, thread)]
        if figure := figure_stacks(enough, r.basis(enough), f"run{r.run.id}-stacks"):
            yield figure
        yield from kept_pictures(r.run.document, r.basis(r.chosen), f"run{r.run.id}")
        yield from (_lines(r, scope) if scope in enough else _few(r, scope) for scope in r.chosen)
        yield from _others(r)
        yield from _changes(r)
    yield from _captures(r)
    if lost := r.run.document["lost"]:
        yield Paragraph("Lost", first_few(lost), Computed(f"perfkit layer2, run {r.run.id}"))


def _thread(r: StackRun, thread: Entry) -> Paragraph:
    told = [
        f"{words} {pct(thread[name]['share'])} {_interval(thread[name])}"
        for name, words in (
            ("waiting", "it waits for"),
            ("on_cpu", "it works on a CPU for"),
            ("holds_lock", "it holds the interpreter's lock for"),
        )
        if name in thread and (name != "waiting" or thread["mode"] == "idle")
    ]
    time = f": {', '.join(told)} of its time" if told else ""
    seen = f"{100 * thread['smallest_visible']:.2g} %"
    others = f"{counted(thread['others'], 'other thread')} recorded beside it"
    visible = f"A line of {seen} would have been seen."
    text = (Name(thread["scope"]), f"{time}. Chosen since {thread['why']}; {others}. {visible}")
    return Paragraph("Thread", text, r.basis(r.chosen))


def _interval(share: Entry) -> str:
    return f"[{100 * share['low']:.1f}, {100 * share['high']:.1f}]"


def _too_few(scope: Entry, thread: Entry) -> bool:
    """Of a mode beside the verdict's: a table of single ticks would look like one of shares."""
    return bool(scope["mode"] != thread["mode"] and scope["smallest_visible"] > STANDS_OUT)


def _few(r: StackRun, scope: Entry) -> Paragraph:
    least = f"one below {100 * scope['smallest_visible']:.2g} % would not have been seen"
    said = f"{counted(scope['ticks'], 'tick')}, too few for shares of its lines: {least}."
    return Paragraph(TITLES[scope["mode"]], said, r.basis([scope]))


def _lines(r: StackRun, scope: Entry) -> Table:
    shown = scope["leaves"][:LINES_SHOWN]
    held = next((name for name in TIMED if any(name in leaf for leaf in shown)), "")
    timed = held if scope["mode"] == "idle" else ""
    columns = (
        *(Column("line"), Column("function"), *SHARE, Column("n", "ticks", numeric=True)),
        *(Column("of all samples", numeric=True), *([Column(TIMED[timed], numeric=True)] if timed else [])),
        *(Column("waits for"), Column("mostly called from")),
    )
    left = len(scope["leaves"]) + scope["leaves_left_out"] - len(shown)
    more = f"; {counted(left, 'line')} more in the document" if left else ""
    rows = tuple(_line(leaf, timed) for leaf in shown)
    return Table(f"{TITLES[scope['mode']]}{more}", columns, rows, r.basis([scope]))


def _line(leaf: Entry, timed: str) -> tuple[Cell, ...]:
    held = [pct(leaf[timed]["share"]) if timed in leaf else "none seen"] if timed else []
    callers = leaf.get("callers", [])
    return (
        *(Name(short_path(leaf["where"])), Name(leaf["function"]), pct(leaf["share"]), _interval(leaf)),
        *(f"{leaf['n']:,}", pct(leaf["of_all"]), *held, leaf.get("wait", "")),
        Name(frame_in(callers[0]["name"])) if callers else "",
    )


def _others(r: StackRun) -> Iterator[Table]:
    if not r.others:
        return
    shown = r.others[:THREADS_SHOWN]
    columns = (
        Column("thread"),
        Column("n", "ticks", numeric=True),
        Column("waits", numeric=True),
        Column("first line"),
    )
    rows = tuple(
        (
            Name(s["scope"]),
            f"{s['ticks']:,}",
            pct(s["waiting"]["share"]),
            Name(short_path(s["leaves"][0]["where"])) if s["leaves"] else "no frame",
        )
        for s in shown
    )
    more = f", {len(r.others) - len(shown)} more left out" if len(r.others) > len(shown) else ""
    yield Table(f"Other threads{more}", columns, rows, r.basis(shown))


def _changes(r: StackRun) -> Iterator[Block]:
    """Beside captures from before a change, and beside later ones."""
    for name, title, sides in (
        ("comparison", "Compared with captures from before", ("before", "after")),
        ("later", "Later captures", ("at first", "later")),
    ):
        compared = r.run.document.get(name)
        if compared is not None and compared["lines"]:
            yield _changed(r, compared, title, sides)
        elif compared is not None:
            why = "The two sides cannot be compared; the checks that fired say why."
            yield Paragraph(title, why)


def _changed(r: StackRun, compared: Entry, title: str, sides: tuple[str, str]) -> Table:
    columns = (
        *(Column("line"), Column("function"), *(Column(side) for side in sides)),
        *(Column("change", "points", numeric=True), Column("95 % interval"), Column("clear")),
    )
    rows = tuple(
        (
            *(Name(short_path(c["where"])), Name(c["function"])),
            *(f"{pct(c[side]['share'])} {_interval(c[side])}" for side in ("before", "after")),
            *(f"{100 * c['difference']:+.1f}", _interval(c), "yes" if c["clear"] else "no"),
        )
        for c in compared["lines"][:CHANGES_SHOWN]
    )
    both = [compared["before"], compared["after"]]
    return Table(title, columns, rows, r.basis(both))


def _captures(r: StackRun) -> Iterator[Table]:
    if not r.captures:
        return
    columns = (
        *(Column("capture"), Column("mode"), Column("n", "ticks", numeric=True)),
        *(Column("looks", "ticks", numeric=True), Column("samples", "samples", numeric=True)),
        *(Column("failed reads", "reads", numeric=True), Column("behind"), Column("counts")),
    )
    names = short_paths(list(dict.fromkeys(str(c["file"]) for c in r.captures)))
    rows = tuple(_capture(c, names[str(c["file"])]) for c in r.captures)
    basis = Basis(len(r.captures), "captures", "py-spy's files and what it said of them", r.artifacts)
    yield Table("Captures", columns, rows, basis)


def _capture(c: Entry, name: str) -> tuple[Cell, ...]:
    behind = f"{c['largest_lag_s']:.2f} s" if "largest_lag_s" in c else "no" if "lagged" in c else NOT_TOLD
    return (
        *(Name(name), f"{c['mode']} ({c['mode_from']})", f"{c['ticks']:,}"),
        f"{c['expected_ticks']:,}" if "expected_ticks" in c else NOT_TOLD,
        f"{c['samples']:,}",
        f"{c['errors']:,}" if "errors" in c else NOT_TOLD,
        behind,
        f"left out: {', '.join(c['why_void'])}" if c["void"] else "yes",
    )
