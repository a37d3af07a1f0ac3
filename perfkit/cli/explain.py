"""`perfkit explain`: one guard or symptom in full, as the catalogue has it; without a name, all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from layers.catalogue import (
    CATALOGUE,
    SYMPTOMS,
    AnyGuard,
    AnySymptom,
    Named,
    entry,
    find,
    near,
    symptom_entry,
)
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted
from parsers.errors import UsageError
from perfkit.cli import options, output

Paragraphs = Sequence[tuple[str, str]]
"""Label of each paragraph, and the field of the entry that it shows."""

GUARD: Paragraphs = (
    ("you see", "sees"),
    ("cause", "cause"),
    ("detected", "detection"),
    ("do", "remedy"),
    ("source", "source"),
)
SYMPTOM: Paragraphs = (
    ("there if", "threshold"),
    ("set by", "threshold_source"),
    ("usually", "usual_cause"),
    ("look next", "look_next"),
    ("disproof", "disproof"),
)


def explain(
    name: Annotated[
        str | None,
        typer.Argument(metavar="GUARD|SYMPTOM", help="A code or a name: PK101, few-samples, S1. None: all."),
    ] = None,
    json: options.Json = False,
) -> int:
    """Explain a guard or a symptom: what it means, how perfkit detects it, what to do.

    Example: perfkit explain PK101
    """
    if name is None:
        return _all(json)
    guard, symptom = find(name, CATALOGUE), find(name, SYMPTOMS)
    if guard is not None:
        return _guard(guard, json)
    if symptom is not None:
        return _symptom(symptom, json)
    raise UsageError(_not_found(name))


def _guard(guard: AnyGuard, json: bool) -> int:
    result = Result("explain", _explained(guard.code, guard.name), sections={"guard": entry(guard)})
    title = f"{guard.code} {guard.name}  ({guard.layer}, effect: {guard.effect})"
    return output.finish(result, as_json=json, show=lambda _: _show(title, entry(guard), GUARD))


def _symptom(rule: AnySymptom, json: bool) -> int:
    texts = symptom_entry(rule)
    result = Result("explain", _explained(rule.code, rule.name), sections={"symptom": texts})
    title = f"{rule.code} {rule.title}  (a symptom of perfkit layer1)"
    return output.finish(result, as_json=json, show=lambda _: _show(title, texts, SYMPTOM))


def _explained(code: str, name: str) -> Verdict:
    return Verdict("explained", False, f"{code} {name}", Exit.OK)


def _show(title: str, texts: Mapping[str, str], paragraphs: Paragraphs) -> None:
    output.line(title)
    for label, field in paragraphs:
        output.line()
        output.paragraph(label, texts[field])


def _all(json: bool) -> int:
    because = f"{counted(len(CATALOGUE), 'guard')}, {counted(len(SYMPTOMS), 'symptom')}"
    sections = {"catalogue": [*map(entry, CATALOGUE)], "symptoms": [*map(symptom_entry, SYMPTOMS)]}
    result = Result("explain", Verdict("listed", False, because, Exit.OK), sections=sections)
    return output.finish(result, as_json=json, show=lambda _: _show_all())


def _show_all() -> None:
    rows = [(guard.code, guard.effect, guard.name) for guard in CATALOGUE]
    output.show(output.table(["guard", "effect", "name"], rows))
    output.line()
    output.show(output.table(["symptom", "what it looks like"], [(s.code, s.title) for s in SYMPTOMS]))
    output.line()
    output.line("One in full: perfkit explain CODE")


def _not_found(text: str) -> str:
    found: list[Named] = [*near(text, CATALOGUE), *near(text, SYMPTOMS)]
    close = ", ".join(f"{one.code} {one.name}" for one in found)
    meant = f"; did you mean {close}?" if close else ""
    return f"no guard and no symptom is called {text}{meant} (all of them: perfkit explain)"
