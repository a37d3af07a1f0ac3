"""The catalogue of guards: no two alike, all findable, and docs/guards.md says what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from layers.catalogue import CATALOGUE, entry, find, gather, near
from layers.evidence.guard import Checked, Effect
from reports import guard_catalogue
from reports.guard_catalogue import render, render_guard
from reports.markdown import escape, table
from tests.conftest import REPOSITORY
from tests.evidence_builders import made_up_guard

BLIND = made_up_guard("PK901", "replay-blind-spot", effect=Effect.VOID)
FEW = made_up_guard("PK902", "few-samples")
IDLE = made_up_guard("PK903", "idle-server", layer="layer2")
GUARDS = gather([BLIND, FEW], [IDLE])


def test_guards_stand_in_the_order_of_the_layers() -> None:
    assert GUARDS == (BLIND, FEW, IDLE)


@pytest.mark.parametrize(
    ("code", "name", "complaint"),
    [
        ("PK901", "another", "PK901 is another guard's"),
        ("PK904", "few-samples", "few-samples is another guard's"),
        ("PK9", "short-code", "codes look like PK101"),
        ("PK904", "Has Blanks", "names like few-samples"),
    ],
)
def test_a_repeated_or_malformed_code_or_name_is_refused(code: str, name: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        gather([BLIND, FEW], [made_up_guard(code, name)])


@pytest.mark.parametrize("asked", ["PK902", "pk902", "few-samples", "Few-Samples"])
def test_a_guard_is_found_by_code_or_name_in_any_case(asked: str) -> None:
    assert find(asked, GUARDS) is FEW


@pytest.mark.parametrize("asked", ["", "PK90", "few", "PK999"])
def test_a_part_of_a_name_finds_nothing(asked: str) -> None:
    assert find(asked, GUARDS) is None


@pytest.mark.parametrize(
    ("asked", "likeliest"), [("few-sample", FEW), ("PK9O3", IDLE), ("BLIND", BLIND), ("idle", IDLE)]
)
def test_near_matches_begin_with_the_likeliest(asked: str, likeliest: object) -> None:
    assert near(asked, GUARDS)[0] is likeliest


def test_nothing_is_near_to_nonsense() -> None:
    assert near("zzzzzz", GUARDS) == [] and near("", GUARDS) == []


def test_every_guard_of_the_program_says_all_there_is_to_say() -> None:
    assert all(text.strip() for guard in CATALOGUE for text in entry(guard).values())


def test_every_code_that_a_text_names_is_in_the_catalogue() -> None:
    files = [f for package in ("layers", "reports", "perfkit") for f in (REPOSITORY / package).rglob("*.py")]
    named = {(f.name, code) for f in files for code in re.findall(r"\bPK\d+", f.read_text("utf-8"))}
    known = {guard.code for guard in CATALOGUE}
    assert named and [(file, code) for file, code in sorted(named) if code not in known] == []


def test_a_guard_is_asked_for_by_its_entry() -> None:
    fired, clear = (Checked("PK902", "few-samples", Effect.NOTE, is_there, "") for is_there in (True, False))
    other = Checked("PK901", "replay-blind-spot", Effect.VOID, True, "")
    assert FEW.fired_in([other, clear, fired]) is fired
    assert FEW.fired_in([other, clear]) is None


def test_a_section_shows_all_texts_and_obeys_no_markup_in_them() -> None:
    section = render_guard(BLIND)
    assert section.startswith("## PK901 replay-blind-spot\n\nlayer1, effect: void\n")
    assert r"\<b>0 %\</b> with \*many\* launches \| and" in section
    assert r"**What to do.** Record again with PROFILER_FLAG=1." in section
    assert all(escape(text) in section for text in entry(BLIND).values())


def test_the_overview_links_to_every_section() -> None:
    page = render(GUARDS)
    for guard in GUARDS:
        assert f"| [{guard.code}](#{guard.code.lower()}-{guard.name}) | {guard.name} |" in page
        assert f"\n## {guard.code} {guard.name}\n" in page


def test_tables_have_one_line_a_row() -> None:
    assert table(["a", "b"], [["1", escape("x\n|y")]]) == "| a | b |\n| --- | --- |\n| 1 | x \\|y |\n"


def test_the_page_in_docs_is_up_to_date() -> None:
    assert guard_catalogue.main(["--check"]) == 0, "run `make docs`"


def test_check_fails_on_a_missing_and_on_an_edited_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guard_catalogue, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(guard_catalogue, "CATALOGUE", GUARDS)
    assert guard_catalogue.main(["--check"]) == 1
    assert "make docs" in capsys.readouterr().err
    assert guard_catalogue.main([]) == 0
    assert guard_catalogue.main(["--check"]) == 0
    guard_catalogue.PAGE.write_text(guard_catalogue.PAGE.read_text() + "edited")
    assert guard_catalogue.main(["--check"]) == 1
