"""A driver library that plays GPUs, compiled for the tests and loaded by the real pynvml.

What it plays is set by FAKE_NVML_… variables (the list is at the head of fake_nvml.c), which child processes
inherit.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("fake_nvml.c")


def build(folder: Path) -> Path:
    """Compile the library into a folder for LD_LIBRARY_PATH; skips the test where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: the driver library that plays GPUs cannot be built")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", library, SOURCE], check=True)
    return folder


def play(patch: pytest.MonkeyPatch, folder: Path, **settings: str) -> None:
    """Let child processes find the library in `folder`, playing what the settings say (util="90,0")."""
    patch.setenv("LD_LIBRARY_PATH", str(folder))
    for name, value in settings.items():
        patch.setenv(f"FAKE_NVML_{name.upper()}", value)
