"""NVTX ranges with a batch size in an export of nsys give the time of a step at each batch size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfkit.cli.app import main
from tests.writers.nsys import NsysBuilder

MS = 1_000_000
STEP_MS = 10
BATCHES = {4: 2, 8: 3}
"""Milliseconds on the device at each batch size."""


@pytest.mark.parametrize("registered", [False, True], ids=["text", "registered string"])
@pytest.mark.parametrize("label", ["forward[batch={}]", "step[DECODE bs={}]"])
def test_every_batch_size_has_its_time(
    tmp_path: Path, label: str, registered: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    built = NsysBuilder()
    for step, batch in enumerate([4, 8] * 5):
        at_ns = (1 + step) * STEP_MS * MS
        built.range(label.format(batch), at_ns, at_ns + 4 * MS, registered=registered)
        built.launch("gemm", call_ns=at_ns + MS // 2, start_ns=at_ns + MS, dur_ns=BATCHES[batch] * MS)
    path = built.write(tmp_path / "run.sqlite")
    main(["layer1", "--nsys", str(path), "--no-record", "--json"])
    (anatomy,) = json.loads(capsys.readouterr().out)["anatomy"]
    times = {row["batch_size"]: (row["steps"], row["busy_p50_ns"]) for row in anatomy["batches"]}
    assert times == {batch: (5, ms * MS) for batch, ms in BATCHES.items()}


def test_ranges_without_a_batch_size_give_none_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = NsysBuilder()
    for step in range(6):
        at_ns = (1 + step) * STEP_MS * MS
        built.range("forward", at_ns, at_ns + 4 * MS)
        built.launch("gemm", call_ns=at_ns + MS // 2, start_ns=at_ns + MS, dur_ns=MS)
    path = built.write(tmp_path / "run.sqlite")
    folder = tmp_path / "i"
    main(["layer1", "--nsys", str(path), "--investigation", str(folder)])
    main(["report", "--investigation", str(folder), "--no-figures"])
    page = (folder / "report.md").read_text()
    assert "time by batch size: no step's name carries a batch size" in page
