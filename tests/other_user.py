"""perfkit as a user without rights: another one where the tests run as root, else the tests' own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perfkit.bootstrap import OWN_PACKAGES
from tests.conftest import REPOSITORY

NOBODY = 65534
AS_NOBODY: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}

Perfkit = Callable[..., "subprocess.CompletedProcess[str]"]


@contextmanager
def without_rights(**environment: str | None) -> Iterator[Perfkit]:
    """Runs `perfkit ARGUMENTS` as such a user, without a home; `environment` adds variables, None removes."""
    with tempfile.TemporaryDirectory() as folder:
        how: dict[str, Any] = {"cwd": REPOSITORY} if os.getuid() else _as_nobody(Path(folder))
        changed = {"HOME": "/nonexistent", **environment}
        found = {**os.environ, **how.pop("env", {}), **{k: v for k, v in changed.items() if v is not None}}
        env = {name: value for name, value in found.items() if changed.get(name, "") is not None}

        def perfkit(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-B", "-m", "perfkit", *arguments]
            return subprocess.run(command, capture_output=True, text=True, check=False, env=env, **how)

        yield perfkit


def _as_nobody(folder: Path) -> dict[str, Any]:
    """The packages lie where that user may read them, wherever the repository is."""
    try:
        subprocess.run([sys.executable, "-c", "import json"], check=True, capture_output=True, **AS_NOBODY)
    except (PermissionError, subprocess.CalledProcessError):
        pytest.skip("another user cannot run this Python")
    folder.chmod(0o755)
    for package in OWN_PACKAGES:
        shutil.copytree(REPOSITORY / package, folder / package)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    return {**AS_NOBODY, "env": {"PYTHONPATH": path}}
