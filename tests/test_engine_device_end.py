"""How an emulated device ends: failing kernels, killed processes on either side, and closing."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.errors import DeviceLost
from tests.conftest import REPOSITORY
from tests.engine_builders import number, paused, small_device
from tests.engine_kernels import append, die, fail, never_end

PATIENCE_S = 60.0

HOST = """
import sys
from sample_engine.emulated.host.device import EmulatedDevice
from sample_engine.dtypes import INT64
from tests.engine_kernels import append, fill, never_end

device = EmulatedDevice(1 << 20)
stream = device.streams[0]
result = stream.empty((1,), INT64)
stream.launch(fill, (result,), (0.0,))
stream.synchronize()
if "busy" in sys.argv:
    stream.launch(never_end, (result,))
print(device.process_id, flush=True)
if "wait" in sys.argv:
    sys.stdin.read()
"""


def has_ended(pid: int) -> bool:
    """Whether the process goes away; one that nobody reaps counts as gone."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


def start_host(*options: str) -> tuple[subprocess.Popen[str], int]:
    """A host in a process of its own, and the process id of its device."""
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, *options],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert host.stdout is not None
    return host, int(host.stdout.readline())


def end(host: subprocess.Popen[str]) -> int:
    """Close the host's pipes and wait for it."""
    host.communicate(timeout=PATIENCE_S)
    return host.returncode


def test_a_failing_kernel_loses_the_device_and_the_next_wait_says_where_it_failed() -> None:
    with small_device() as device:
        stream, result = device.streams[0], number(device)
        stream.launch(fail, (result,))
        with pytest.raises(DeviceLost, match=r"(?s)engine_kernels.*in fail.*this kernel always fails"):
            stream.synchronize()
        with pytest.raises(DeviceLost, match="always fails"):
            stream.launch(append, (result,), (1,))
        with pytest.raises(DeviceLost, match="always fails"):
            device.streams[1].launch(append, (result,), (1,))
        assert has_ended(device.process_id)


def test_a_device_that_dies_in_a_kernel_is_lost_and_nobody_waits_for_it() -> None:
    with small_device() as device:
        stream, result = device.streams[0], number(device)
        event = stream.record_event()
        stream.launch(die, (result,))
        with pytest.raises(DeviceLost, match="signal 9"):
            stream.synchronize()
        with pytest.raises(DeviceLost):
            event.synchronize()
        with pytest.raises(DeviceLost):
            stream.launch(append, (result,), (1,))


def test_a_device_killed_from_outside_in_the_middle_of_a_kernel_is_lost() -> None:
    with small_device() as device:
        device.streams[0].launch(never_end, (number(device),))
        os.kill(device.process_id, signal.SIGKILL)
        with pytest.raises(DeviceLost, match="signal 9"):
            device.streams[0].synchronize()


def test_a_host_that_only_launches_finds_out_when_the_ring_is_full() -> None:
    with small_device() as device:
        stream, result = device.streams[0], number(device)
        with paused(device):
            os.kill(device.process_id, signal.SIGKILL)
        with pytest.raises(DeviceLost):
            for _ in range(3000):
                stream.launch(append, (result,), (0,))


def test_a_closed_device_is_lost_and_its_process_gone() -> None:
    with small_device() as device:
        result = number(device)
        pid = device.process_id
    assert not psutil.pid_exists(pid)
    with pytest.raises(DeviceLost):
        device.streams[0].launch(append, (result,), (1,))


def test_closing_ends_a_kernel_that_never_does() -> None:
    with small_device() as device:
        device.streams[0].launch(never_end, (number(device),))
    assert not psutil.pid_exists(device.process_id)


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_the_device_process_does_not_outlive_a_killed_host(state: str) -> None:
    host, device_pid = start_host(state, "wait")
    host.kill()
    assert end(host) == -signal.SIGKILL
    assert has_ended(device_pid)


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_a_host_that_forgets_to_close_leaves_no_device_behind(state: str) -> None:
    host, device_pid = start_host(state)
    assert end(host) == 0
    assert has_ended(device_pid)


def test_an_interrupt_of_the_whole_group_leaves_the_device_to_the_host() -> None:
    with small_device() as device:
        os.kill(device.process_id, signal.SIGINT)
        result = number(device)
        device.streams[0].launch(append, (result,), (1,))
        device.synchronize()


def test_a_device_that_cannot_start_says_so() -> None:
    with pytest.raises(DeviceLost, match="bytes"):
        EmulatedDevice(1 << 60)


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_devices_that_come_and_go_leave_no_files_open() -> None:
    with small_device() as device:
        pass
    del device
    before = open_files()
    for _ in range(3):
        with small_device() as device:
            number(device)
        device.close()
    del device
    assert open_files() == before
