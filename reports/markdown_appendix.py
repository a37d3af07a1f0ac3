"""The end of a report: every value as it was recorded, the runs that do not count, commands and hashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from itertools import groupby
from urllib.parse import quote

from layers.evidence.measurement import Artifact
from layers.evidence.secrets import MASK
from reports.markdown import code, code_block, details, escape, inside, place, table
from reports.markdown_blocks import BlockRenderer, n_text
from reports.model import RawValue, Report, RunRow

LINES_SHOWN = 12
"""Lines of values of one run; a run of many devices has more."""
RAW_SHOWN = 30
DIGITS = 6
"""Of a recorded value; investigation.db has all of them."""

MASKED = f"In the place of each `{MASK}` stood what looks like a secret.\n\n"

WHERE = "`perfkit report --json` and the view measurement_details of investigation.db have"


def raw_values(r: Report, blocks: BlockRenderer) -> Iterator[str]:
    """Values of the run that is shown whole; those that were measured alike stand in one line."""
    for run_id, of_run in groupby(r.raw_values, key=lambda raw: raw.run_id):
        values = list(of_run)
        if run_id != r.verdicts[-1].run_id:
            yield f"Run {run_id}: {len(values):,} measurements, in `perfkit report --run {run_id}`.\n"
            continue
        groups = [list(alike) for _, alike in groupby(values, key=_alike)]
        lines = [f"- {_line(group, blocks)}\n" for group in groups[:LINES_SHOWN]]
        left = sum(map(len, groups[LINES_SHOWN:]))
        more = f"- {left:,} more: {WHERE} them\n" if left else ""
        yield details(f"Run {run_id}: {len(values):,} measurements", "".join(lines) + more)


def _alike(raw: RawValue) -> tuple[object, ...]:
    m = raw.measurement
    return m.scope, m.n, m.n_unit, m.artifact


def _line(group: Sequence[RawValue], blocks: BlockRenderer) -> str:
    first = group[0].measurement
    source = blocks.reference(first.artifact) if first.artifact else "not kept"
    whose = f"{inside(first.scope)}: " if first.scope else ""
    values = ", ".join(map(_value, group))
    methods = "; ".join(dict.fromkeys(raw.measurement.method for raw in group))
    return f"{whose}{values} (n = {n_text(first.n, first.n_unit)}; {inside(methods)}; {source})"


def _value(raw: RawValue) -> str:
    """A value, and the values that it was reduced from where they were kept."""
    m = raw.measurement
    kept = ", ".join(f"{value:.{DIGITS}g}" for value in m.raw[:RAW_SHOWN])
    more = f" and {len(m.raw) - RAW_SHOWN:,} more in investigation.db" if len(m.raw) > RAW_SHOWN else ""
    unit = "" if m.unit == "share" else f" {inside(m.unit)}"
    return f"{code(m.name)} {m.value:.{DIGITS}g}{unit}" + (f" (of {kept}{more})" if kept else "")


def dropped_runs(runs: Sequence[RunRow]) -> str:
    """The runs that are no part of the conclusions, and why."""
    dropped = [(str(run.id), escape(run.headline), escape(run.dropped)) for run in runs if run.dropped]
    if not dropped:
        return "**Dropped runs.** None.\n"
    listed = table(["run", "verdict", "why"], dropped)
    return f"**Dropped runs.** Their values are kept in investigation.db.\n\n{listed}"


def commands(runs: Sequence[RunRow], blocks: BlockRenderer) -> str:
    """How every run was called, and the files that it read: a link leads to each of them."""
    readers: dict[Artifact, list[str]] = {}
    for run in runs:
        for artifact in run.artifacts:
            readers.setdefault(artifact, []).append(f"[run {run.id}](#run-{run.id})")
    artifacts = (
        f"- {place(label.lower())}{label}: {_file(artifact, blocks)}, sha256 {code(artifact.sha256)}, "
        f"{artifact.size_bytes:,} bytes, of {', '.join(readers.get(artifact, []))}\n"
        for artifact, label in blocks.labels.items()
    )
    masked = MASKED if any(MASK in run.call.command_line for run in runs) else ""
    return f"{''.join(_command(run, blocks) for run in runs)}{masked}{''.join(artifacts)}"


def _file(artifact: Artifact, blocks: BlockRenderer) -> str:
    """Its path; a link where the file lies inside the investigation, which moves with the report."""
    path, shown = blocks.file_of(artifact), code(artifact.path)
    return f"[{shown}]({quote(path)})" if path else shown


def _command(run: RunRow, blocks: BlockRenderer) -> str:
    seconds = (run.call.ended - run.call.started).total_seconds()
    began = run.call.started.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    where = f"{began}, took {seconds:.1f} s, on {code(run.call.host)} in {code(run.call.working_folder)}"
    read = blocks.references(run.artifacts) or "no file"
    said = f"{place(f'run-{run.id}')}Run {run.id} ({escape(run.headline)}), {where}; read {read}:"
    return f"{said}\n{code_block(run.call.shown_command)}\n"
