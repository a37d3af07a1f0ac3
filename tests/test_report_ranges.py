"""Named ranges in a report: a range's own work, and apart from it what other threads launched meanwhile."""

from __future__ import annotations

from layers.layer1_gpu_busy.document_entries import Anatomy, DeviceEntry
from layers.layer1_gpu_busy.model import PhaseRow
from reports.layer1_details import detail_blocks
from reports.layer1_subject import Subject
from reports.model import Paragraph
from tests.evidence_builders import TRACE

DEVICE = DeviceEntry(method="chrome-trace", source=TRACE.path, device=0, events=9)


def said(*phases: PhaseRow) -> str:
    [block] = detail_blocks(Subject(DEVICE, TRACE, 1), Anatomy("device 0", phases=phases))
    assert isinstance(block, Paragraph)
    return block.plain


def test_what_other_threads_launched_is_not_taken_for_nothing() -> None:
    backward = PhaseRow("backward", 6, 34.5e6, 206_800_000, 46_000, 12, 200_600_000, 6_126)
    assert said(backward) == (
        "backward n = 6, host 207 ms, device busy 46 µs with 12 operations of its own thread; other threads "
        "launched 6,126 meanwhile, busy 201 ms"
    )


def test_a_range_that_no_other_thread_worked_beside_says_nothing_of_them() -> None:
    forward = PhaseRow("forward", 2, 1e6, 2_000_000, 1_500_000, 40)
    assert said(forward) == "forward n = 2, host 2 ms, device busy 1.5 ms with 40 operations"
