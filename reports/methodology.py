"""The methodology document: the method in words and every trap it knows, made from what the program checks.

It is general and names no investigation; findings are the report's. What a layer asks, what n counts and how
a trap is detected come from the same entries that the commands use, so the document cannot say other than
perfkit does. The edition names those entries: the same edition is the same method.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from layers.catalogue import AnyGuard, AnySymptom, entry, symptom_entry
from layers.evidence.pitfalls import Pitfall
from layers.evidence.strength_table import TABLE
from layers.evidence.verdict import Exit
from layers.evidence.wording import counted
from reports.guard_catalogue import render_guard
from reports.layers_walked import KNOWN, KnownLayer
from reports.markdown import escape, inside, table

EDITION_DIGITS = 12

ORDER = """Each layer comes before the next because a minute of it rules out more. Whoever begins with stacks
or an A/B finds something too, and cannot say whether it mattered. A layer is left out with a reason that is
written down, and what follows is weaker for it.
"""

RULES = """1. A measurement that looks successful may have measured nothing. Before a number is believed, its
   guards are asked.
2. A number stands with its value, unit, n, spread and what measured it. What was not measured is absent,
   never 0.
3. No conclusion from too little: below the table's least n a result hints (`?`, exit 3), and above it the
   strength is computed, with the rule that fired.
4. Two methods that answer different questions are not averaged; two that should agree must.
5. A finding that nothing is to be changed, and why, is a finding.
6. "Safe" is never the mere lack of a significant difference.
"""

RULES_OUT = {
    "preflight": "Other people's load, leftovers of earlier runs, versions other than those one thinks of.",
    "layer1": "Whether host or device is to be worked on: a busy device ends the search for host time.",
    "stages": "All stages but the one that holds the requests, and waiting against working.",
    "layer2": "All lines but those at which the thread of that stage waits or burns.",
    "sweep": "Limits that show only under load: admission, batch, host; where more load buys waiting alone.",
    "ab": "Explanations that look right and change nothing, and gains inside the noise of one build.",
    "regress": "Gains that were paid with other answers.",
}
"""What a minute of each layer rules out, by the command that runs it."""

GUARD_LAYERS = {"sweep": "layer3", "ab": "layer4", "regress": "layer5"}
"""The layer that guards name, where it is not the command's name."""


def edition(guards: Sequence[AnyGuard], symptoms: Sequence[AnySymptom]) -> str:
    """A name for exactly these entries: the begin of the sha256 of all that they say."""
    digest = hashlib.sha256()
    for said in (*map(entry, guards), *map(symptom_entry, symptoms)):
        digest.update("\0".join(said.values()).encode() + b"\1")
    return digest.hexdigest()[:EDITION_DIGITS]


def contents(guards: Sequence[AnyGuard], symptoms: Sequence[AnySymptom], pitfalls: Sequence[Pitfall]) -> str:
    """`174 guards, 14 symptoms, 1 pitfall`."""
    of = ((len(guards), "guard"), (len(symptoms), "symptom"), (len(pitfalls), "pitfall"))
    return ", ".join(counted(n, noun) for n, noun in of)


def render(
    guards: Sequence[AnyGuard], symptoms: Sequence[AnySymptom], pitfalls: Sequence[Pitfall], version: str
) -> str:
    """The whole document, as Markdown."""
    sections = [
        "# How to find out where the time of an inference service goes\n",
        f"perfkit {version}, edition {edition(guards, symptoms)}: {contents(guards, symptoms, pitfalls)} "
        "added here. Written by `perfkit methodology`.\n",
        f"## The rules\n\n{RULES}",
        f"## The layers, in this order\n\n{ORDER}\n{_layers()}",
        f"## What n counts, and how much is enough\n\n{_strengths()}",
        f"## Exit codes\n\n{_exits()}",
        *(_traps(layer, guards) for layer in KNOWN),
        f"## Symptoms that a trace shows\n\n{_symptoms(symptoms)}",
        f"## Pitfalls added here\n\n{_pitfalls(pitfalls)}",
    ]
    return "\n".join(sections)


def _layers() -> str:
    rows = [
        (*map(inside, (one.title, one.question, RULES_OUT[one.command])), f"`perfkit {one.command}`")
        for one in KNOWN
    ]
    return table(["layer", "what it asks", "what it rules out", "command"], rows)


def _strengths() -> str:
    rows = [(row.measurement, row.counts, row.directional_below, row.strong_needs) for row in TABLE]
    headers = ["measurement", "n counts", "a hint only", "strong needs"]
    return table(headers, [tuple(map(inside, row)) for row in rows])


def _exits() -> str:
    return table(["exit", "when"], [(str(int(code)), inside(code.meaning)) for code in Exit])


def _traps(layer: KnownLayer, guards: Sequence[AnyGuard]) -> str:
    named = GUARD_LAYERS.get(layer.command, layer.command)
    of_layer = [render_guard(guard, "###") for guard in guards if guard.layer == named]
    return "\n".join([f"## Traps. {escape(layer.title)}\n", *(of_layer or ["No guard yet.\n"])])


def _symptoms(symptoms: Sequence[AnySymptom]) -> str:
    rows = [(s.code, s.title, s.threshold, s.usual_cause, s.disproof) for s in symptoms]
    headers = ["code", "what it looks like", "there if", "usual cause", "what would disprove it"]
    return table(headers, [tuple(map(inside, row)) for row in rows])


def _pitfalls(pitfalls: Sequence[Pitfall]) -> str:
    if not pitfalls:
        return "None. `perfkit pitfall add` writes one down.\n"
    return "\n".join(_pitfall(number, pitfall) for number, pitfall in enumerate(pitfalls, 1))


def _pitfall(number: int, pitfall: Pitfall) -> str:
    checked = f"{pitfall.guard} checks it." if pitfall.guard else "No guard checks it: watch for it."
    paragraphs = (
        ("What happened.", pitfall.happened),
        ("How to detect it.", pitfall.detection),
        ("Checked.", checked),
        ("Source.", f"{pitfall.source}, {pitfall.added.isoformat()}"),
    )
    title = f"### Pitfall {number}. {escape(pitfall.sees)}\n"
    return title + "".join(f"\n**{label}** {escape(text)}\n" for label, text in paragraphs)
