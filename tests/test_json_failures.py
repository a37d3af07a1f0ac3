"""With --json a command that comes to no result prints one document all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from layers.evidence.verdict import Exit
from perfkit.cli import app
from perfkit.cli.app import main
from tests.layer1_traces import steady


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The one document on stdout."""
    read: dict[str, Any] = json.loads(capsys.readouterr().out)
    return read


@pytest.mark.parametrize(
    ("arguments", "because"),
    [
        (["layer1", "gone.json"], "gone.json"),
        (["layer1"], "name a trace"),
        (["layer1", "--nosuch"], "No such option"),
        (["report", "--investigation", "gone"], "gone"),
        (["explain", "\udcff"], "called \udcff"),
    ],
)
def test_an_error_of_usage_or_input_is_a_document(
    arguments: list[str], because: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*arguments, "--json"])
    read = document(capsys)
    assert code == read["verdict"]["exit_code"] and read["command"] == arguments[0]
    assert read["verdict"]["word"] in ("error", "void") and because in read["verdict"]["because"]
    assert read["guards"] == read["measurements"] == read["findings"] == []


def test_a_sampling_without_a_gpu_is_void(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    if main(["layer1", "--live", "0.1", "--no-record", "--json"]) == Exit.OK:
        pytest.skip("this machine has a GPU")
    verdict = document(capsys)["verdict"]
    assert (verdict["word"], verdict["exit_code"]) == ("void", Exit.INVALID)
    assert "no GPU could be sampled" in verdict["because"]


@pytest.mark.parametrize(
    ("fault", "word", "exit_code"),
    [(KeyboardInterrupt(), "interrupted", Exit.INTERRUPTED), (RuntimeError("x"), "fault", Exit.INTERNAL)],
)
def test_a_fault_and_an_interrupt_are_documents_too(
    fault: BaseException,
    word: str,
    exit_code: Exit,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: object) -> int:
        raise fault

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(app, "_run", fail)
    assert main(["doctor", "--json"]) == exit_code
    verdict = document(capsys)["verdict"]
    assert (verdict["word"], verdict["exit_code"]) == (word, exit_code)


def test_a_result_that_was_shown_and_not_kept_stays_the_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    trace = steady().write(tmp_path / "trace.json")
    code = main(["layer1", str(trace), "--json", "--investigation", str(tmp_path / "file")])
    assert document(capsys)["verdict"]["word"] == "host-bound" and code != Exit.OK


def test_an_option_of_another_program_is_none_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nsys", "run", "--duration", "x", "--", "true", "--json"]) == Exit.USAGE
    assert capsys.readouterr().out == ""
