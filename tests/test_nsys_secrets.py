"""An export holds the target's environment, command line and output; nothing of them leaves it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layers.evidence.result import to_document
from layers.layer1_gpu_busy.collect import collect_traces
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.thresholds import Thresholds
from perfkit.cli.app import main
from tests.writers.nsys import MACHINE, PID, Generation, NsysBuilder, global_id

SECRET = "hf_AbCdEfSecretToken"


def with_secrets(generation: Generation) -> NsysBuilder:
    """An export with the secret in every text that is the target's own, and every table that may hold one."""
    export = NsysBuilder(generation)
    for number in range(300):
        export.launch("gemm", call_ns=10_000 * number, start_ns=10_000 * number + 500, dur_ns=3_000)
    export.range("forward", 0, 900)
    export.os_call("poll", 1_000, 50)
    for name in ("HF_TOKEN", "AWS_SECRET_ACCESS_KEY", SECRET):
        export.row(
            "TARGET_INFO_SYSTEM_ENV",
            globalVid=MACHINE,
            devStateName=SECRET,
            name=name,
            nameEnum=1,
            value=SECRET,
        )
    export.option("PROCESS_0:ENVIRONMENT_VARIABLE", f"HF_TOKEN={SECRET}")
    export.option("PROCESS_0:COMMAND", f"serve --api-key {SECRET}")
    export.option("PROCESS_0:COMMAND_LINE_ARGUMENT", SECRET)
    export.option("PROCESS_0:WORKING_DIR", f"/home/{SECRET}")
    if generation.schema:
        for name in ("EXPORT_USER", "EXPORT_HOST", "EXPORT_PARAM_INPUT_PATH_ABS", "DERIVED_FROM"):
            export.export_option(name, SECRET)
    output = {
        "filenameId": export.string(f"/tmp/{SECRET}.log"),
        "contentId": export.string(f"token: {SECRET}\n"),
    }
    export.row("ProcessStreams", globalPid=global_id(PID), **output)
    export.row(
        "ANALYSIS_FILE", id=1, filename=SECRET, contentId=output["contentId"], globalPid=global_id(PID)
    )
    export.row("OSRT_FILE_ACCESS_DESCRIPTORS", fileAccessId=1, processId=1, filePath=f"/secrets/{SECRET}")
    export.row("GENERIC_EVENTS", rawTimestamp=1, timestamp=1, typeId=5, data=json.dumps({SECRET: SECRET}))
    export.message(f"Process was launched by the profiler: serve --api-key {SECRET}")
    export.message(f"Not all CUDA events might have been collected. {SECRET}")
    export.row("PROCESSES", globalPid=global_id(7), pid=7, name=SECRET)
    return export


@pytest.mark.parametrize("generation", Generation, ids=lambda g: g.name)
def test_no_document_holds_the_environment_or_the_output(generation: Generation, tmp_path: Path) -> None:
    path = with_secrets(generation).write(tmp_path / "export.sqlite")
    assert SECRET.encode() in path.read_bytes()
    collected = collect_traces([str(path)])
    document = to_document(judge_traces(collected.traces, Thresholds()))
    assert "gemm" in json.dumps(document)
    assert SECRET not in json.dumps(document)
    assert SECRET not in repr(collected)


def test_neither_the_terminal_nor_the_investigation_holds_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = with_secrets(Generation.V3_25).write(tmp_path / "export.sqlite")
    folder = tmp_path / "investigation"
    for arguments in ([], ["--json"]):
        main(["layer1", str(path), "--investigation", str(folder), *arguments])
    printed = capsys.readouterr()
    assert "gemm" in printed.out
    assert SECRET not in printed.out + printed.err
    stored = [file for file in folder.rglob("*") if file.is_file()]
    assert stored
    assert [file for file in stored if SECRET.encode() in file.read_bytes()] == []
