"""An editable package is reported with the commit that really runs, and a hash of what differs from it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from layers.collectors.bounded import ProbeFailed
from layers.preflight.checkouts import Checkout, moved_on, read_checkout
from layers.preflight.packages import list_packages, service_python
from layers.preflight.software import EditablePackage, Software, read_software, software_sections

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        [*GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, text: str) -> str:
    """Write the package with this text, commit it, and return the commit."""
    (folder / "engine" / "__init__.py").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a change")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "engine").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "STEP = 1\n")
    return folder


@pytest.fixture
def python(tmp_path: Path, checkout: Path) -> Callable[[str], str]:
    """An interpreter with `engine` installed in editable form, as of a version that the test names."""
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")

    def install(version: str) -> str:
        info = packages / f"engine-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: engine\nVersion: {version}\n")
        url = {"url": checkout.as_uri(), "dir_info": {"editable": True}}
        (info / "direct_url.json").write_text(json.dumps(url))
        (info / "top_level.txt").write_text("engine\n")
        (packages / "engine.pth").write_text(f"{checkout}\n")
        return str(environment / "bin" / "python")

    return install


def only_editable(software: Software) -> EditablePackage:
    (found,) = software.editables
    return found


def test_a_checkout_that_moved_on_is_reported_as_what_really_runs(
    tmp_path: Path, checkout: Path, python: Callable[[str], str]
) -> None:
    installed = git(checkout, "rev-parse", "HEAD")
    interpreter = python(f"1.2.dev3+g{installed[:8]}")
    runs = commit(checkout, "STEP = 2\n")
    (checkout / "engine" / "__init__.py").write_text("STEP = 3  # not committed\n")

    found = only_editable(read_software(interpreter, tmp_path))
    assert found.moved is True
    assert found.checkout is not None and found.checkout.commit == runs
    assert found.checkout.dirty_hash and found.checkout.changed == 1
    facts = software_sections(read_software(interpreter, tmp_path))[-1].facts
    assert facts["engine installed as"] == f"1.2.dev3+g{installed[:8]}"
    assert facts["engine runs"] == found.checkout.label
    assert str(facts["engine runs"]).startswith(f"{runs[:12]}-dirty-")


def test_a_checkout_that_stayed_is_no_news(
    tmp_path: Path, checkout: Path, python: Callable[[str], str]
) -> None:
    found = only_editable(read_software(python(f"1.2+g{git(checkout, 'rev-parse', 'HEAD')[:7]}"), tmp_path))
    assert found.moved is False and found.checkout is not None and not found.checkout.dirty_hash


def test_a_version_without_a_commit_leaves_open_what_was_installed(
    tmp_path: Path, checkout: Path, python: Callable[[str], str]
) -> None:
    assert only_editable(read_software(python("1.2"), tmp_path)).moved is None


def test_it_is_the_folder_that_is_imported_that_counts(
    tmp_path: Path, checkout: Path, python: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    subprocess.run([*GIT, "clone", "-q", checkout, other], check=True)
    runs = commit(other, "STEP = 9\n")
    monkeypatch.setenv("PYTHONPATH", str(other))
    found = only_editable(read_software(python("1.2"), tmp_path))
    assert found.checkout is not None and found.checkout.commit == runs


def test_a_folder_that_is_gone_or_no_checkout_is_said(
    tmp_path: Path, checkout: Path, python: Callable[[str], str]
) -> None:
    interpreter = python("1.2")
    checkout.rename(tmp_path / "moved away")
    found = only_editable(read_software(interpreter, tmp_path))
    assert found.checkout is None and "is not there" in found.problem
    with pytest.raises(ProbeFailed, match="not a git repository"):
        read_checkout(tmp_path)


def test_the_hash_covers_changes_and_untracked_files_and_nothing_ignored(checkout: Path) -> None:
    (checkout / ".gitignore").write_text("*.log\n")
    commit(checkout, "STEP = 1  # again\n")
    clean = read_checkout(checkout)
    assert clean.dirty_hash == "" and clean.label == clean.commit[:12]
    (checkout / "ignored.log").write_text("x")
    assert read_checkout(checkout) == clean

    hashes = set()
    for name, text in [
        ("new.py", "a"),
        ("new.py", "b"),
        ("newer.py", "b"),
        ("engine/__init__.py", "STEP = 7\n"),
    ]:
        (checkout / name).write_text(text)
        hashes.add(read_checkout(checkout).dirty_hash)
    assert len(hashes) == 4


def test_a_checkout_runs_none_of_its_own_programs(checkout: Path, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {touched}\n")
    script.chmod(0o755)
    git(checkout, "config", "core.fsmonitor", str(script))
    git(checkout, "config", "diff.external", str(script))
    (checkout / "engine" / "__init__.py").write_text("STEP = 8\n")
    assert read_checkout(checkout).changed == 1
    assert not touched.exists()


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.2.dev3+gabcdef12", False),
        ("1.2.dev3+g1234567.d20260101", True),
        ("0.4+abcdef1234", False),
        ("1.2", None),
        ("1.2+cu130", None),
    ],
)
def test_versions_name_commits_in_two_ways(version: str, expected: bool | None) -> None:
    assert moved_on(version, Checkout("/x", "abcdef1234567890", "main", 0, 0, "")) is expected


def test_the_interpreter_is_the_active_environments(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    assert service_python({"VIRTUAL_ENV": str(tmp_path)}) == str(tmp_path / "bin" / "python")
    assert service_python({"VIRTUAL_ENV": "/gone", "PATH": ""}) == sys.executable


def test_an_interpreter_that_is_none_is_said() -> None:
    with pytest.raises(ProbeFailed, match="no-such-python: No such file"):
        list_packages("/no-such-python")
    assert "no-such-python" in read_software("/no-such-python", Path("/")).problem


def test_the_names_of_perfkits_own_modules_are_not_in_the_way() -> None:
    """The lister lies beside modules called `packages` and `facts`, and must not see them."""
    listed = list_packages(sys.executable)
    assert {"pytest", "numpy"} <= {package.name for package in listed.packages}
    assert listed.markers["python_version"] == f"{sys.version_info.major}.{sys.version_info.minor}"
