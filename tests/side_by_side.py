"""Tests run side by side in several processes (`pytest -n`), and the ones marked `alone` beside no other.

A test holds the file `running` of its test run: shared with tests of other processes, or for itself alone.
Before that it goes through `entry`, where one that waits to be alone keeps back those that would come. The
locks belong to a process: what a test starts has none of them, and they end with a worker that dies.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FOLDER = "perfkit_side_by_side"
MOST_WORKERS = 8
"""Each has PyTorch in its memory."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return min(len(os.sched_getaffinity(0)), MOST_WORKERS)


class Workers:
    """In the process that starts the workers: the folder where they find each other."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="perfkit-tests-")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[FOLDER] = self._folder.name

    def pytest_unconfigure(self) -> None:
        self._folder.cleanup()


class Turns:
    """In a worker: each test waits for its turn."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        with turn(self._folder, alone=item.get_closest_marker("alone") is not None):
            return (yield)


@contextmanager
def turn(folder: Path, alone: bool) -> Iterator[None]:
    """Wait until a test may run beside those of the other processes, which use the same folder."""
    with open(folder / "running", "a+") as running:
        with open(folder / "entry", "a+") as entry:
            fcntl.lockf(entry, fcntl.LOCK_EX)
            fcntl.lockf(running, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def pytest_configure(config: pytest.Config) -> None:
    worker = getattr(config, "workerinput", None)
    config.pluginmanager.register(Turns(Path(worker[FOLDER])) if worker else Workers())
