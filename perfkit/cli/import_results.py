"""`perfkit import`: what another load tool measured, judged as a sweep of perfkit's own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from layers.evidence.wording import counted
from parsers.errors import UsageError
from perfkit.cli import log_options as logged
from perfkit.cli import options, output
from perfkit.cli import sweep_options as ask
from perfkit.cli.record import record_result
from perfkit.cli.sweep_view import show_sweep


def import_results(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Results, folders of them, or quoted glob patterns."),
    ] = None,
    smi: logged.Smi = None,
    dcgm: logged.Dcgm = None,
    utc_offset: logged.UtcOffset = "+00:00",
    slo: ask.SloOption = None,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """What did another load tool measure, and what kind of curve is it?

    Reads results of vllm bench serve (JSON, console log), sglang bench_serving, guidellm, aiperf,
    sglang-omni, llmperf, inference-perf, and tables (JSON, CSV). Logs of nvidia-smi or dcgmi of the same runs
    are joined by time.

    Example: perfkit import results/*.json --smi gpu.csv
    """
    from layers.collectors.named_files import files_directly_in, find_files
    from layers.layer3_sweep.imported_files import read_for_import
    from layers.layer3_sweep.imported_judge import judge_imported

    if not files:
        raise UsageError("name results: perfkit import FILE... (perfkit import --help says of which tools)")
    started, offset_ns = datetime.now(UTC), logged.offset_ns(utc_offset)
    paths, logs = find_files(files, files_directly_in), [*(smi or []), *(dcgm or [])]
    with output.progress(
        f"reading {counted(len(paths) + len(logs), 'file')}", len(paths) + len(logs)
    ) as step:
        read = read_for_import(paths, logs, offset_ns, step)
    result = judge_imported(read.results, read.logs, slos=ask.slos(slo), unread=read.unread).result
    try:
        if not no_record:
            record_result(investigation, result, started, read.artifacts)
    finally:  # what was found is shown even where it cannot be kept
        code = output.finish(result, as_json=json, show=show_sweep)
    return code
