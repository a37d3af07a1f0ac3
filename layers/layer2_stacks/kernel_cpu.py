"""The kernel's own count of a thread's time on a CPU, beside what stacks without --idle say.

Independent of the profiler: schedstat counts nanoseconds, py-spy looks now and then. Both take time that a
thread waits for a CPU as its running time.
"""

from __future__ import annotations

from layers.layer2_stacks.facts import CaptureFacts, Facts
from layers.layer2_stacks.model import Mode
from layers.layer2_stacks.recording import ThreadCpu


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


def _threads_of(capture: CaptureFacts, facts: Facts) -> list[ThreadCpu]:
    recording, scope = capture.capture.recording, facts.reading.scopes.get(Mode.ACTIVE)
    if recording is None or scope is None:
        return []
    return [cpu for cpu in recording.threads if str(cpu.thread_id) in scope.scope.thread_ids]
