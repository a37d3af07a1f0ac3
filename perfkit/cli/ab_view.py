"""What `perfkit ab` prints: the verdict first, then pairs, floors and gates, in 80 columns.

It is made of the document that --json prints, so that both say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from layers.evidence.finding import FindingKind
from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from layers.evidence.wording import counted, first_few, pct
from layers.layer4_ab.conditions import Condition
from layers.layer4_ab.numbers import pct_text
from perfkit.cli import output
from perfkit.cli.result_view import number, show_checks, show_footer, show_headline
from perfkit.cli.story_view import is_known, show_story

Entry = Mapping[str, Any]
PAIRS_SHOWN, METRICS_SHOWN, STAGES_SHOWN, LOST_SHOWN = 12, 12, 8, 3
NAME_CHARACTERS = 20
"""Of a start's name, from its end: the beginning is the folder that all share."""
AXIS_WIDTH = 31
LEAST_REACH = 0.001
"""Of the axis either way, where nothing differs at all."""
MARKS = {"better": "better", "worse": "WORSE", "equivalent": "equivalent", "open": "-"}


def show_ab(result: Result) -> None:
    """Print the result of an A/B."""
    show_headline(result)
    _show_experiment(result)
    primary: Entry | None = result.sections["primary"]
    if primary is not None and result.verdict.exit_code is not Exit.INVALID:
        _show_pairs(result, primary)
        _show_yardsticks(result, primary)
        _show_metrics(result)
    _show_stages(result)
    output.paragraph("looked at", "; ".join(Condition(**one).text for one in result.sections["conditions"]))
    _show_differences(result)
    _show_treatment(result)
    _show_gates(result)
    for finding in result.findings:
        if finding.kind is FindingKind.OBSERVATION:
            output.paragraph("seen", finding.statement)
    if (story := result.sections.get("story")) is not None and is_known(story):
        output.line()
        show_story(story)
    if result.sections["lost"]:
        output.paragraph("lost", first_few(result.sections["lost"], LOST_SHOWN))
    show_checks(result.guards)
    show_footer(result, result.guards)


def _show_experiment(result: Result) -> None:
    """How the runs were made, where perfkit made them."""
    told: Entry | None = result.sections.get("experiment")
    if told is None:
        return
    output.line()
    how = "a fresh server for each run"
    if result.sections["hot"]:
        how = "a fresh server for each pair, its settings changed between the two runs (--hot)"
    output.paragraph("order", f"{told['order'].upper()}, {how}")
    if told["ended_early"]:
        output.paragraph("ended", f"{told['ended_early']}: perfkit ab --resume goes on")


def _show_pairs(result: Result, primary: Entry) -> None:
    pairs = [p for p in result.sections["pairs"] if None not in (p["a_value"], p["b_value"])]
    short = _short_names([name for pair in pairs for name in (pair["a"], pair["b"])])
    rows = [[str(n), *_pair(pair, short)] for n, pair in enumerate(pairs, 1)]
    head = ["pair", "start of A", primary["unit"], "start of B", primary["unit"], "B/A", "first"]
    output.line()
    output.show(output.table(head, rows[:PAIRS_SHOWN], right=(0, 2, 4, 5)))
    if len(rows) > PAIRS_SHOWN:
        output.line(f"and {counted(len(rows) - PAIRS_SHOWN, 'pair')} more (--json)")
    runs: list[Entry] = result.sections["runs"]
    kept = sum(not run["excluded"] for run in runs)
    output.paragraph("runs", f"{kept} of {len(runs)} kept, {counted(primary['n_starts'], 'start')}")


def _pair(pair: Entry, short: Mapping[str, str]) -> list[str]:
    a, b = pair["a_value"], pair["b_value"]
    first = {True: "A", False: "B", None: "?"}[pair["a_first"]]
    return [short[pair["a"]], number(a), short[pair["b"]], number(b), _change(b / a), first]


def _short_names(names: Sequence[str]) -> dict[str, str]:
    """Names without the folders, or the file, that all of them begin with."""
    first, last = min(names, default=""), max(names, default="")
    shared = "".join(takewhile(str, (x if x == y else "" for x, y in zip(first, last, strict=False))))
    begin = 1 + max(shared.rfind("/"), shared.rfind(" ") if first != last else -1)
    cut = {name: name[begin:] for name in names}
    return {
        name: text if len(text) <= NAME_CHARACTERS else f"…{text[1 - NAME_CHARACTERS :]}"
        for name, text in cut.items()
    }


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.2f} %"


