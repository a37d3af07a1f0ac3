"""Why and where one device idled: in a sentence, as the timeline of a step, as bars, gap by gap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from layers.evidence.wording import counted, cut_middle, pct, time_text
from layers.layer1_gpu_busy.document_entries import Anatomy
from layers.layer1_gpu_busy.idle_model import Cause, Gap, IdleAnatomy, Place
from layers.layer1_gpu_busy.kernel_names import short_name
from layers.layer1_gpu_busy.model import Steps, Strip
from reports.figure_data import IdleBars, StripFigure
from reports.layer1_subject import Subject
from reports.model import Basis, Block, Figure, Name, Paragraph

TOP_GAPS = 3
SHORT_NAME_CHARACTERS = 55
CAUSES_TOLD = 2
"""Causes in the sentence; the figure has all."""


def idle_blocks(subject: Subject, anatomy: Anatomy) -> Iterator[Block]:
    """How much, why and where in a sentence, and the two figures of it."""
    idle = anatomy.idle
    if idle is not None:
        yield _sentence(subject, idle)
    if anatomy.strip is not None:
        yield timeline(subject, anatomy.strip, anatomy.steps)
    if idle is not None and idle.idle_ns:
        yield idle_figure(subject, idle)


def longest_gaps(subject: Subject, idle: IdleAnatomy) -> Paragraph:
    """The first of the longest gaps, with the operations around each and what the host was in."""
    gaps = list(dict.fromkeys(map(_gap, idle.largest)))[:TOP_GAPS]
    parts = [part for gap in gaps for part in (*gap, "; ")]
    return Paragraph("Longest gaps", tuple(parts[:-1]), _basis(subject, idle))


def chief_causes(idle: IdleAnatomy) -> str:
    """The largest causes with their shares of the idle time."""
    chief = idle.causes[:CAUSES_TOLD]
    return "; ".join(f"{pct(ns / idle.idle_ns)} of it: {cause}" for cause, ns in chief)


def timeline(subject: Subject, strip: Strip, steps: Steps | None) -> Figure:
    """The stretch that is drawn, with what it holds in numbers."""
    idle_ns, length_ns = sum(strip.idle_ns.values()), strip.end_ns - strip.start_ns
    length, gaps = time_text(length_ns), counted(strip.gaps, "gap")
    more = f" (the {len(strip.lanes)} with most)" if strip.streams > len(strip.lanes) else ""
    work = f"n = {counted(strip.operations, 'device operation')} on {counted(strip.streams, 'stream')}{more}"
    idle = f"idle {time_text(idle_ns)} = {pct(idle_ns / length_ns)} of it in {gaps}"
    return Figure(
        name=subject.figure_name("timeline"),
        title=f"Timeline of {cut_middle(strip.step_name or strip.what, SHORT_NAME_CHARACTERS)}",
        about=f"{subject.device.scope}: {length}, {work}; {idle}",
        caption=_strip_caption(strip, sum(step.operations > 0 for step in steps.steps) if steps else 0),
        alternative=f"Timeline of {length}, {idle}; the next figure has the causes over the whole window.",
        data=StripFigure(strip),
        basis=subject.basis(strip.operations, "device operations", "busy and idle time in columns"),
    )


def _strip_caption(strip: Strip, steps: int) -> str:
    """Which stretch it is, and how to read what is narrower than can be drawn."""
    which = f"The one of median length among {steps} steps, until the next begins. " if steps > 1 else ""
    columns = len(strip.lanes[0].busy_ns)
    width = time_text((strip.end_ns - strip.start_ns) / columns)
    read = f"Height is the busy or idle share of each {width} (1/{columns} of the width)"
    if not strip.narrow_gaps:
        return f"{which}{read}."
    narrow = f"{strip.narrow_gaps:,} of the gaps are shorter, together {time_text(strip.narrow_gaps_ns)}"
    return f"{which}{read}: {narrow}, and show as height, not one by one."


def idle_figure(subject: Subject, idle: IdleAnatomy) -> Figure:
    """Both splits of the idle time of the whole window."""
    causes, places = idle.causes, idle.places
    of_what = f"{time_text(idle.idle_ns)} idle in n = {counted(idle.gaps, 'gap')}"
    return Figure(
        name=subject.figure_name("idle"),
        title="Where the idle time lies",
        about=f"{subject.device.scope}: {of_what} of a window of {subject.window}",
        caption="Shares are of this idle time. Why: what the thread that launched next was doing.",
        alternative=f"Idle time: {causes[0][0]} comes first with {pct(causes[0][1] / idle.idle_ns)}.",
        data=IdleBars(idle.idle_ns, causes, places),
        basis=_basis(subject, idle),
    )


def _sentence(subject: Subject, idle: IdleAnatomy) -> Paragraph:
    if not idle.idle_ns:
        return Paragraph("Idle time", "none inside the device's window")
    share = pct(idle.idle_ns / subject.window_ns)
    text = f"{time_text(idle.idle_ns)} = {share} of the window. Why: {_split(idle, idle.causes)}. "
    return Paragraph("Idle time", f"{text}Where: {_split(idle, idle.places)}", _basis(subject, idle))


def _split(idle: IdleAnatomy, parts: Iterable[tuple[Cause | Place, int]]) -> str:
    return "; ".join(f"{pct(ns / idle.idle_ns)} ({time_text(ns)}) {word}" for word, ns in parts)


def _basis(subject: Subject, idle: IdleAnatomy) -> Basis:
    return subject.basis(idle.gaps, "gaps", "time in which no stream of the device was busy")


def _gap(gap: Gap) -> tuple[str | Name, ...]:
    def name(text: str) -> Name | str:
        return Name(cut_middle(text, SHORT_NAME_CHARACTERS)) if text else "the end of the window"

    host = gap.host_op or gap.host_call
    where = (", host in ", name(host)) if host else ()
    between = (" between ", name(short_name(gap.after_op)), " and ", name(short_name(gap.before_op)))
    return (time_text(gap.end_ns - gap.start_ns), *between, f" ({gap.cause}", *where, ")")
