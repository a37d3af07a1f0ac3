"""`perfkit preflight --watch`: a spot check of the machine for as long as something else runs.

It ends after its seconds, or with Ctrl-C (or another signal of `ending`). What was recorded is judged and
kept either way. Ctrl-C is how a watch without seconds ends, so its exit code is the verdict's; one with
seconds was then cut short, and exits 130.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from layers.evidence.result import Result
from layers.evidence.wording import counted, pct
from parsers.errors import UsageError
from perfkit.cli import output
from perfkit.cli.ending import told_to_end
from perfkit.cli.messages import say
from perfkit.cli.record import record_result
from perfkit.cli.result_view import show_checks, show_headline

if TYPE_CHECKING:
    from layers.preflight.watch_guards import WatchFacts

MAX_SECONDS = 7 * 24 * 3600
"""A week of looks fills a few GB on eight GPUs; nobody means more."""
SHOWN = 10


def watch(
    seconds: float | None,
    ours: tuple[Sequence[int], str | None],
    gpu_index: int | None,
    investigation: Path,
    *,
    keep: bool,
    as_json: bool,
) -> int:
    """Watch, record and show; the exit code. `ours` are process ids and a server's address."""
    from layers.collectors.servers import service_roots
    from layers.collectors.watching import Watching
    from layers.evidence.store import ARTIFACTS
    from layers.preflight.machine import sees_host_pids
    from layers.preflight.watch_judge import judge_watch, read_watch

    _check(seconds)
    started = datetime.now(UTC)
    roots = service_roots(*ours) or _running_launches()
    with ExitStack() as stack:
        folder = investigation / ARTIFACTS
        if not keep:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        told = stack.enter_context(told_to_end())
        with Watching(folder, roots) as watching:
            _announce(seconds, roots, watching.problems)
            told.wait(seconds)
        # Without processes of ours every use is somebody else's; when ours load the card is not known here.
        windows = None if roots else ()
        cards = [] if gpu_index is None else [gpu_index]
        facts = read_watch(watching.watched, windows, cards, sees_host_pids())
    if gpu_index is not None and gpu_index not in facts.seen:
        raise UsageError(f"--gpu-index {gpu_index}: no such GPU was watched; there are {list(facts.seen)}")
    result = judge_watch(facts, cut_short=told.is_set() and seconds is not None)
    if keep:
        record_result(investigation, result, started, [r.artifact for r in facts.watched.recordings])
    return output.finish(result, as_json=as_json, show=lambda r: _show(r, facts))


def _check(seconds: float | None) -> None:
    if seconds is not None and not 0 < seconds <= MAX_SECONDS:
        raise UsageError(f"--watch {seconds:g}: give a time above 0 and up to {MAX_SECONDS} s, or none")


def _running_launches() -> list[str]:
    """What a perfkit that still runs has launched, and that perfkit itself (its load client is ours too)."""
    from layers.collectors.gpu.inventory_model import Inventory
    from layers.collectors.processes import launcher_of
    from layers.preflight.collect import find_families
    from layers.preflight.process_tree import Kind

    nobody_listed = Inventory(None, None, ())
    tags = [one.key for one in find_families(nobody_listed) if one.kind is Kind.RUNNING]
    return [root for tag in tags for root in (tag, str(launcher_of(tag).pid))]


def _announce(seconds: float | None, roots: Sequence[str], problems: Sequence[str]) -> None:
    for problem in problems:
        say(f"not watched: {problem}")
    if not roots:
        say("no process is named as ours (--pid, --server): every use counts as somebody else's")
    say(f"watching {'until Ctrl-C' if seconds is None else f'for {seconds:g} s'}")


def _show(result: Result, facts: WatchFacts) -> None:
    show_headline(result)
    rows = [[m.scope, m.name, _value(m.value, m.unit), f"{m.n:,}"] for m in result.measurements]
    if rows:
        output.line()
        output.show(output.table(["", "", "value", "looks"], rows, right=[2, 3]))
    _show_stretches(facts)
    show_checks(result.guards)
    output.line()
    for recording in facts.watched.recordings:
        share = recording.cost.cpu_share
        used = "" if share is None else f", {pct(share)} of one core"
        output.paragraph("sampler", f"{recording.start.source}{used}")


def _show_stretches(facts: WatchFacts) -> None:
    from layers.preflight.watch_guards import stretch_text

    for one in facts.stretches[:SHOWN]:
        output.paragraph("touched", stretch_text(one))
    if len(facts.stretches) > SHOWN:
        output.line(f"and {counted(len(facts.stretches) - SHOWN, 'more stretch')}: --json lists all")


def _value(value: float, unit: str) -> str:
    return f"{value:.1f} %" if unit == "%" else pct(value)