def _show_yardsticks(result: Result, primary: Entry) -> None:
    if primary["low"] is None:
        return
    rows = [
        ["interval (95 %)", f"{_change(primary['low'])} to {_change(primary['high'])}", "of the mean ratio"],
        ["A/A floor", f"±{pct_text(primary['floor_pct'])}", _floors(result)],
    ]
    if primary["mde_pct"] is not None:
        rows.append(["detectable", f"±{pct_text(primary['mde_pct'])}", "in 4 of 5 experiments like this"])
    margin = result.sections["question"]["margin"]
    if margin is not None:
        rows.append(["margin", f"±{100 * margin:g} %", "does not matter, as declared"])
    output.line()
    output.show(output.table(["yardstick", "value", ""], rows))
    output.paragraph("", forest(primary, margin))


def _floors(result: Result) -> str:
    told = [f"{floor['kind']} of {floor['runs']}" for floor in result.sections["floors"]]
    return f"highest of repeats{', ' * bool(told)}{', '.join(told)}"


def forest(primary: Entry, margin: float | None) -> str:
    """The interval as a bar over an axis: | no difference, ( ) the floor, [ ] the margin, * the ratio."""
    low, high, floor = primary["low"] - 1, primary["high"] - 1, primary["floor_pct"] / 100
    reach = 1.1 * max(abs(low), abs(high), floor, margin or 0.0) or LEAST_REACH
    cells = [" "] * AXIS_WIDTH

    def at(value: float) -> int:
        place: float = (value / reach + 1) / 2 * (AXIS_WIDTH - 1)
        return round(place)

    cells[at(low) : at(high) + 1] = "-" * (at(high) - at(low) + 1)
    if margin is not None:
        cells[at(-margin)], cells[at(margin)] = "[", "]"
    cells[at(-floor)], cells[at(floor)] = "(", ")"
    cells[at(0.0)] = "|"
    cells[at(primary["ratio"] - 1)] = "*"
    drawn = "".join(cells).replace(" ", "·")
    return f"{-100 * reach:+.1f} % {drawn} {100 * reach:+.1f} %"


def _show_metrics(result: Result) -> None:
    metrics: list[Entry] = result.sections["metrics"]
    if not metrics:
        return
    ordered = sorted(metrics, key=lambda m: m["call"] == "open")
    rows = [
        [m["metric"], m["load"], str(m["n_pairs"]), _change(m["ratio"]), _p(m), MARKS[m["call"]]]
        for m in ordered[:METRICS_SHOWN]
    ]
    output.line()
    output.show(output.table(["beside it", "load", "pairs", "B/A", "p", "after Holm"], rows, right=(2, 3, 4)))
    if len(metrics) > METRICS_SHOWN:
        output.line(f"and {counted(len(metrics) - METRICS_SHOWN, 'metric')} more (--json)")


def _show_stages(result: Result) -> None:
    """Where the change took place, by the servers' own account."""
    stages: list[Entry] = result.sections["stages"]
    if not stages:
        return
    rows = [
        [s["stage"], number(s["a_ms"]), number(s["b_ms"]), _share(s["a_share"])]
        for s in stages[:STAGES_SHOWN]
    ]
    output.line()
    output.show(output.table(["stage", "A, ms", "B, ms", "of A's time"], rows, right=(1, 2, 3)))


def _share(share: float | None) -> str:
    return "" if share is None else pct(share)


def _p(metric: Entry) -> str:
    p = metric["p_adjusted"]
    return "" if p is None else f"{p:.3f}"


def _show_differences(result: Result) -> None:
    """In what the arms differ, as their recordings tell."""
    differences: list[Entry] = result.sections["differences"]
    if differences:
        told = first_few(f"{one['name']}: {one['a']} → {one['b']}" for one in differences)
        output.line()
        output.paragraph("differs", told)


def _show_treatment(result: Result) -> None:
    treatment, unblocked = result.sections["treatment"], result.sections["unblocked"]
    if treatment["evidence"]:
        output.paragraph("treatment", _counts(treatment["evidence"]))
    if unblocked:
        output.paragraph("unblocked", _counts(unblocked))
    for one in result.sections["suspects"]:
        output.paragraph("suspect", one["words"])
    for one in result.sections["blocks"]:
        output.paragraph("blocks", one["words"])


def _counts(counts: Sequence[Entry]) -> str:
    return first_few(f"{c['name']}: {c['a']:,.10g} → {c['b']:,.10g} ({c['where']})" for c in counts)


def _show_gates(result: Result) -> None:
    rows = [[name, gate["state"], gate["because"]] for name, gate in result.sections["gates"].items()]
    rows.append(["safe", "yes" if result.sections["safe"] else "not shown", "it takes all three"])
    output.line()
    output.show(output.table(["gate", "state", "because"], rows))
