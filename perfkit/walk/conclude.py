"""What a walk comes to: its verdict, how far that carries, and all that happened on the way, as one document.

The walk measured nothing, so its strength is that of the part which it rests on, and no more than medium
where a part that this part builds on is missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from layers.evidence.finding import FindingKind, Strength
from layers.evidence.result import Result
from layers.evidence.secrets import masked_text
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted
from perfkit.walk.decide import WEAKENS
from perfkit.walk.journal import Told, document_of
from perfkit.walk.model import Outcome, Part, Profile, Way

COMMAND = "investigate"
FOUND, PROPOSED, DEVICE, NONE, PARTIAL = (
    "cause-found",
    "cause-proposed",
    "device-bound",
    "no-cause-named",
    "partial",
)
GO_ON = "perfkit investigate --resume"
READ_ON = "read the report: each layer says what it found"
BUILT_ON = (Part.LAYER1, Part.STAGES, Part.LAYER2)
"""Where these are missing, nobody knows whether the change is the cause that was looked for."""


class Judged(NamedTuple):
    """A verdict, how far it carries, and by which rule."""

    verdict: Verdict
    strength: Strength
    rule: str


def result_of(
    told: Told,
    profile: Profile,
    subject: str,
    folder: Path,
    *,
    whole: bool,
    interrupted: bool = False,
    problem: str = "",
) -> Result:
    """The walk as one document. `problem` says what it could not go on for."""
    judged = _judged(told, whole, interrupted, problem)
    return Result(COMMAND, judged.verdict, sections=_sections(told, profile, subject, folder, judged))


def _sections(told: Told, profile: Profile, subject: str, folder: Path, judged: Judged) -> dict[str, Any]:
    return {
        "folder": folder.name,
        "subject": masked_text(subject),
        "profile": {name: getattr(profile, name) for name in ("name", "minutes", "can", "cannot")},
        "a_a": bool(told.asked.get("a_a")),
        "strength": str(judged.strength),
        "rule": judged.rule,
        "walk": list(_rows(told, profile)),
        "candidates": [asdict(one) for one in told.candidates],
        "tried": asdict(told.chosen) if told.chosen is not None else None,
        "ruled_out": list(_ruled_out(told)),
        "files": [_file(document_of(folder, part)) for part in Part if part in told.outcomes],
    }


def _rows(told: Told, profile: Profile) -> Iterator[dict[str, Any]]:
    """Every part in order: what it said and what followed, or why there is nothing of it."""
    for part in Part:
        row = {"layer": part.label, "command": part.value, "reaches": profile.reaches[part]}
        if part in told.left_out:
            yield row | {"left_out": told.left_out[part], "weakens": WEAKENS[part]}
        elif part in told.decisions:
            yield row | _said(told, part)
        else:
            yield row | {"left_out": "the walk has not come so far", "weakens": WEAKENS[part]}


def _said(told: Told, part: Part) -> dict[str, Any]:
    outcome, decision = told.outcomes[part], told.decisions[part]
    return {
        "word": outcome.word,
        "directional": outcome.directional,
        "because": outcome.because,
        "exit_code": outcome.exit_code,
        "way": str(decision.way),
        "decision": decision.because,
        "seconds": told.seconds[part],
    }


def _ruled_out(told: Told) -> Iterator[dict[str, str]]:
    """What the parts looked for and did not find, or found not to matter."""
    for part in Part:
        if part in told.outcomes:
            for finding in told.outcomes[part].document.get("findings", []):
                if finding["negative"]:
                    said = {name: str(finding[name]) for name in ("statement", "strength", "rule")}
                    yield {"layer": part.label, **said}


def _file(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return {"path": str(path), "sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)}


# The verdict


def _judged(told: Told, whole: bool, interrupted: bool, problem: str) -> Judged:
    if not whole:
        return _partial(told, interrupted, problem)
    first, change = told.outcomes.get(Part.LAYER1), told.outcomes.get(Part.LAYER4)
    if first is not None and told.decisions[Part.LAYER1].way is Way.KERNELS:
        return _device_bound(first)
    if change is not None and change.word == "improvement" and told.chosen is not None:
        return _cause_found(told, change)
    if told.candidates:
        return _proposed(told, change)
    said = f"Layer 1: {first.headline}, {first.because}" if first is not None else _how_far(told)
    why = f"{said}; no switch of this server is known that the evidence points at{_failed(told)}"
    return Judged(Verdict(NONE, False, why, Exit.NO_CONCLUSION, READ_ON), Strength.WEAK, "no clear direction")


def _partial(told: Told, interrupted: bool, problem: str) -> Judged:
    code = Exit.INTERRUPTED if interrupted else Exit.NO_CONCLUSION
    because = "; ".join(part for part in (_how_far(told), problem) if part)
    return Judged(
        Verdict(PARTIAL, False, because, code, GO_ON), Strength.WEAK, "directional: the walk is not whole"
    )


def _how_far(told: Told) -> str:
    return f"{counted(len(told.decisions), 'part')} of {len(Part)} done, {len(told.left_out)} left out"


def _device_bound(first: Outcome) -> Judged:
    """A verdict, and the end of the search for host time: what Layer 1 leads to, with its commands."""
    strength, rule = _of_verdict(first)
    ncu = dict.fromkeys(one.get("ncu_command") for one in first.document.get("anatomy", []))
    known = "roofline" in first.document
    commands = [command for command in ncu if command]
    if not known:
        commands.append("perfkit roofline --gpu NAME --params N --dtype bf16 --context TOKENS --batch ROWS")
    leads = str(first.document["verdict"].get("next_step", ""))
    next_step = ". ".join(part for part in (leads, "; ".join(commands)) if part)
    because = f"Layer 1: {first.because}; the kernel tables and the roofline are in its section"
    return Judged(Verdict(DEVICE, False, because, Exit.OK, next_step), strength, rule)


def _cause_found(told: Told, change: Outcome) -> Judged:
    assert told.chosen is not None
    answers = told.outcomes.get(Part.LAYER5)
    after = f"; answers: {answers.word}" if answers is not None else "; answers were not compared"
    evidence = told.chosen.evidence[0]
    because = f"changed {told.chosen.name}. {evidence}. {_layer4(told, change)}{after}{_failed(told)}"
    code = Exit(answers.exit_code) if answers is not None and answers.exit_code in list(Exit) else Exit.OK
    strength, rule = _capped(told, *_of_verdict(change))
    return Judged(Verdict(FOUND, change.directional, because, code, _after_gain(answers)), strength, rule)


def _after_gain(answers: Outcome | None) -> str:
    if answers is not None and answers.word in ("identical", "equivalent"):
        return "keep the change, and walk once more: the next limit may stand elsewhere"
    return "do not keep the change before the answers are known to be the same"


def _proposed(told: Told, change: Outcome | None) -> Judged:
    first = told.candidates[0]
    tried = f" {_layer4(told, change)}" if change is not None else " It was not tried"
    because = f"it points at {first.name}. {first.evidence[0]}.{tried}{_failed(told)}"
    rule = "indirect or confounded: proposed from what was seen, not proved by a change"
    return Judged(
        Verdict(PROPOSED, True, because, Exit.NO_CONCLUSION, _how_to_try(told, change)), Strength.WEAK, rule
    )


def _layer4(told: Told, change: Outcome) -> str:
    arms = " (A against itself, as asked)" if told.asked.get("a_a") else ""
    return f"Layer 4{arms}: {change.headline}, {change.because}"


def _how_to_try(told: Told, change: Outcome | None) -> str:
    if change is not None:
        return str(change.document.get("verdict", {}).get("next_step") or READ_ON)
    return told.candidates[0].how


def _of_verdict(outcome: Outcome) -> tuple[Strength, str]:
    """Strength and rule of the finding that is the part's verdict."""
    findings: list[Mapping[str, Any]] = list(outcome.document.get("findings", []))
    for finding in findings:
        if finding.get("kind") == FindingKind.VERDICT:
            return Strength(finding["strength"]), f"{outcome.part.label}: {finding['rule']}"
    return Strength.WEAK, f"{outcome.part.label} left no finding of its verdict"


def _capped(told: Told, strength: Strength, rule: str) -> tuple[Strength, str]:
    """No more than medium where a part is missing that the change was chosen by."""
    lacking = [part.label for part in BUILT_ON if part in told.left_out or _has_failed(told, part)]
    if not lacking or strength is not Strength.STRONG:
        return strength, rule
    return Strength.MEDIUM, f"{rule}; no more than medium without {', '.join(lacking)}"


def _has_failed(told: Told, part: Part) -> bool:
    outcome = told.outcomes.get(part)
    return outcome is not None and outcome.failed


def _failed(told: Told) -> str:
    """Parts that could not be run, in words."""
    failed = [part.label for part in Part if _has_failed(told, part)]
    return f"; could not be run: {', '.join(failed)}" if failed else ""
