"""docs/symptoms.md says what the catalogue of symptoms says, and can be checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.catalogue import CATALOGUE, NAME, SYMPTOMS, Named, symptom_entry
from reports import symptom_catalogue
from reports.markdown import escape
from reports.symptom_catalogue import render, render_symptom


def test_symptoms_have_codes_and_names_of_their_own() -> None:
    entries: list[Named] = [*CATALOGUE, *SYMPTOMS]
    names = [word for one in entries for word in (one.code.lower(), one.name)]
    assert len(set(names)) == len(names)
    assert all(NAME.fullmatch(rule.name) for rule in SYMPTOMS)


def test_a_section_says_all_there_is_to_say() -> None:
    for rule in SYMPTOMS:
        texts = symptom_entry(rule)
        section = render_symptom(rule)
        assert section.startswith(f"## {rule.code} {escape(rule.title)}\n")
        said = (v for k, v in texts.items() if k not in ("name",))
        assert all(text.strip() and escape(text) in section for text in said), rule.code


def test_the_overview_links_to_every_section() -> None:
    page = render(SYMPTOMS)
    for rule in SYMPTOMS:
        assert f"| [{rule.code}](#{rule.code.lower()}-{rule.name}) | " in page


def test_the_page_in_docs_is_up_to_date() -> None:
    assert symptom_catalogue.main(["--check"]) == 0, "run `make docs`"


def test_check_fails_on_a_missing_and_on_an_edited_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(symptom_catalogue, "PAGE", tmp_path / "page.md")
    assert symptom_catalogue.main(["--check"]) == 1
    assert "make docs" in capsys.readouterr().err
    assert symptom_catalogue.main([]) == 0
    assert symptom_catalogue.main(["--check"]) == 0
    symptom_catalogue.PAGE.write_text(symptom_catalogue.PAGE.read_text() + "edited")
    assert symptom_catalogue.main(["--check"]) == 1
