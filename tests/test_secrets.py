"""Secrets of a command line are masked before they are kept, and a reader is told."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from layers.evidence.secrets import MASK, masked_arguments
from layers.evidence.store import DATABASE, Investigation
from perfkit.cli.app import main
from tests.evidence_builders import ENDED, RESULT, STARTED

SECRET = "hunter2"


@pytest.mark.parametrize(
    "command",
    [
        "perfkit sweep --api-key hunter2 --n 4",
        "perfkit sweep --api-key=hunter2",
        "perfkit sweep --password=hunter2",
        "perfkit sweep --server 'http://user:hunter2@host:8000/v1?x=1'",
        "perfkit sweep --server 'http://hunter2@host/'",
        "perfkit sweep --server 'http://host/?model=a&key=hunter2&x=1'",
        "perfkit run -- env HF_TOKEN=hunter2 python serve.py",
        "perfkit sweep --launch 'HF_TOKEN=hunter2 vllm serve m --api-key hunter2'",
        "perfkit sweep --header 'Authorization: Bearer hunter2'",
        """perfkit sweep --template '{"model": "m", "api_key": "hunter2"}'""",
    ],
)
def test_no_secret_is_left_in_a_command(command: str) -> None:
    masked = shlex.join(masked_arguments(shlex.split(command)))
    assert SECRET not in masked and MASK in masked


@pytest.mark.parametrize(
    "command",
    [
        "perfkit layer1 --trace rank0.json.gz rank1.json.gz --busy-only",
        "perfkit sweep --max-tokens 64 --server http://127.0.0.1:8000/v1?model=a",
        "perfkit run --tag schedule=engine.model:Model.forward --batch 'len(batch)' -- python serve.py",
        "perfkit preflight --diff 1 2 --declared environment.OMP_NUM_THREADS",
        "perfkit sweep --param radix_key=host,device --set=radix_key=host",
        "perfkit sweep --token-ids 1,2 --tokenizer Qwen/Qwen3 --author me@here",
    ],
)
def test_what_is_no_secret_stays_as_it_was(command: str) -> None:
    assert list(masked_arguments(shlex.split(command))) == shlex.split(command)


def test_store_and_report_hold_the_mask_and_say_so(tmp_path: Path) -> None:
    arguments = ("perfkit", "layer1", "--api-key", SECRET, *["trace.json"] * 1000)
    with Investigation.open(tmp_path) as investigation:
        investigation.record(RESULT, arguments, STARTED, ENDED)
    assert SECRET.encode() not in (tmp_path / DATABASE).read_bytes()
    assert main(["report", "--investigation", str(tmp_path)]) == 0
    report = (tmp_path / "report.md").read_text()
    assert f"--api-key '{MASK}'" in report and "stood what looks like a secret" in report
    assert max(map(len, report.splitlines())) < 4000 and "characters more, in investigation.db" in report


def test_an_error_about_an_address_is_told_without_its_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    address = f"ftp://user:{SECRET}@host/?key={SECRET}&model=m"
    assert main(["preflight", "--server", address, "--no-record", "--json"]) == 2
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err
    assert f"ftp://{MASK}@host/?key={MASK}&model=m" in shown.err
