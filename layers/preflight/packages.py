"""The packages of the service's Python environment, and the commits that its editable ones really run.

perfkit lives in an environment of its own, so the service's interpreter is asked (`list_packages`). An
editable install says which version was installed once; what runs is whatever the checkout holds now, so git
is asked there (`checkouts`).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from layers.collectors.bounded import ProbeFailed, output_of

LIST_TIMEOUT_S = 30.0
LISTER = Path(__file__).with_name("list_packages.py")


@dataclass(frozen=True, slots=True)
class Package:
    """One distribution. `commit`: of a package that pip installed from a repository. `runs_from`: where an
    editable one is imported from now."""

    name: str
    version: str
    installed: bool
    url: str
    editable: bool
    commit: str
    runs_from: str

    @property
    def checkout(self) -> Path | None:
        """The folder that an editable package runs from."""
        if not self.editable:
            return None
        return Path(self.runs_from or self.url.removeprefix("file://"))


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """One interpreter and what it sees; `markers` are PEP 508's."""

    executable: str
    version: str
    markers: Mapping[str, str]
    packages: tuple[Package, ...]


def service_python(variables: Mapping[str, str] = os.environ) -> str:
    """The interpreter that the user's service most likely runs in: the active environment's, else PATH's."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        python = Path(variables.get(variable, "")) / "bin" / "python"
        if variables.get(variable) and python.exists():
            return str(python)
    return shutil.which("python3", path=variables.get("PATH")) or sys.executable


def list_packages(python: str) -> PythonEnvironment:
    """Ask an interpreter for its packages; ProbeFailed where it does not answer."""
    text = output_of([python, str(LISTER)], LIST_TIMEOUT_S, cwd=Path("/"))
    try:
        return msgspec.json.decode(text, type=PythonEnvironment)
    except msgspec.DecodeError as error:
        raise ProbeFailed(f"{python}: its list of packages cannot be read ({error})") from error
