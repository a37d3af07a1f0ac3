"""What `perfkit layer2` prints: the verdict first, then the thread and its lines, in 80 columns.

It is made of the document that --json prints, so that both say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from layers.evidence.finding import FindingKind
from layers.evidence.result import Result
from layers.evidence.wording import counted, first_few, pct
from layers.layer2_stacks.wording import frame_in, place
from layers.layer2_stacks.words import STANDS_OUT
from perfkit.cli import output
from perfkit.cli.joining import show_joined
from perfkit.cli.layer2_live_view import show_recording
from perfkit.cli.result_view import (
    measured_files,
    show_artifacts,
    show_checks,
    show_headline,
    show_strength,
    show_what_explains,
)

Entry = Mapping[str, Any]
LINES_SHOWN, CAPTURES_SHOWN, THREADS_SHOWN, LOST_SHOWN, LOOKS_SHOWN = 8, 9, 6, 3, 3
WHERE_CHARACTERS, BESIDE_CPU_CHARACTERS, NAME_CHARACTERS, CALLER_CHARACTERS = 38, 29, 24, 50
TIMED = {"on_cpu": "on CPU", "holds_lock": "lock"}
"""What a line holds of the thread's time beside its looks: of a CPU, or of the interpreter's lock alone."""
WAITS_EXPLAINED = 2
"""Lines that wait, whose callers are named: whom a wait serves is not seen on its own line."""
HEADS = {
    "idle": "where it is at all looks (--idle)",
    "active": "where it is on a CPU (no --idle)",
    "gil": "where it holds the interpreter's lock (--gil)",
    "unknown": "where its ticks are (mode not told)",
}


def show_layer2(result: Result) -> None:
    """Print the thread of the verdict, its lines in each mode, the other threads, and the captures."""
    show_headline(result)
    thread: Entry | None = result.sections["thread"]
    scopes: list[Entry] = result.sections["scopes"]
    if thread is not None:
        _show_thread(thread, scopes)
        for scope in (s for s in scopes if s["chosen"]):
            if scope["mode"] != thread["mode"] and scope["smallest_visible"] > STANDS_OUT:
                _show_too_few(scope)
            else:
                _show_lines(scope)
        for suspect in result.sections.get("suspects", []):
            output.paragraph("suspect", f"{suspect['place']}: {suspect['words']}")
        _show_look(result)
        _show_others(thread, scopes)
    _show_captures(result.sections["captures"])
    if "recording" in result.sections:
        show_recording(result.sections["target"], result.sections["recording"])
    _show_ruled_out(result)
    _show_changes(result.sections["comparison"], ("before", "after"))
    _show_changes(result.sections["later"], ("at first", "later"))
    if result.sections["lost"]:
        output.paragraph("lost", first_few(result.sections["lost"], LOST_SHOWN))
    show_joined(result)
    show_checks(result.guards)
    _footer(result)


def _show_thread(thread: Entry, scopes: Sequence[Entry]) -> None:
    output.line()
    output.paragraph("thread", f"{thread['scope']}: {thread['why']}")
    told = [f"waits {_interval(thread['waiting'])}"] if thread["mode"] == "idle" else []
    told += [f"works on a CPU {_interval(thread['on_cpu'])}"] if "on_cpu" in thread else []
    told += [f"holds the lock {_interval(thread['holds_lock'])}"] if "holds_lock" in thread else []
    if "core_wait" in thread:
        wait = thread["core_wait"]
        by = f"the kernel's count, {counted(wait['captures'], 'capture')}"
        told.append(f"waits for a CPU {pct(wait['waiting'])}, on one {pct(wait['on_cpu'])} ({by})")
    if told:
        output.paragraph("its time", "; ".join(told))


def _interval(share: Entry) -> str:
    return f"{pct(share['share'])} {_bounds(share)}"


def _bounds(share: Entry) -> str:
    return f"[{100 * share['low']:.1f}, {100 * share['high']:.1f}]"


def _show_lines(scope: Entry) -> None:
    """The first lines; what share of all samples they would be stands beside their own."""
    leaves = scope["leaves"][:LINES_SHOWN]
    timed = next((name for name in TIMED if any(name in leaf for leaf in leaves)), "")
    beside = bool(timed) and scope["mode"] == "idle"
    time = [TIMED[timed]] if beside else []
    head = [HEADS[scope["mode"]], "share", "95 %", "of all", *time, "waits for"]
    rows = [
        [
            _where(leaf, BESIDE_CPU_CHARACTERS if beside else WHERE_CHARACTERS),
            pct(leaf["share"]),
            _bounds(leaf),
            pct(leaf["of_all"]),
            *([pct(leaf[timed]["share"]) if timed in leaf else "-"] if beside else []),
            leaf.get("wait", ""),
        ]
        for leaf in leaves
    ]
    output.line()
    output.show(output.table(head, rows, right=[1, 3, 4] if beside else [1, 3]))
    captures = sum(1 for n in scope["ticks_by_capture"] if n)
    left = len(scope["leaves"]) + scope["leaves_left_out"] - len(leaves)
    more = f"; {counted(left, 'line')} more (--json)" if left else ""
    seen = f"a line of {100 * scope['smallest_visible']:.2g} % would have been seen"
    n = f"{counted(scope['ticks'], 'tick')}, {counted(captures, 'capture')}"
    output.paragraph("", f"n = {n}; {seen}{more}")
    for leaf in (leaf for leaf in leaves[:WAITS_EXPLAINED] if "wait" in leaf and leaf["callers"]):
        callers = (f"{_caller(one['name'])} {one['n']:,}" for one in leaf["callers"])
        output.paragraph("for", f"{PurePath(leaf['where']).name} is called by {first_few(callers)} (ticks)")


def _show_too_few(scope: Entry) -> None:
    """Of a mode beside the verdict's: a table of single ticks would look like one of shares."""
    least = f"one below {100 * scope['smallest_visible']:.2g} % would not have been seen"
    output.line()
    ticks = counted(scope["ticks"], "tick")
    output.paragraph(scope["mode"], f"{ticks} {HEADS[scope['mode']]}: too few for its lines, {least}")


