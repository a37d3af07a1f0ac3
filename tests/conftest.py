"""What all tests share: the folder of real files, and a hypothesis profile that never looks at a clock."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.side_by_side import pytest_configure as pytest_configure
from tests.side_by_side import pytest_xdist_auto_num_workers as pytest_xdist_auto_num_workers

REPOSITORY = Path(__file__).resolve().parent.parent

signal.signal(signal.SIGINT, signal.default_int_handler)
"""Shells ignore it in what they start in the background; programs that tests interrupt would inherit that."""

settings.register_profile("perfkit", deadline=None, derandomize=True)
settings.load_profile("perfkit")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Real files of other tools: PERFKIT_TEST_DATA, else ../shared/data beside the repository."""
    folder = Path(os.environ.get("PERFKIT_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real files: {folder} is not there (PERFKIT_TEST_DATA names another folder)")
    return folder
