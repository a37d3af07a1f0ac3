"""Pins against installed versions, by the rules of PEP 440 and PEP 508."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.preflight.pins import Pin, PinCheck, check_pins, find_pin_files, read_pins
from parsers.errors import UnreadableInput

MARKERS = {
    "python_version": "3.11",
    "python_full_version": "3.11.7",
    "sys_platform": "linux",
    "platform_machine": "x86_64",
    "platform_system": "Linux",
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_python_implementation": "CPython",
    "platform_release": "6.1",
}
INSTALLED = {"torch": "2.6.0+cu124", "transformers": "4.51.3", "numpy": "1.26.4", "flash-attn": "2.7.0"}


def broken(path: Path) -> dict[str, str]:
    """Of each package whose pin is not kept, what was asked for."""
    checks = check_pins(read_pins(path, MARKERS), INSTALLED)
    return {check.pin.name: check.pin.wanted for check in checks if not check.kept}


def test_requirements_with_includes_markers_and_odd_lines(tmp_path: Path) -> None:
    (tmp_path / "base.txt").write_text("transformers==4.50.0\n-r requirements.txt\n")
    path = tmp_path / "requirements.txt"
    path.write_text(
        "# comment\n-r base.txt\n--extra-index-url https://x\ntorch==2.6.0\nnumpy<2 # fine\n"
        "Flash_Attn==2.6 ; sys_platform == 'linux'\nnumpy==9 ; python_version < '3.9'\n"
        "git+https://example.com/x.git\nnot-installed==1\nnot a requirement at all !!\n"
    )
    assert broken(path) == {"transformers": "==4.50.0", "flash-attn": "==2.6"}


def test_a_local_version_keeps_a_pin_without_one(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.6.0\n")
    assert broken(path) == {}
    path.write_text("torch==2.6.0+cu130\n")
    assert broken(path) == {"torch": "==2.6.0+cu130"}


def test_pyproject_and_both_constraints_of_one_package(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text('[project]\nname="x"\ndependencies=["numpy>=1.20", "numpy>=2", "torch>=2,<3"]\n')
    assert broken(path) == {"numpy": ">=2"}


def test_of_the_forks_of_a_lock_any_will_do(tmp_path: Path) -> None:
    path = tmp_path / "uv.lock"
    path.write_text(
        'version = 1\n[[package]]\nname = "numpy"\nversion = "1.26.4"\n'
        '[[package]]\nname = "numpy"\nversion = "2.2.0"\n'
        '[[package]]\nname = "torch"\nversion = "2.7.0"\n'
        "resolution-markers = [\"sys_platform == 'darwin'\"]\n"
        '[[package]]\nname = "transformers"\nversion = "4.52.0"\n[[package]]\nname = "here"\n'
    )
    assert broken(path) == {"transformers": "==4.52.0"}


def test_a_package_that_is_not_installed_is_no_broken_pin() -> None:
    assert check_pins([Pin("f", "absent", ("==1",))], INSTALLED) == []


def test_a_version_of_no_known_scheme_can_only_be_equal() -> None:
    pin = Pin("f", "odd", ("==main-branch",))
    assert check_pins([pin], {"odd": "main-branch"}) == [PinCheck(pin, "main-branch", True)]
    assert check_pins([pin], {"odd": "other"}) == [PinCheck(pin, "other", False)]


@pytest.mark.parametrize(
    ("name", "text"), [("pyproject.toml", "not = [toml"), ("uv.lock", "\x00"), ("gone.txt", None)]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: str | None) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(UnreadableInput, match=name):
        read_pins(path, MARKERS)


def test_files_of_pins_are_found_by_name(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "requirements.txt", "requirements-dev.txt", "uv.lock", "other.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in find_pin_files(tmp_path)] == [
        *("pyproject.toml", "requirements-dev.txt", "requirements.txt", "uv.lock")
    ]