def _where(leaf: Entry, characters: int = WHERE_CHARACTERS) -> str:
    """The end of a long path: the file and line say more than the folders."""
    return _end_of(place(leaf["where"], leaf["function"], characters), characters)


def _caller(name: str) -> str:
    return _end_of(frame_in(name, room=CALLER_CHARACTERS), CALLER_CHARACTERS)


def _end_of(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"…{text[-characters + 1 :]}"


def _show_others(thread: Entry, scopes: Sequence[Entry]) -> None:
    """Threads that the verdict is not of, in the same mode."""
    others = [s for s in scopes if s["mode"] == thread["mode"] and not s["chosen"]]
    if not others:
        return
    rows = [
        [
            s["scope"],
            f"{s['ticks']:,}",
            pct(s["waiting"]["share"]),
            _where(s["leaves"][0]) if s["leaves"] else "-",
        ]
        for s in others[:THREADS_SHOWN]
    ]
    output.line()
    output.show(output.table(["other threads", "ticks", "waits", "first line"], rows, right=[1, 2]))
    if len(others) > THREADS_SHOWN:
        output.line(f"{counted(len(others) - THREADS_SHOWN, 'thread')} more (--json)")


def _show_captures(captures: Sequence[Entry]) -> None:
    if not captures:
        return
    rows = [
        [
            _end_of(PurePath(c["file"]).name, NAME_CHARACTERS),
            c["mode"],
            f"{c['ticks']:,}",
            f"{c['expected_ticks']:,}" if "expected_ticks" in c else "not told",
            f"{c['samples']:,}",
            f"{c['errors']:,}" if "errors" in c else "-",
            f"{c['largest_lag_s']:.1f} s" if "largest_lag_s" in c else ("no" if "lagged" in c else "-"),
            ", ".join(title.split()[0] for title in c["why_void"]) or "counts",
        ]
        for c in captures[:CAPTURES_SHOWN]
    ]
    head = ["capture", "mode", "ticks", "looks", "samples", "errors", "behind", ""]
    output.line()
    output.show(output.table(head, rows, right=[2, 3, 4, 5, 6]))
    if len(captures) > CAPTURES_SHOWN:
        output.line(f"{counted(len(captures) - CAPTURES_SHOWN, 'capture')} more (--json)")


def _show_look(result: Result) -> None:
    """What is known of the lines that stand out, and what to do about each."""
    about = [f for f in result.findings if f.kind is FindingKind.OBSERVATION and not f.negative]
    if about:
        output.line()
    for finding in about[:LOOKS_SHOWN]:
        output.paragraph("look", f"{finding.statement}. {_capital(finding.recommendation)}")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _show_ruled_out(result: Result) -> None:
    ruled_out = [finding.statement for finding in result.findings if finding.negative]
    if ruled_out:
        output.line()
    for statement in ruled_out:
        output.paragraph("ruled out", statement)


def _show_changes(compared: Entry | None, sides: tuple[str, str]) -> None:
    """The largest changes; a clear one is marked."""
    if compared is None or not compared["lines"]:
        return
    rows = [
        [
            _where(c),
            _interval(c["before"]),
            _interval(c["after"]),
            f"{100 * c['difference']:+.1f}",
            c["steadiness"] if "later" in sides else "clear" if c["clear"] else "",
        ]
        for c in compared["lines"][:LINES_SHOWN]
    ]
    output.line()
    head = [f"{compared['scope']}", *sides, "points", ""]
    output.show(output.table(head, rows, right=[3]))


def _footer(result: Result) -> None:
    output.line()
    show_strength(result)
    if any(f.kind is FindingKind.VERDICT for f in result.findings):
        output.paragraph("shares", "of the thread's own ticks; in brackets their 95 % interval")
    show_artifacts(measured_files(result))
    show_what_explains(result, result.guards)
