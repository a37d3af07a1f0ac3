"""The report's model as Markdown: readable raw over ssh, as a page, and in a pull request.

Who reads no further than the summary was told the verdict, what to do, what it rests on and what it does not
show; everything after it is there to be checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from layers.evidence.store_rows import StoredGuard
from layers.evidence.wording import counted, cut_middle
from reports.device_lists import devices_text
from reports.markdown import code, escape, inside, table
from reports.markdown_appendix import commands, dropped_runs, raw_values
from reports.markdown_blocks import ARTIFACTS, ArtifactPath, BlockRenderer, FigurePath, n_text, sentence
from reports.markdown_findings import finding_details, summary_table
from reports.model import EnvironmentFact, Layer, Report, RunVerdict, Validity
from reports.walk_document import WHAT as WALK

TITLE_CHARACTERS = 160
VALUES_SHOWN = 6
"""Different values of one fact of the environment."""

MAYBE = "The question mark: directional, it may hint and never conclude."

CONTENTS = (
    *("Environment and layers", "Findings in detail", "What could not be measured"),
    *("Raw values and dropped runs", ARTIFACTS),
)


def render(report: Report, path_of: FigurePath, file_of: ArtifactPath = lambda _: "") -> str:
    """The whole report."""
    numbers = {figure.name: number for number, figure in enumerate(report.figures, start=1)}
    labels = {artifact: f"A{number}" for number, artifact in enumerate(report.artifacts, start=1)}
    return "\n".join(_sections(report, BlockRenderer(labels, numbers, path_of, file_of)))


def _sections(r: Report, blocks: BlockRenderer) -> Iterator[str]:
    environment, findings, unmeasured, raw, artifacts = CONTENTS
    yield f"# Findings: {escape(cut_middle(r.title, TITLE_CHARACTERS))}\n"
    yield from _summary(r, blocks)
    yield f"## {environment}\n{_environment(r)}{_list(_walked(r.layers))}"
    yield from (part for layer in r.layers if layer.blocks for part in _layer(layer, blocks))
    yield f"## {findings}\n{finding_details(r, blocks)}"
    yield f"## {unmeasured}\n{_list(r.not_measured)}"
    yield f"## {raw}\n{dropped_runs(r.runs)}"
    yield from raw_values(r, blocks)
    yield f"## {artifacts}\n{commands(r.runs, blocks)}"


def _summary(r: Report, blocks: BlockRenderer) -> Iterator[str]:
    yield _verdicts(r.verdicts, blocks)
    yield summary_table(r, blocks)
    if r.not_shown:
        yield f"**What this does not show.** {' '.join(map(escape, r.not_shown))}\n"
    yield _validity(r.validity, len(r.verdicts) > 1)
    links = (f"[{title}](#{title.lower().replace(' ', '-')})" for title in CONTENTS)
    yield f"{' · '.join(links)}\n"


# Verdict


def _verdicts(verdicts: Sequence[RunVerdict], blocks: BlockRenderer) -> str:
    if not verdicts:
        return "**Verdict.** None: no run counts; the dropped runs say why.\n"
    if len(verdicts) == 1:
        return _one_verdict(verdicts[0], blocks)
    if verdicts[0].what == WALK:
        return f"{_one_verdict(verdicts[0], blocks)}\n{_several(verdicts[1:], 'Its parts, and other runs')}"
    return _several(verdicts, "Verdicts")


def _several(verdicts: Sequence[RunVerdict], title: str) -> str:
    headers = ["run", "on", "verdict", "because", "n", "strength", "do next"]
    rows = [_verdict_row(verdict) for verdict in verdicts]
    maybe = f"\n{MAYBE}\n" if any(v.verdict.directional for v in verdicts) else ""
    different = f"{counted(len(verdicts), 'run')} on different files"
    intro = f"**{title}.** {different}, each with its own; none is averaged."
    return f"{intro}\n\n{table(headers, rows)}{maybe}"


def _one_verdict(v: RunVerdict, blocks: BlockRenderer) -> str:
    basis = f" *({blocks.basis(v.basis)})*" if v.basis else ""
    text = f"**Verdict: {escape(v.verdict.headline)}** {_because(v)}.{basis}"
    if v.strength:
        text += f"\n*Strength: {v.strength}: {inside(v.rule)}.*{f' {MAYBE}' if v.verdict.directional else ''}"
    text += "\n"
    if v.verdict.next_step:
        text += f"\n**Do next:** {escape(v.verdict.next_step)}\n"
    return text


def _verdict_row(v: RunVerdict) -> list[str]:
    n = n_text(v.basis.n, v.basis.n_unit) if v.basis else "nothing measured"
    said = [f"**{escape(v.verdict.headline)}**", _because(v)]
    return [str(v.run_id), code(v.what), *said, n, v.strength or "none", escape(v.verdict.next_step)]


def _because(v: RunVerdict) -> str:
    return ". ".join(sentence(text) for text in (v.verdict.because, v.chiefly) if text)


# Validity, environment


def _validity(validity: Sequence[Validity], several_runs: bool) -> str:
    """The checks that fired, each in a line, and by name those that did not."""
    fired = [v for v in validity if v.fired]
    lines = (f"- {_check(v)}: {_seen(v.fired, several_runs)}\n" for v in fired)
    explain = f"`perfkit explain {fired[0].code}` says what it means and what to do." if fired else "None."
    clear = [f"{v.code} {escape(v.name)}" for v in validity if not v.fired]
    not_there = f"- Looked for and not there: {', '.join(clear)}.\n" if clear else ""
    return f"**Checks that fired.** {explain}\n{''.join(lines)}{not_there}"


def _check(v: Validity) -> str:
    often = f", {len(v.fired)} of {v.asked}" if v.asked > 1 else ""
    return f"{v.code} {escape(v.name)} ({v.effect}{often})"


def _seen(fired: Sequence[StoredGuard], several_runs: bool) -> str:
    """What the first one saw, and on whom the others fired."""
    first, others = fired[0], [whose for g in fired[1:] if (whose := _whose(g, several_runs))]
    text = ": ".join(part for part in (_whose(first, several_runs), first.checked.message) if part)
    also = f" *(also on {inside(devices_text(others))})*" if others else ""
    return inside(text) + also


def _whose(stored: StoredGuard, several_runs: bool) -> str:
    parts = ([f"run {stored.run_id}"] if several_runs else []) + [stored.checked.scope]
    return ", ".join(part for part in parts if part)


def _environment(r: Report) -> str:
    """Facts of one name stand together, with the runs that know them where others do not."""
    if not r.environment:
        return "- nothing is known of where it ran\n"
    named = groupby(r.environment, key=lambda fact: fact.name)
    facts = (f"{escape(name)}: {_values(list(alike), len(r.verdicts))}" for name, alike in named)
    return f"- {'; '.join(facts)}\n"


def _values(facts: Sequence[EnvironmentFact], runs: int) -> str:
    told = [
        inside(fact.value) + (f" (run {', '.join(map(str, fact.runs))})" if len(fact.runs) < runs else "")
        for fact in facts
    ]
    more = f" and {len(told) - VALUES_SHOWN} more" if len(told) > VALUES_SHOWN else ""
    return ", ".join(told[:VALUES_SHOWN]) + more


# Layers


def _walked(layers: Sequence[Layer]) -> Iterator[str]:
    """Every layer: those that were run, and the others by why they were not."""
    yield f"run: {', '.join(layer.title for layer in layers if layer.blocks) or 'none'}"
    reasons = dict.fromkeys(layer.why_not_run for layer in layers if not layer.blocks)
    for reason in reasons:
        alike = (f"{x.title} ({x.question})" for x in layers if x.why_not_run == reason and not x.blocks)
        yield f"not run, {reason}: {'; '.join(alike)}"


def _layer(layer: Layer, blocks: BlockRenderer) -> Iterator[str]:
    how = f"**Method.** {inside(layer.method)} **Strength and why.** {sentence(layer.strength)}"
    yield f"### {escape(layer.title)}\n{how}\n"
    yield from blocks.render(layer.blocks)


def _list(texts: Iterable[str]) -> str:
    return "".join(f"- {escape(text)}\n" for text in texts)
