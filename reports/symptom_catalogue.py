"""Writes docs/symptoms.md from the symptoms themselves, so that the page says what the program looks for.

    python -m reports.symptom_catalogue [--check]

`--check` writes nothing and exits 1 if the page differs from what would be written.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from layers.catalogue import SYMPTOMS, AnySymptom, symptom_entry
from layers.evidence.symptom import NEAR_SHARE
from layers.evidence.wording import limit
from reports.generated_page import write_or_check
from reports.markdown import escape, table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "symptoms.md"

INTRO = f"""# Symptoms

A symptom is what slow work looks like, in a trace (S1 to S12, which `perfkit layer1` checks on each device)
or in a service under load (S13 to S19, which `perfkit stages` checks). Of each is said: there, not there, or
that what was recorded cannot tell, always with its numbers. There means that the phenomenon is, not that its
usual cause is: neither a trace nor a ledger shows a cause in the code, so a finding from a symptom is weak
until another layer confirms it. A symptom whose numbers miss their thresholds by no
more than {limit(NEAR_SHARE)} is listed as close. `perfkit explain CODE` prints one of these entries.

Thresholds are those of TraceLens or of Holistic Trace Analysis where these tools have one; perfkit proposes
the others.

Written by `make docs` from the symptoms themselves; do not edit.
"""


def render(symptoms: Sequence[AnySymptom]) -> str:
    """The whole page."""
    return "\n".join([INTRO, _overview(symptoms), *map(render_symptom, symptoms)])


def render_symptom(rule: AnySymptom) -> str:
    """One symptom as a section."""
    texts = symptom_entry(rule)
    paragraphs = (
        ("There when.", f"{texts['threshold']} ({texts['threshold_source']})"),
        ("Usual cause.", texts["usual_cause"]),
        ("Look next.", texts["look_next"]),
        ("What would disprove it.", texts["disproof"]),
    )
    body = "".join(f"\n**{label}** {escape(text)}\n" for label, text in paragraphs)
    return f"## {rule.code} {escape(rule.title)}\n{body}"


def _overview(symptoms: Sequence[AnySymptom]) -> str:
    rows = [
        (f"[{s.code}](#{s.code.lower()}-{s.name})", escape(s.title), escape(s.threshold)) for s in symptoms
    ]
    return table(["code", "symptom", "there when"], rows)


def main(arguments: Sequence[str]) -> int:
    """Write or check the page."""
    return write_or_check(PAGE, render(SYMPTOMS), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
