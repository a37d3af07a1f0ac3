"""No guard without a test that names it, by code or name, nor without a source: claims are no evidence."""

from __future__ import annotations

import re
from pathlib import Path

from layers.catalogue import CATALOGUE

TESTS = Path(__file__).resolve().parent
NOT_EVIDENCE = {Path(__file__).name, "test_guard_catalogue.py"}
"""This file, and the catalogue's own: they go through all guards and check none."""


def test_every_guard_of_the_catalogue_is_named_by_a_test() -> None:
    texts = [p.read_text("utf-8") for p in TESTS.rglob("test_*.py") if p.name not in NOT_EVIDENCE]
    words = {word.lower() for text in texts for word in re.findall(r"[\w-]+", text)}
    assert [g.code for g in CATALOGUE if g.code.lower() not in words and g.name not in words] == []


def test_every_guard_has_a_source() -> None:
    assert [guard.code for guard in CATALOGUE if not guard.source.strip()] == []
