"""`perfkit layer1 --live` as it is typed, on GPUs that a driver library plays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from layers.evidence.store import Investigation
from layers.evidence.verdict import Exit
from perfkit.cli.app import main
from tests import fake_nvml

pytestmark = pytest.mark.alone

Run = Callable[..., tuple[int, dict[str, Any]]]
SECONDS = "3"
"""Gives 20 samples at 100 ms, with ten to spare."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: Path, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Runs `perfkit layer1 --json` with these arguments while the library plays these settings."""

    def call(*arguments: str, **settings: str) -> tuple[int, dict[str, Any]]:
        fake_nvml.play(monkeypatch, library, **{"gpm": "1", "memory": "30000,0", **settings})
        code = main(["layer1", *arguments, "--json", "--investigation", str(tmp_path / "folder")])
        return code, json.loads(capsys.readouterr().out or "{}")

    return call


def fired(document: dict[str, Any]) -> set[str]:
    return {guard["name"] for guard in document["guards"]}


def test_a_gpu_is_sampled_judged_and_kept(run: Run, tmp_path: Path) -> None:
    code, document = run("--live", SECONDS, util="40,0")
    assert code == Exit.OK and document["verdict"]["word"] == "host-bound"
    busy = next(row for row in document["devices"] if row["device"] == 0)
    assert busy["method"] == "nvml" and busy["nvml_util_pct"] == pytest.approx(40)
    assert busy["sm_active_ratio"] == pytest.approx(0.2)
    (sampler,) = document["sampling"]["samplers"]
    assert sampler["source"] == "nvml" and sampler["cpu_share"] > 0
    with Investigation.open(tmp_path / "folder", create=False) as investigation:
        (kept,) = investigation.runs()
    recording = next(m["artifact"]["path"] for m in document["measurements"] if m["artifact"])
    assert Path(recording).is_relative_to(tmp_path / "folder" / "artifacts") and Path(recording).is_file()
    assert kept.document["sampling"] == document["sampling"]


def test_a_short_look_is_directional(run: Run) -> None:
    code, document = run("--live", "0.5", "--no-record", util="40")
    assert code == Exit.NO_CONCLUSION and document["verdict"]["directional"]


def test_only_the_chosen_gpu_is_judged(run: Run) -> None:
    _, document = run("--live", "0.5", "--no-record", "--gpu-index", "1", util="97,40")
    assert {row["device"] for row in document["devices"]} == {1}


def test_a_lost_gpu_and_missing_sm_activity_are_noted(run: Run) -> None:
    _, document = run("--live", "0.6", "--no-record", util="97,80", lost="1:2", gpm="")
    assert fired(document) >= {"gpu-lost", "sm-activity-not-measured"}


def test_a_hung_driver_is_off_cadence(run: Run) -> None:
    _, document = run("--live", "2", "--no-record", util="97,80", hang="1")
    assert "sampler-off-cadence" in fired(document)


def test_a_steady_sampler_has_clear_checks(run: Run) -> None:
    _, document = run("--live", "0.5", "--no-record", util="97")
    clear = {guard["name"] for guard in document["guards_clear"]}
    assert clear >= {"gpu-lost", "sm-activity-not-measured"}
    assert "sampler-costs-cpu" in clear | fired(document)  # which of the two, the machine decides


def test_without_a_gpu_it_says_so_and_is_invalid(
    monkeypatch: pytest.MonkeyPatch, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    fake_nvml.play(monkeypatch, library)
    assert main(["layer1", "--live", "5", "--no-record"]) == Exit.INVALID
    said = capsys.readouterr().err
    assert "no GPU could be sampled: nvml: the driver is there and sees no GPU; nvidia-smi: " in said


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "nan"])
def test_a_time_that_is_none_is_a_usage_error(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layer1", "--live", seconds, "--no-record"]) == Exit.USAGE
    assert "give the seconds to sample" in capsys.readouterr().err


def test_the_terminal_shows_what_the_sampling_cost(
    monkeypatch: pytest.MonkeyPatch, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_nvml.play(monkeypatch, library, util="97", memory="30000", gpm="1")
    main(["layer1", "--live", "0.4", "--no-record"])
    shown = capsys.readouterr().out
    assert "sampler    nvml every 100 ms for" in shown and "of one core" in shown
