"""The report's model as Markdown: readable raw over ssh, as a page, and in a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from itertools import groupby

from layers.evidence.finding import Finding
from layers.evidence.measurement import Artifact
from layers.evidence.store_rows import StoredGuard
from layers.evidence.verdict import Exit
from reports.markdown import code, code_block, details, escape, shorten, table
from reports.markdown_blocks import ARTIFACTS, BlockRenderer, FigurePath, n_text, sentence
from reports.model import FindingRow, Layer, RawValue, Report, RunRow, RunVerdict

TITLE_CHARACTERS = 160
SHOWN_ALIKE = 8
"""Devices named in one row before the rest is counted; all of them are listed further down."""
MESSAGES_SHOWN = 3
RAW_SHOWN = 30

VOID = "None: a void result leaves no finding, neither for a change nor against one."
MAYBE = "The question mark: directional, it may hint and never conclude."

CONTENTS = (
    *("Validity", "Environment", "Layers", "Findings", "Negative findings", "What could not be measured"),
    *("What this does not show", "Raw values and dropped runs", ARTIFACTS),
)


def render(report: Report, path_of: FigurePath) -> str:
    """The whole report."""
    numbers = {figure.name: number for number, figure in enumerate(report.figures, start=1)}
    blocks = BlockRenderer(_labels(report.artifacts), numbers, path_of)
    return "\n".join(_sections(report, blocks))


def _sections(r: Report, blocks: BlockRenderer) -> Iterator[str]:
    yield f"# Findings: {escape(shorten(r.title, TITLE_CHARACTERS))}\n"
    yield _verdicts(r.verdicts, blocks)
    yield _contents()
    yield "## Validity\n"
    yield from _validity(r)
    yield "## Environment\n"
    yield _environment(r)
    yield "## Layers\n"
    yield _layer_table(r.layers)
    yield from (part for layer in r.layers if layer.blocks for part in _layer(layer, blocks))
    yield "## Findings\n"
    yield from _findings(r, r.findings, blocks)
    yield "## Negative findings\n\nLooked at, and nothing to change there.\n"
    yield from _findings(r, r.negative, blocks)
    yield f"## What could not be measured\n\n{_list(r.not_measured)}"
    yield f"## What this does not show\n\n{_list(r.not_shown)}"
    yield "## Raw values and dropped runs\n"
    yield from _raw(r, blocks)
    yield f"## {ARTIFACTS}\n"
    yield from _commands(r.runs, blocks)


def _labels(artifacts: Sequence[Artifact]) -> dict[Artifact, str]:
    return {artifact: f"A{number}" for number, artifact in enumerate(artifacts, start=1)}


def _contents() -> str:
    links = (f"[{title}](#{title.lower().replace(' ', '-')})" for title in CONTENTS)
    return f"{' · '.join(links)}\n"


# Verdict and validity


def _verdicts(verdicts: Sequence[RunVerdict], blocks: BlockRenderer) -> str:
    if not verdicts:
        return "**Verdict.** None: no recorded run counts; see the dropped runs for why.\n"
    if len(verdicts) == 1:
        return _one_verdict(verdicts[0], blocks)
    headers = ["run", "on", "verdict", "because", "n", "strength", "do next"]
    rows = [_verdict_row(verdict, blocks) for verdict in verdicts]
    maybe = f"\n{MAYBE}\n" if any(v.verdict.directional for v in verdicts) else ""
    intro = f"**Verdicts.** {len(verdicts)} runs on different files, each with its own; none is averaged."
    return f"{intro}\n\n{table(headers, rows)}{maybe}"


def _one_verdict(v: RunVerdict, blocks: BlockRenderer) -> str:
    text = f"**Verdict: {escape(v.verdict.headline)}** {sentence(v.verdict.because)}.\n"
    if v.basis:
        text += f"*{blocks.basis(v.basis)}*\n"
    if v.strength:
        text += f"\n*Strength: {v.strength}: {escape(v.rule)}.*"
        text += f" {MAYBE}\n" if v.verdict.directional else "\n"
    if v.verdict.next_step:
        text += f"\n**Do next:** {escape(v.verdict.next_step)}\n"
    return text


def _verdict_row(v: RunVerdict, blocks: BlockRenderer) -> list[str]:
    n = n_text(v.basis.n, v.basis.n_unit) if v.basis else "nothing measured"
    said = [f"**{escape(v.verdict.headline)}**", escape(v.verdict.because)]
    return [str(v.run_id), code(v.what), *said, n, v.strength or "none", escape(v.verdict.next_step)]


def _validity(r: Report) -> Iterator[str]:
    fired = [v for v in r.validity if v.fired]
    clear = [f"{v.code} {escape(v.name)}" for v in r.validity if not v.fired]
    messages = {v.code: list(dict.fromkeys(_message(g, len(r.verdicts) > 1) for g in v.fired)) for v in fired}
    if fired:
        rows = [
            (v.code, escape(v.name), v.effect, f"{len(v.fired)} of {v.asked}", _first(messages[v.code]))
            for v in fired
        ]
        yield table(["check", "name", "effect", "fired", "what was seen"], rows)
        yield f"`perfkit explain {fired[0].code}` says what a check means and what to do.\n"
    else:
        yield "No check fired.\n"
    if clear:
        yield f"Looked for and not there: {', '.join(clear)}.\n"
    if any(len(texts) > MESSAGES_SHOWN for texts in messages.values()):
        listed = [(check, text) for check, texts in messages.items() for text in texts]
        yield details("Every check that fired", table(["check", "what was seen"], listed))


def _message(stored: StoredGuard, several_runs: bool) -> str:
    run = [f"run {stored.run_id}"] if several_runs else []
    whose = [*run, *([stored.checked.scope] if stored.checked.scope else []), stored.checked.message]
    return escape(": ".join(whose))


def _first(messages: Sequence[str]) -> str:
    more = len(messages) - MESSAGES_SHOWN
    shown = "<br>".join(messages[:MESSAGES_SHOWN])
    return f"{shown}<br>and {more} more, listed below" if more > 0 else shown


def _environment(r: Report) -> str:
    if not r.environment:
        return "Nothing is known.\n"
    several = len(r.verdicts) > 1
    headers = ["what", "value", *(["runs"] if several else [])]
    rows = [
        [escape(f.name), escape(f.value), *([", ".join(map(str, f.runs))] if several else [])]
        for f in r.environment
    ]
    return table(headers, rows)


# Layers and findings


def _layer_table(layers: Sequence[Layer]) -> str:
    rows = [(escape(x.title), escape(x.question), _state(x)) for x in layers]
    return table(["layer", "asks", "state"], rows)


def _state(layer: Layer) -> str:
    return f"not run: {escape(layer.why_not_run)}" if layer.why_not_run else "run; see below"


def _layer(layer: Layer, blocks: BlockRenderer) -> Iterator[str]:
    yield f"### {escape(layer.title)}\n"
    yield f"**Method.** {escape(layer.method)}\n"
    yield from map(blocks.render, layer.blocks)
    yield f"**Strength and why.** {sentence(layer.strength)}\n"


def _findings(r: Report, rows: Sequence[FindingRow], blocks: BlockRenderer) -> Iterator[str]:
    if not rows:
        void = r.verdicts and all(v.verdict.exit_code is Exit.INVALID for v in r.verdicts)
        yield f"{VOID if void else 'None.'}\n"
        return
    headers = ["#", "finding", "evidence", "strength", "recommendation"]
    yield table(headers, [_finding_row(r, row, blocks) for row in rows])
    yield f"**Why these strengths.**\n\n{_list(_by_rule(rows))}"
    if disproofs := [f"{row.number}: {row.first.disproof}" for row in rows if row.first.disproof]:
        yield f"**What would disprove them.**\n\n{_list(disproofs)}"


def _finding_row(r: Report, row: FindingRow, blocks: BlockRenderer) -> list[str]:
    """What all findings have in common, a run or a device, is not said again in every row."""
    first = row.first
    run = f"run {row.run_id}: " if len(r.verdicts) > 1 else ""
    statement = escape(run + first.statement.removeprefix(f"{r.only_scope}: ")) + _alike(row.findings[1:])
    advice = escape(first.recommendation)
    return [str(row.number), statement, blocks.evidence(first.measurements), str(first.strength), advice]


def _alike(others: Sequence[Finding]) -> str:
    """Which further devices get the same recommendation with the same strength."""
    if not others:
        return ""
    scopes = [f.measurements[0].scope for f in others if f.measurements]
    more = f" and {len(scopes) - SHOWN_ALIKE} more" if len(scopes) > SHOWN_ALIKE else ""
    named = escape("; ".join(scopes[:SHOWN_ALIKE]))
    return f"<br>*Also on {named}{more}: their numbers are under Raw values.*"


def _by_rule(rows: Sequence[FindingRow]) -> Iterator[str]:
    """Neighbours whose strength has the same reason share a line."""
    for reason, alike in groupby(rows, key=lambda row: f"{row.first.strength}: {row.first.rule}"):
        yield f"{', '.join(str(row.number) for row in alike)}: {reason}"


def _list(texts: Iterable[str]) -> str:
    return "".join(f"- {escape(text)}\n" for text in texts)


# Raw values, commands, artifacts


def _raw(r: Report, blocks: BlockRenderer) -> Iterator[str]:
    for run_id, values in groupby(r.raw_values, key=lambda raw: raw.run_id):
        rows = [_raw_row(value, blocks) for value in values]
        headers = ["measurement", "of", "value", "n", "method", "from"]
        yield details(f"Run {run_id}: {len(rows)} measurements", table(headers, rows, right=[2]))
    yield from _shared_rows([*r.findings, *r.negative])
    dropped = [(str(run.id), escape(run.headline), escape(run.dropped)) for run in r.runs if run.dropped]
    listed = "\n\n" + table(["run", "verdict", "why"], dropped) if dropped else " None.\n"
    yield f"**Dropped runs.**{listed}"


def _shared_rows(rows: Sequence[FindingRow]) -> Iterator[str]:
    """Every finding of the rows that hold several."""
    listed = [
        (str(row.number), escape(finding.statement), escape(finding.rule))
        for row in rows
        if len(row.findings) > 1
        for finding in row.findings
    ]
    if listed:
        yield details("Findings that share a row, one by one", table(["#", "finding", "rule"], listed))


def _raw_row(raw: RawValue, blocks: BlockRenderer) -> list[str]:
    """The value with all its digits, and the values that it was reduced from where they were kept."""
    m = raw.measurement
    source = blocks.reference(m.artifact) if m.artifact else "not kept"
    kept = ", ".join(f"{value!r}" for value in m.raw[:RAW_SHOWN])
    more = f" and {len(m.raw) - RAW_SHOWN:,} more in investigation.db" if len(m.raw) > RAW_SHOWN else ""
    value = f"{m.value!r} {escape(m.unit)}" + (f"<br>of {kept}{more}" if kept else "")
    return [code(m.name), escape(m.scope), value, n_text(m.n, m.n_unit), escape(m.method), source]


def _commands(runs: Sequence[RunRow], blocks: BlockRenderer) -> Iterator[str]:
    for run in runs:
        seconds = (run.call.ended - run.call.started).total_seconds()
        began = run.call.started.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        where = f"{began}, took {seconds:.1f} s, on {code(run.call.host)} in {code(run.call.working_folder)}"
        read = blocks.references(run.artifacts) or "no file"
        yield f"Run {run.id} ({escape(run.headline)}), {where}; read {read}:\n"
        yield code_block(run.call.command_line)
    rows = [
        (label, code(artifact.path), code(artifact.sha256), f"{artifact.size_bytes:,}")
        for artifact, label in blocks.labels.items()
    ]
    yield table(["artifact", "path", "sha256", "bytes"], rows, right=[3])
