"""The wheel holds the five packages, the console script and the licence, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile

import pytest

from perfkit import __version__
from perfkit.bootstrap import OWN_PACKAGES
from tests.conftest import REPOSITORY

NOT_SOURCE = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "perfkit-*")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built without network from a copy, so that no build folder appears in the repository."""
    source, out = tmp_path_factory.mktemp("build") / "source", tmp_path_factory.mktemp("wheel")
    shutil.copytree(REPOSITORY, source, ignore=NOT_SOURCE)
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
    ]
    done = subprocess.run([*build, "--wheel-dir", out, source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = out.glob("*.whl")
    return zipfile.ZipFile(made)


def test_the_wheel_holds_the_five_packages_and_its_own_metadata_alone(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {*OWN_PACKAGES, f"perfkit-{__version__}.dist-info"}


def test_the_wheel_holds_every_file_of_the_packages(wheel: zipfile.ZipFile) -> None:
    files = [file for package in OWN_PACKAGES for file in (REPOSITORY / package).rglob("*") if file.is_file()]
    expected = {str(file.relative_to(REPOSITORY)) for file in files if "__pycache__" not in file.parts}
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected


def test_the_wheel_installs_the_console_script(wheel: zipfile.ZipFile) -> None:
    info = f"perfkit-{__version__}.dist-info"
    assert "perfkit = perfkit.bootstrap:main" in wheel.read(f"{info}/entry_points.txt").decode()
    assert f"{info}/licenses/LICENSE" in wheel.namelist()
