"""Waits per second in the C library, of the threads that launch device work."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.layer1_gpu_busy.nsys_analysis import analyse_export
from layers.layer1_gpu_busy.nsys_facts import NsysFacts
from layers.layer1_gpu_busy.nsys_os_calls import WAITS
from parsers.nsys_sqlite import read_nsys_export
from tests.writers.nsys import NsysBuilder

SECOND_NS = 1_000_000_000


def busy_second() -> NsysBuilder:
    """Kernels at both ends of one second."""
    export = NsysBuilder()
    export.launch("first", call_ns=900, start_ns=1_000, dur_ns=100)
    export.launch("last", call_ns=2_000, start_ns=SECOND_NS + 900, dur_ns=100)
    return export


def facts_of(export: NsysBuilder, folder: Path) -> NsysFacts:
    facts = analyse_export(read_nsys_export(str(export.write(folder / "export.sqlite")))).nsys
    assert facts is not None
    return facts


def test_calls_are_counted_by_name_over_the_device_window(tmp_path: Path) -> None:
    export = busy_second()
    for number in range(4):
        export.os_call("poll", 10_000 + number * 1_000_000, 500_000)
    export.os_call("write", 50_000, 1_000)
    export.os_call("poll", 2 * SECOND_NS, 5_000)
    facts = facts_of(export, tmp_path)
    poll, write = facts.os_calls
    assert facts.os_window_ns == SECOND_NS
    assert (poll.name, poll.waits, poll.calls, poll.total_ns) == ("poll", True, 4, 2_000_000)
    assert [poll.per_s, poll.share] == pytest.approx([4.0, 0.002])
    assert (write.name, write.waits) == ("write", False)


def test_threads_that_launch_nothing_do_not_count(tmp_path: Path) -> None:
    export = busy_second()
    export.call("cudaGetDevice_v3020", 5_000, tid=77)
    export.os_call("sem_wait", 6_000, 900_000, tid=77)
    assert facts_of(export, tmp_path).os_calls == ()


def test_a_call_that_outlasts_the_window_counts_up_to_its_end(tmp_path: Path) -> None:
    export = busy_second()
    export.os_call("poll", SECOND_NS, 10 * SECOND_NS)
    (poll,) = facts_of(export, tmp_path).os_calls
    assert poll.total_ns == 1_000


def test_without_system_calls_nothing_was_counted(tmp_path: Path) -> None:
    facts = facts_of(busy_second(), tmp_path)
    assert (facts.os_calls, facts.os_window_ns) == ((), None)


@pytest.mark.parametrize(
    "name", ["poll", "epoll_wait", "pthread_cond_timedwait", "sem_clockwait", "usleep", "select"]
)
def test_a_wait_is_known_by_its_name(name: str) -> None:
    assert WAITS.match(name)


@pytest.mark.parametrize(
    "name", ["ioctl", "write", "open64", "pthread_create", "pthread_cond_signal", "mmap"]
)
def test_other_calls_are_no_waits(name: str) -> None:
    assert not WAITS.match(name)
