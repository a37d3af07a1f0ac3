"""The kernel's own count of a thread's time on a CPU, beside what stacks without --idle say.

Independent of the profiler: schedstat counts nanoseconds, py-spy looks now and then. Both take time that a
thread waits for a CPU as its running time.
"""

from __future__ import annotations

from dataclasses import dataclass

from layers.collectors.stacks.recording import Mode, ThreadCpu
from layers.layer2_stacks.facts import CaptureFacts, Facts


def running_share(facts: Facts) -> float | None:
    """Ticks of the thread without --idle over the looks; None where their number is not told."""
    scope = facts.reading.scopes.get(Mode.ACTIVE)
    looks = [c.told.expected_ticks for c in facts.of_mode(Mode.ACTIVE)]
    if scope is None or not looks or None in looks or not any(looks):
        return None
    return scope.total_ticks / sum(n for n in looks if n)


def kernel_share(facts: Facts) -> float | None:
    """Of the same captures, by schedstat; None where nobody read it."""
    found = [cpu for c in facts.of_mode(Mode.ACTIVE) for cpu in _threads_of(c, facts)]
    window_s = sum(cpu.window_s for cpu in found)
    return sum(cpu.on_cpu_s + cpu.waiting_s for cpu in found) / window_s if window_s else None


@dataclass(frozen=True, slots=True)
class CoreWait:
    """What the thread wanted of a CPU, as shares of the time of all captures: had, and waited for."""

    on_cpu: float
    waiting: float
    captures: int


def core_wait(facts: Facts) -> CoreWait | None:
    """Of the thread, over the captures of every mode; None where nobody read the kernel's count."""
    ids = {one for scope in facts.reading.scopes.values() for one in scope.scope.thread_ids}
    by_capture = [[cpu for cpu in _recorded(c) if str(cpu.thread_id) in ids] for c in facts.captures]
    found = [cpu for threads in by_capture for cpu in threads]
    window_s = sum(cpu.window_s for cpu in found)
    if not window_s:
        return None
    had, waited = sum(cpu.on_cpu_s for cpu in found), sum(cpu.waiting_s for cpu in found)
    return CoreWait(had / window_s, waited / window_s, sum(map(bool, by_capture)))


def _recorded(capture: CaptureFacts) -> tuple[ThreadCpu, ...]:
    recording = capture.capture.recording
    return recording.threads if recording is not None else ()


def _threads_of(capture: CaptureFacts, facts: Facts) -> list[ThreadCpu]:
    scope = facts.reading.scopes.get(Mode.ACTIVE)
    if scope is None:
        return []
    return [cpu for cpu in _recorded(capture) if str(cpu.thread_id) in scope.scope.thread_ids]
