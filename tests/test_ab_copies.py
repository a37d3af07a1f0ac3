"""A recording counts once, whatever it is called and however often it is given; A/A runs are of an arm."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from layers.layer4_ab.history import history_of
from layers.layer4_ab.model import Arm
from tests.ab_builders import analysed, arm_a, fired, recorded
from tests.command_runs import document, run
from tests.test_ab_command import B_DATES, arm, both


def fired_in(made: dict[str, Any]) -> dict[str, str]:
    return {guard["code"]: guard["message"] for guard in made["guards"]}


def named(option: str, files: list[str]) -> list[str]:
    return [word for file in files for word in (option, file)]


def copied(files: list[str], *, laid_out: bool) -> list[str]:
    """The files again under other names; with another layout, too, if asked."""
    made = []
    for file in files:
        copy = Path(file).with_name(f"again-{Path(file).name}")
        if laid_out:
            copy.write_text(json.dumps(json.loads(Path(file).read_text()), indent=3))
        else:
            shutil.copy(file, copy)
        made.append(str(copy))
    return made


@pytest.mark.parametrize("laid_out", [False, True])
def test_a_copy_of_a_result_is_no_second_start(
    laid_out: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = arm(tmp_path, "a")[:2], arm(tmp_path, "b", 1.1, B_DATES)[:2]
    every = [*named("--a", a + copied(a, laid_out=laid_out)), *named("--b", b + copied(b, laid_out=laid_out))]
    made = document(capsys, "ab", *every)
    assert made["primary"]["n_pairs"] == 2 and made["verdict"]["exit_code"] == 3
    assert len([text for text in made["lost"] if "counts once" in text]) == 4 and "PK532" in fired_in(made)


def test_a_run_of_a_in_b_is_found_whatever_else_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = arm(tmp_path, "a"), arm(tmp_path, "b", 1.1, B_DATES, model_id="other")
    b = [*b[:3], *copied(a[3:], laid_out=True)]
    made = document(capsys, "ab", *named("--a", a), *named("--b", b), "--variable", "model")
    assert made["verdict"]["word"] == "invalid" and "a run in both arms" in fired_in(made)["PK504"]


def test_runs_of_another_configuration_set_no_floor() -> None:
    other = recorded(Arm.AGAIN, (100.0, 100.1, 100.0), facts={"tool": "t", "mode": "c"})
    found = analysed(aa=other)
    assert (
        found.floors == ()
        and "like neither arm (mode: a against c)" in fired(found)["floor-not-measured"].message
    )
    alike = recorded(Arm.AGAIN, (100.0, 100.1, 100.0), facts=dict(arm_a().rounds[0].facts))
    assert [floor.runs for floor in analysed(aa=alike).floors] == [3]


def test_earlier_a_a_runs_that_stand_beside_several_a_bs_count_once() -> None:
    floor = {"kind": "a-a-runs", "spread_pct": 2.0, "runs": 4, "freedom": 3}
    told = {"command": "ab", "machine": "m", "load": "8", "primary": {"metric": "x"}, "floors": [floor]}
    once, twice = (history_of([told] * times, "m", "8", "x")["x"] for times in (1, 2))
    assert once == twice and once.freedom == 3
    other = {**told, "floors": [{**floor, "spread_pct": 2.5}]}
    assert history_of([told, other], "m", "8", "x")["x"].freedom == 6


@pytest.mark.parametrize(
    "given",
    [["--pairs", "8"], ["--set", "a=b"], ["--resume"], ["--hot"], ["--no-stream"], ["--seconds", "3"]],
)
def test_recorded_results_take_no_option_of_a_run(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "ab", *both(tmp_path, 1.1), *given, "--no-record")
    assert code == 2 and f"leave out {given[0].replace('--no-', '--')}" in err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--set", "a=1", "--vs", "a=2", "--aa", "x.json"], "leave out --aa"),
        (["--set", "a=1", "--vs", "a=2", "--order", "ABBA"], "leave out --order"),
        (["--resume", "--pairs", "3"], "leave out --pairs"),
        (["--set", "a=1", "--vs", "a=2", "--metric", "speed"], "--metric speed: there are"),
        (["--set", "a=1", "--vs", "a=2", "--ledger", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--set", "a=1", "--vs", "a=2", "--trace-a", "nowhere.json"], "nowhere.json"),
    ],
)
def test_what_cannot_be_judged_is_refused_before_a_server_is_started(
    given: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "ab", *given, "--investigation", str(tmp_path / "inv"))
    assert code == 2 and says in err and not (tmp_path / "inv").exists()


def test_a_start_that_served_nothing_is_a_doubt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = arm(tmp_path, "a"), arm(tmp_path, "b", 1.1, B_DATES)
    broken = json.loads(Path(b[3]).read_text()) | {"request_throughput": 0.0, "output_throughput": 0.0}
    Path(b[3]).write_text(json.dumps(broken))
    floor = named("--aa", arm(tmp_path, "again"))
    made = document(capsys, "ab", *named("--a", a), *named("--b", b), *floor)
    assert made["primary"]["n_pairs"] == 3 and made["verdict"]["directional"]
    assert fired_in(made)["PK513"] == f"served nothing: b {b[3]}"


@pytest.mark.parametrize("broken", [(0, 1, 2, 3), (3,)])
def test_an_arm_without_output_is_no_faster_one(
    broken: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = arm(tmp_path, "a"), arm(tmp_path, "b", 1.1, B_DATES)
    for n in broken:
        Path(b[n]).write_text(json.dumps(json.loads(Path(b[n]).read_text()) | {"output_throughput": 0.0}))
    made = document(capsys, "ab", *named("--a", a), *named("--b", b))
    assert made["verdict"]["word"] == "invalid" and "no output at all" in fired_in(made)["PK526"]


def test_counts_that_vary_alike_in_both_arms_are_the_same_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def other(files: list[str], counts: tuple[int, ...]) -> list[str]:
        for file, count in zip(files, counts, strict=True):
            told = {"num_prompts": count, "completed": count, "total_input_tokens": 100 * count}
            Path(file).write_text(json.dumps(json.loads(Path(file).read_text()) | told))
        return files

    a = other(arm(tmp_path, "a"), (80, 160, 80, 160))
    b = other(arm(tmp_path, "b", 1.1, B_DATES), (80, 160, 80, 160))
    assert "PK522" not in fired_in(document(capsys, "ab", *named("--a", a), *named("--b", b)))
    other(b, (80, 80, 80, 160))
    made = document(capsys, "ab", *named("--a", a), *named("--b", b))
    assert fired_in(made)["PK522"].startswith("requests")


@pytest.mark.parametrize("rate", [1e-300, 5e-324, 1e-12, 1e14])
@pytest.mark.parametrize("pairs", [2, 4])
def test_rates_that_cannot_be_meant_are_no_fault(
    rate: float, pairs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = arm(tmp_path, "a")[:pairs], arm(tmp_path, "b", 1.1, B_DATES)[:pairs]
    Path(b[1]).write_text(json.dumps(json.loads(Path(b[1]).read_text()) | {"request_throughput": rate}))
    arms = [*named("--a", a), *named("--b", b)]
    assert document(capsys, "ab", *arms)["verdict"]["exit_code"] in (3, 4)
    code, out, _ = run(capsys, "ab", *arms, "--no-record")
    assert code in (3, 4) and max(map(len, out.splitlines())) < 300


def test_a_a_runs_at_another_load_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    floor = named("--aa", arm(tmp_path, "again", max_concurrency=16))
    made = document(capsys, "ab", *both(tmp_path, 1.1), *floor)
    assert made["floors"] == [] and "16 at a time (A/A runs)" in fired_in(made)["PK533"]
