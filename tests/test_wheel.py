"""The wheel holds the five packages, the console script and the licence, and nothing else; installed alone it
reads a trace from any folder, and without torch.
"""

from __future__ import annotations

import email
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from perfkit import __version__
from perfkit.bootstrap import OWN_PACKAGES
from tests.conftest import REPOSITORY
from tests.writers.decode_loop import decode_loop

ENGINE_ONLY = ("torch", "fastapi", "uvicorn")
"""Large, and needed by the bundled engine alone."""
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


def test_what_it_depends_on_is_light(wheel: zipfile.ZipFile) -> None:
    text = wheel.read(f"perfkit-{__version__}.dist-info/METADATA").decode()
    asked = email.message_from_string(text).get_all("Requires-Dist", [])
    always = [one for one in asked if "extra ==" not in one]
    assert len(always) > 10 and any(one.startswith("torch") for one in asked)
    assert [one for one in always if one.startswith(ENGINE_ONLY)] == []


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it. Its dependencies are those of the tests' environment, but for
    what only the engine needs: an import of that leaves a file behind and fails."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    options = ["install", "--no-compile", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "--python", str(python), *options, str(wheel.filename)]
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (packages,) = home.glob("lib/python*/site-packages")
    elsewhere = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "dependencies.pth").write_text("\n".join(elsewhere))
    for name in ENGINE_ONLY:
        report = f"open({str(home / 'imported')!r}, 'a').write({name!r})"
        (packages / f"{name}.py").write_text(f"{report}\nraise ImportError({name!r})\n")
    return home


def _perfkit(home: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(home / "bin" / "perfkit"), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_the_installed_program_reads_a_trace_from_any_folder_without_torch(
    installed: Path, tmp_path: Path
) -> None:
    decode_loop().write(tmp_path / "trace.json.gz")
    version = _perfkit(installed, tmp_path, "--version")
    assert (version.returncode, version.stdout) == (0, f"perfkit {__version__}\n"), version.stderr
    found = _perfkit(installed, tmp_path, "layer1", "--trace", "trace.json.gz")
    assert (found.returncode, found.stdout[:10]) == (0, "HOST-BOUND"), found.stderr
    assert not (installed / "imported").exists()
