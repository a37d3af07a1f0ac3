"""What a run's verdict comes down to: what its least busy device waited for, and which rank the others do."""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.wording import pct
from layers.layer1_gpu_busy.idle_model import IdleAnatomy
from layers.layer1_gpu_busy.model import Overlap
from layers.layer1_gpu_busy.ranks import RankTable
from reports.layer1_idle import chief_causes
from reports.layer1_section import Layer1Run, anatomy_of


def chiefly(r: Layer1Run) -> str:
    """Idle time with its chief causes, exposed communication, the straggler; empty: nobody looked inside."""
    about = r.subject
    anatomy = anatomy_of(r.document, about) if about is not None else None
    if about is None or anatomy is None or not about.window_ns:
        return ""
    parts = [*_idle(anatomy.idle, about.window_ns), *_communication(anatomy.overlap, about.window_ns)]
    whose = f"on {about.device.scope}, the least busy: " if len(r.document.traced) > 1 else ""
    inside = [f"{whose}{'; '.join(parts)}"] if parts else []
    return ". ".join([*inside, *map(_straggler, filter(_suspected, r.document.ranks))])


def _idle(idle: IdleAnatomy | None, window_ns: float) -> Iterator[str]:
    if idle is not None and idle.idle_ns:
        yield f"idle {pct(idle.idle_ns / window_ns)} of the window ({chief_causes(idle)})"


def _communication(overlap: Overlap | None, window_ns: float) -> Iterator[str]:
    if overlap is not None:
        share = pct(overlap.exposed_communication_ns / window_ns)
        yield f"communication that no computation hides {share} of the window"


def _suspected(ranks: RankTable) -> bool:
    return ranks.suspect is not None


def _straggler(ranks: RankTable) -> str:
    """Who keeps the others of a run waiting; how sure that is stands with the table of ranks."""
    assert ranks.suspect is not None
    likely = "" if ranks.straggler is not None else "most likely "
    of_run = f" of {ranks.name}" if ranks.name else ""
    return f"{likely}rank {ranks.suspect.rank} keeps the others{of_run} waiting".capitalize()
