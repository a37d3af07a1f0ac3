"""No guard without a test that names its code, nor without a source: a catalogue of claims is no evidence."""

from __future__ import annotations

import re
from pathlib import Path

from layers.catalogue import CATALOGUE

TESTS = Path(__file__).resolve().parent
CODE = re.compile(r"PK\d{3}", re.IGNORECASE)


def codes_named_by_tests() -> set[str]:
    """Every code that stands in a test file, this one and the catalogue's own apart."""
    others = [
        p for p in TESTS.rglob("test_*.py") if p.name not in {Path(__file__).name, "test_guard_catalogue.py"}
    ]
    return {code.upper() for path in others for code in CODE.findall(path.read_text("utf-8"))}


def test_every_guard_of_the_catalogue_is_named_by_a_test() -> None:
    assert {guard.code for guard in CATALOGUE} - codes_named_by_tests() == set()


def test_every_guard_has_a_source() -> None:
    assert [guard.code for guard in CATALOGUE if not guard.source.strip()] == []
