"""docs/cli-reference.md says what the program says."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfkit.cli import reference
from perfkit.cli.registry import COMMANDS


def test_the_page_in_docs_is_up_to_date() -> None:
    assert reference.main(["--check"]) == 0, "run `make docs`"


def test_every_command_has_its_section() -> None:
    page = reference.render()
    assert all(f"\n## perfkit {command.name}\n" in page for command in COMMANDS)


def test_check_fails_on_a_missing_and_on_an_edited_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(reference, "COMMANDS", ())
    assert reference.main(["--check"]) == 1
    assert "make docs" in capsys.readouterr().err
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
    reference.PAGE.write_text(reference.PAGE.read_text() + "edited")
    assert reference.main(["--check"]) == 1
