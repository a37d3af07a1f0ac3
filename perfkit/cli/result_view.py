"""What every result prints, whatever its layer: the verdict first; at the end checks and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from layers.evidence.finding import FindingKind
from layers.evidence.guard import Checked, Effect
from layers.evidence.measurement import Artifact
from layers.evidence.result import Result
from layers.evidence.wording import counted
from perfkit.cli import output

SHA256_CHARACTERS = 16


def show_headline(result: Result) -> None:
    """The verdict, why, and where to look next."""
    verdict = result.verdict
    output.paragraph(verdict.headline, verdict.because)
    if verdict.next_step:
        indent = max(output.LABEL_WIDTH, len(verdict.headline) + 2)
        output.paragraph(" " * (indent - 2), f"→ {verdict.next_step}")


def show_checks(guards: Sequence[Checked]) -> None:
    """The guards that fired, strongest first, each once with how often; then the codes of the others."""
    output.line()
    fired = fired_guards(guards)
    for (effect, code), same in fired.items():
        whose = f"{same[0].scope}: " if same[0].scope else ""
        more = f" (and {len(same) - 1} more)" if len(same) > 1 else ""
        output.paragraph(code, f"{same[0].name}: {effect}. {whose}{same[0].message}{more}")
    codes = {code for _, code in fired}
    clear = dict.fromkeys(g.code for g in guards if g.code not in codes)
    if clear:
        output.paragraph("checks", f"{counted(len(clear), 'other check')} found nothing (--json lists them)")


def fired_guards(guards: Sequence[Checked]) -> dict[tuple[Effect, str], list[Checked]]:
    """The guards that fired by effect and code, strongest first."""
    order = list(Effect)
    fired: dict[tuple[Effect, str], list[Checked]] = {}
    for g in sorted((g for g in guards if g.fired), key=lambda g: (order.index(g.effect), g.code)):
        fired.setdefault((g.effect, g.code), []).append(g)
    return fired


def show_strength(result: Result) -> None:
    """How far the verdict carries, and by which rule."""
    verdict = next((f for f in result.findings if f.kind is FindingKind.VERDICT), None)
    if verdict is not None:
        output.paragraph("strength", f"{verdict.strength} ({verdict.rule})")


def show_artifacts(artifacts: Sequence[Artifact]) -> None:
    """The first file with the beginning of its checksum, and how many others there are."""
    if artifacts:
        first, more = artifacts[0], len(artifacts) - 1
        others = f" and {counted(more, 'other file')}" if more else ""
        output.paragraph("artifact", f"{first.path} sha256 {first.sha256[:SHA256_CHARACTERS]}…{others}")


def measured_files(result: Result) -> list[Artifact]:
    """The files that measurements rest on, each once."""
    return list(dict.fromkeys(m.artifact for m in result.measurements if m.artifact is not None))


def show_what_explains(result: Result, guards: Sequence[Checked]) -> None:
    """Where to read on about the one of these guards that decided most: the one that the rule of the strength
    names, else the strongest. A note that no rule names decides nothing."""
    rules = " ".join(f.rule for f in result.findings if f.kind is FindingKind.VERDICT)
    fired = list(fired_guards(guards))
    named = [code for _, code in fired if code in rules]
    decided = [*named, *(code for effect, code in fired if effect is not Effect.NOTE)]
    if decided:
        output.paragraph("explain", f"perfkit explain {decided[0]}")


def show_footer(result: Result, guards: Sequence[Checked]) -> None:
    """The strength and its rule, what was measured from, and where to read on about these guards."""
    output.line()
    show_strength(result)
    show_artifacts(measured_files(result))
    show_what_explains(result, guards)


def number(value: float | None, digits: int = 4) -> str:
    """About so many digits, none of them after the point of a large number; empty for nothing."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"
