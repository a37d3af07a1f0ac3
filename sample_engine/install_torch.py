"""python -m sample_engine.install_torch CONSTRAINTS: PyTorch for this machine, before all else is installed.

What package indexes offer for Linux is the build with CUDA, several GB. Without a GPU nothing of that is
used, so PyTorch's own index of CPU builds is asked first, and given up after a few seconds where there is no
way to it. Then torch is left to the configured index, and a line says what that may mean before it starts.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
REACH_TIMEOUT_S = 5.0
GPU_FILES = (Path("/dev/nvidiactl"), Path("/dev/kfd"))
"""Made by the drivers of NVIDIA and AMD."""
EXIT_USAGE = 2

MAY_BE_LARGE = (
    f"{CPU_INDEX} cannot be used: PyTorch comes from pip's configured index, "
    "where the build for Linux may be several GB"
)


def install_torch(constraints: str, can_reach: Callable[[str], bool], pip: Callable[..., bool]) -> str:
    """What was found or done, in words. The CPU index gives torch alone; its needs may come from anywhere."""
    if find_spec("torch") is not None:
        return "PyTorch is installed already"
    if any(one.exists() for one in GPU_FILES):
        return "there is a GPU: PyTorch comes from pip's configured index (several GB)"
    if sys.platform != "linux":
        return "PyTorch comes from pip's configured index"
    only_torch = ("--no-deps", "--constraint", constraints, "--index-url", CPU_INDEX, "torch")
    if can_reach(f"{CPU_INDEX}/torch/") and pip("install", *only_torch):
        return f"PyTorch is the CPU build of {CPU_INDEX}"
    return MAY_BE_LARGE


def can_reach(url: str) -> bool:
    """Within a few seconds."""
    try:
        with urlopen(url, timeout=REACH_TIMEOUT_S):
            return True
    except (OSError, HTTPException):
        return False


def pip(*arguments: str) -> bool:
    """Whether pip could do it; it says itself what went wrong."""
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, check=False).returncode == 0


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m sample_engine.install_torch CONSTRAINTS", file=sys.stderr)
        return EXIT_USAGE
    print(install_torch(arguments[0], can_reach, pip), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
