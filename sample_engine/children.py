"""Where a child process finds this package: in the folder of its parent's, and nowhere else.

The name is a common one, and the parent may have been imported by other means than `sys.path`.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

import sample_engine


def child_environment() -> dict[str, str]:
    """The environment for `python -P -m sample_engine...`."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(_import_path())}


def _import_path() -> list[str]:
    ours = str(sample_engine.__file__)
    found = PathFinder.find_spec("sample_engine")
    if found is not None and found.origin == ours:
        return sys.path
    return [os.path.dirname(os.path.dirname(ours)), *sys.path]
