"""perfkit runs its own packages, whatever PYTHONPATH and the current folder hold under the same names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parsers.children import child_command
from perfkit import __version__
from perfkit.bootstrap import OWN_PACKAGES
from tests.conftest import REPOSITORY

FOREIGN = ("layers", "parsers", "reports", "sample_engine")

CONSOLE_SCRIPT = [sys.executable, "-c", "import sys; from perfkit.bootstrap import main; sys.exit(main())"]
"""What pip writes into bin/perfkit."""

MODULE = [sys.executable, "-m", "perfkit"]

RAISES = "raise RuntimeError('a foreign package was imported')\n"
LIES = "import sys\nsys.modules[__name__ + '.evidence'] = sys\nFOREIGN = True\n"


@pytest.fixture(params=[RAISES, LIES], ids=["raising", "lying"])
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with packages of perfkit's names that are not perfkit's."""
    return make_foreign(tmp_path / "foreign", request.param)


def make_foreign(folder: Path, source: str) -> Path:
    for name in FOREIGN:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(source)
    return folder


def run(command: list[str], *, path: list[Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("program", [CONSOLE_SCRIPT, MODULE], ids=["console script", "python -m"])
def test_foreign_packages_in_pythonpath_are_passed_over(
    program: list[str], foreign: Path, tmp_path: Path
) -> None:
    done = run([*program, "--version"], path=[foreign, REPOSITORY], cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"perfkit {__version__}\n", "")


@pytest.mark.parametrize("program", [CONSOLE_SCRIPT, MODULE], ids=["console script", "python -m"])
def test_foreign_packages_in_the_current_folder_are_passed_over(program: list[str], foreign: Path) -> None:
    done = run([*program, "--version"], path=[REPOSITORY], cwd=foreign)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"perfkit {__version__}\n", "")


def test_a_child_process_gets_perfkits_own_packages_and_its_arguments(foreign: Path) -> None:
    (foreign / "probe.py").write_text(
        "import sys, layers.evidence, parsers.errors\n"
        "def report():\n"
        "    print(layers.__file__, parsers.__file__, *sys.argv[1:])\n"
        "    return 7\n"
    )
    done = run(child_command("probe:report", "one", "two"), path=[foreign], cwd=foreign)
    own = [str(REPOSITORY / name / "__init__.py") for name in ("layers", "parsers")]
    assert (done.returncode, done.stdout.split()) == (7, [*own, "one", "two"])


def test_foreign_packages_that_were_imported_before_are_forgotten(tmp_path: Path) -> None:
    foreign = make_foreign(tmp_path / "foreign", LIES)
    before, after = "import layers; assert layers.FOREIGN", "import layers.evidence; print(layers.__file__)"
    code = f"{before}; import perfkit.bootstrap; {after}"
    done = run([sys.executable, "-c", code], path=[foreign, REPOSITORY], cwd=tmp_path)
    assert done.stdout.strip() == str(REPOSITORY / "layers" / "__init__.py"), done.stderr


def test_processes_that_multiprocessing_spawns_are_safe_too(foreign: Path, tmp_path: Path) -> None:
    main = tmp_path / "main.py"
    main.write_text(
        "import perfkit.bootstrap, multiprocessing\n"
        "from parsers.children import child_command\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.apply(child_command, ('a:b',))[2])\n"
    )
    done = run([sys.executable, str(main)], path=[foreign, REPOSITORY], cwd=tmp_path)
    assert done.stdout.strip() == str(REPOSITORY / "perfkit" / "bootstrap.py"), done.stderr


@pytest.fixture
def broken_copy(tmp_path: Path) -> Path:
    """An installation that lost its `layers`."""
    home = tmp_path / "broken"
    for name in OWN_PACKAGES:
        shutil.copytree(REPOSITORY / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(home / "layers")
    return home


def test_a_missing_package_is_one_line_and_exit_2(broken_copy: Path, tmp_path: Path) -> None:
    done = run([*MODULE, "--version"], path=[broken_copy], cwd=tmp_path)
    message = f"perfkit: its package 'layers' is missing from {broken_copy}: reinstall perfkit\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_a_missing_package_names_the_one_that_would_be_taken_for_it(
    broken_copy: Path, foreign: Path, tmp_path: Path
) -> None:
    done = run([*MODULE, "--version"], path=[broken_copy, foreign], cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{foreign / 'layers' / '__init__.py'} would be taken for it" in done.stderr


@pytest.mark.parametrize("target", [[], ["nothing"], [":f"], ["m:"]])
def test_the_child_program_refuses_what_is_no_module_and_function(target: list[str], tmp_path: Path) -> None:
    command = child_command("m:f")[:-1] + target
    done = run(command, path=[], cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
