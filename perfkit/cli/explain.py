"""`perfkit explain`: guards, symptoms and causes of idle time in full; without a name, a list of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from layers.catalogue import (
    CATALOGUE,
    SYMPTOMS,
    Named,
    entry,
    find,
    near,
    symptom_entry,
)
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted
from layers.layer1_gpu_busy.idle_meanings import MEANINGS, find_cause
from layers.layer1_gpu_busy.idle_model import Cause
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
CAUSE: Paragraphs = (("whose", "whose"), ("means", "meaning"), ("look next", "look_next"))


def explain(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Codes or names: PK101, few-samples, S1, a cause of idle time. None: all.",
        ),
    ] = None,
    json: options.Json = False,
) -> int:
    """Explain guards, symptoms and causes of idle time: what each means, how perfkit detects it, what to do.

    A cause may stand without quotes, beside codes. Example: perfkit explain PK101 nothing was submitted
    """
    if not names:
        return _all(json)
    found = _entries(names)
    said = ", ".join(one.name for one in found)
    if len(found) == 1:
        sections: dict[str, Any] = {found[0].kind: found[0].texts}
    else:
        sections = {"explained": [{"kind": one.kind, **one.texts} for one in found]}
    result = Result("explain", Verdict("explained", False, said, Exit.OK), sections=sections)
    return output.finish(result, as_json=json, show=lambda _: _show(found))


@dataclass(frozen=True, slots=True)
class _Entry:
    """One thing that can be explained; `kind` names it in the document."""

    kind: str
    name: str
    title: str
    texts: Mapping[str, str]
    paragraphs: Paragraphs


def _entries(words: Sequence[str]) -> list[_Entry]:
    """What the words stand for, in turn: a name may be several of them, and the longest counts."""
    found, rest = list[_Entry](), list(words)
    while rest:
        longest = _longest(rest)
        if longest is None:
            raise UsageError(_not_found(rest))
        entry, many = longest
        found.append(entry)
        rest = rest[many:]
    return found


def _longest(words: Sequence[str]) -> tuple[_Entry, int] | None:
    """The entry that most of the first words name, and how many they are."""
    for many in range(len(words), 0, -1):
        if (found := _find(" ".join(words[:many]))) is not None:
            return found, many
    return None


def _find(name: str) -> _Entry | None:
    if (guard := find(name, CATALOGUE)) is not None:
        title = f"{guard.title}  ({guard.layer}, effect: {guard.effect})"
        return _Entry("guard", guard.title, title, entry(guard), GUARD)
    if (rule := find(name, SYMPTOMS)) is not None:
        title = f"{rule.code} {rule.title}  (a symptom of perfkit layer1)"
        return _Entry("symptom", f"{rule.code} {rule.name}", title, symptom_entry(rule), SYMPTOM)
    if (cause := find_cause(name)) is not None:
        return _Entry("cause", cause.name, f"{cause.name}  (a cause of idle time)", asdict(cause), CAUSE)
    return None


def _show(found: Sequence[_Entry]) -> None:
    for place, one in enumerate(found):
        if place:
            output.line()
        output.line(one.title)
        for label, field in one.paragraphs:
            output.line()
            output.paragraph(label, one.texts[field])


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
    output.show(output.table(["cause of idle time"], [(str(cause),) for cause in MEANINGS]))
    output.line()
    output.line("In full: perfkit explain CODE..., or perfkit explain nothing was submitted")


def _not_found(words: Sequence[str]) -> str:
    """Of words that begin with no name: as many as are nearly a cause, else the first."""
    runs = [" ".join(words[:many]) for many in range(len(words), 1, -1)]
    nearly = [(run, *cause) for run in runs if (cause := get_close_matches(run.casefold(), list(Cause), 1))]
    text, *causes = nearly[0] if nearly else (words[0],)
    found: list[Named] = [*near(text, CATALOGUE), *near(text, SYMPTOMS)]
    close = ", ".join([*causes, *(f"{one.code} {one.name}" for one in found)])
    meant = f"; did you mean {close}?" if close else ""
    return f"no guard, symptom or cause of idle time is called {text}{meant} (all of them: perfkit explain)"
