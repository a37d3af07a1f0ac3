"""How `perfkit preflight` looks in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from layers.evidence.result import Result
from layers.evidence.wording import counted, pct
from layers.preflight.gpu_choice import GIB, GpuState
from layers.preflight.model import PreflightFacts
from layers.preflight.process_tree import Family
from perfkit.cli import output
from perfkit.cli.result_view import show_checks, show_headline

if TYPE_CHECKING:
    from layers.preflight.clean import Outcome

PIDS_SHOWN = 6
DIFFERENCES_SHOWN = 40
VALUE_CHARACTERS = 40


def show_preflight(result: Result, facts: PreflightFacts, cleaned: Outcome | None) -> None:
    """Verdict, cards, processes, checks, and where the rest is."""
    show_headline(result)
    if cleaned is not None:
        output.line()
        _show_cleaned(cleaned)
    if facts.gpus:
        output.line()
        rows = [_gpu_row(state, facts) for state in facts.gpus]
        head = ["gpu", "name", "util median", "max", "n", "memory GiB", ""]
        output.show(output.table(head, rows, right=[2, 3, 4, 5]))
    for family in facts.families:
        output.paragraph(str(family.kind), family_text(family))
    show_checks(result.guards)
    output.line()
    _show_baseline(facts)


def family_text(family: Family) -> str:
    """Who they are, where, and why they are listed; without command lines, which may hold secrets."""
    if not family.members:
        return family.why
    names = ", ".join(f"{p.pid} {p.name}" for p in family.members[:PIDS_SHOWN])
    more = f" and {len(family.members) - PIDS_SHOWN} more" if len(family.members) > PIDS_SHOWN else ""
    on_gpu = f", {counted(len(family.on_gpu), 'process')} on a GPU" if family.on_gpu else ""
    groups = ", ".join(map(str, sorted({p.group for p in family.members})))
    return f"{names}{more} (groups {groups}){on_gpu}: {family.why}"


def show_differences(result: Result) -> None:
    """What is not the same, undeclared differences first."""
    show_headline(result)
    differences: list[dict[str, Any]] = sorted(result.sections["differences"], key=lambda d: d["declared"])
    if differences:
        output.line()
        rows = [_difference_row(one) for one in differences[:DIFFERENCES_SHOWN]]
        output.show(output.table(["fact", "before", "after", ""], rows))
    if len(differences) > DIFFERENCES_SHOWN:
        output.line(f"and {len(differences) - DIFFERENCES_SHOWN} more: --json lists all")
    show_checks(result.guards)


def _difference_row(one: dict[str, Any]) -> list[str]:
    values = [str(one[side])[:VALUE_CHARACTERS] for side in ("before", "after")]
    return [one["name"], *values, "declared" if one["declared"] else ""]


def _gpu_row(state: GpuState, facts: PreflightFacts) -> list[str]:
    chosen = facts.chosen is not None and facts.chosen.gpu.index == state.gpu.index
    verdict = "recommended" if chosen else str(state.state)
    memory = "not known"
    if state.memory_max_bytes is not None and state.gpu.memory_total_bytes:
        memory = f"{state.memory_max_bytes / GIB:.1f} of {state.gpu.memory_total_bytes / GIB:.0f}"
    util = [_percent(state.util_median_pct), _percent(state.util_max_pct)]
    return [str(state.gpu.index), state.gpu.name, *util, f"{state.samples:,}", memory, verdict]


def _percent(value: float | None) -> str:
    return "not known" if value is None else f"{value:.0f} %"


def _show_baseline(facts: PreflightFacts) -> None:
    software = facts.software
    if software.environment is not None:
        packages = counted(len(software.environment.packages), "package")
        where = software.environment.executable
        output.paragraph(
            "python", f"{software.environment.version}, {packages} ({where}; --python names another)"
        )
    else:
        output.paragraph("python", software.problem)
    for one in software.editables:
        runs = one.checkout.label if one.checkout else one.problem
        output.paragraph("editable", f"{one.package.name} {one.package.version} runs {runs}")
    unavailable = sum(len(section.unavailable) for section in facts.snapshot.sections)
    known = sum(len(section.facts) for section in facts.snapshot.sections)
    output.paragraph("baseline", f"{counted(known, 'fact')}, {unavailable:,} not to be had (--json has all)")
    for recording in facts.recordings:
        share = recording.cost.cpu_share
        if share is not None:
            output.paragraph("sampler", f"{recording.start.source}, {pct(share)} of one core")


def _show_cleaned(cleaned: Outcome) -> None:
    for one in cleaned.cleaned:
        stopped = one.stopped
        what = f"{len(stopped.asked)} ended when asked, {len(stopped.killed)} killed"
        left = f", {_ids(stopped.left)} still there" if stopped.left else ""
        output.paragraph("stopped", f"{what}{left}: {one.family.why}")
    if not cleaned.cleaned:
        output.paragraph(
            "stopped", "nothing: no process of an earlier launch was left, or none was confirmed"
        )
    for uuid, freed in cleaned.freed_bytes.items():
        output.paragraph("freed", f"{uuid}: {freed / GIB:.1f} GiB after {cleaned.release.waited_s:.0f} s")
    for uuid, held in cleaned.release.held_bytes.items():
        output.paragraph("not freed", f"{uuid}: {held / GIB:.1f} GiB still held")


def _ids(pids: Sequence[int]) -> str:
    return ", ".join(map(str, pids))
