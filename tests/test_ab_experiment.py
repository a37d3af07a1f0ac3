"""Experiments that perfkit ab runs: a fresh server for each run, ABBA, snapshots, what a kill leaves."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from layers.collectors.load.plan import Load
from layers.layer3_sweep.calibration import FILE, IDLE, Cost, Floor, machine_id
from layers.layer3_sweep.collect import TOLD
from layers.layer3_sweep.subject import Subject
from layers.layer4_ab import run_experiment as runner
from layers.layer4_ab.collect_experiment import read_arms
from layers.layer4_ab.experiment import ArmPlan, Experiment, planned, runs_of
from layers.layer4_ab.experiment_folder import (
    AFTER,
    left_to_run,
    read_experiment,
    resumable,
    run_folder,
    write_experiment,
)
from layers.layer4_ab.model import Arm
from layers.layer4_ab.run_experiment import run_experiment
from layers.preflight.facts import Section
from layers.preflight.snapshot import Snapshot
from parsers.errors import StoreError, UsageError
from perfkit import __version__
from perfkit.cli import ab_arms
from perfkit.cli.app import main
from reports.lint import faults
from tests.report_builders import report_of
from tests.sweep_runs import Heard, Numbered, sweep_plan

SERVER = """
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

work_s, steps = float(sys.argv[2]) / 1000, 0

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def say(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.say(json.dumps({"data": [{"id": "tiny", "owned_by": "somebody"}]}).encode())

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(work_s)
        answer = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}
        self.say(json.dumps(answer).encode())

    def log_message(self, *_): ...

print("mode", os.environ.get("mode"), flush=True)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def looked(**facts: str) -> Snapshot:
    return Snapshot("2026-08-05T10:00:00+00:00", (Section("machine", dict(facts)),))


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that was calibrated before, and a machine that is looked at in no time."""
    cache = tmp_path / "cache" / "perfkit"
    cache.mkdir(parents=True)
    floor = Floor(machine_id(), __version__, "2026-08-05 10:00:00Z", (Cost(IDLE, 100, 0.5, 0.1, 0.2, 90),))
    (cache / FILE).write_bytes(msgspec.json.encode(floor))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(runner, "snapshot_of_machine", lambda: looked(governor="performance"))


@pytest.fixture
def command(tmp_path: Path) -> str:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    return f"{sys.executable} {script} {{port}} {{work}}"


class Following:
    """Keeps which runs began."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def run_begins(self, key: Any, total: int) -> Heard:
        self.begun.append(key.name)
        return Heard()


def experiment(command: str, pairs: int = 1, hot: bool = False, **other: Any) -> Experiment:
    """B works three times as long for an answer."""
    subject = Subject(command=command)
    each = sweep_plan(1, subject=subject, loads=(Load(2),), repeats=1, **other)
    a, b = (ArmPlan(subject, {"work": work}) for work in ("5", "15"))
    return planned(each, a, b, pairs, hot=hot)


def ran(folder: Path, made: Experiment, **other: Any) -> tuple[str, list[str]]:
    folder.mkdir(exist_ok=True)
    write_experiment(folder, made)
    following = Following()
    return run_experiment(made, folder, Numbered(), following, **other), following.begun


def test_each_run_has_a_server_of_its_own_and_the_arms_are_read_back(tmp_path: Path, command: str) -> None:
    made, folder = experiment(command), tmp_path / "ab"
    why, begun = ran(folder, made)
    assert why == "" and sorted(begun) == begun and {name[-1] for name in begun} == {"a", "b"}
    arms = read_arms(folder, made)
    a, b = (arms[arm].rounds for arm in (Arm.A, Arm.B))
    assert [len(a), len(b)] == [1, 1] and a[0].start != b[0].start
    assert arms[Arm.A].starts_told and arms[Arm.A].changes == ()
    assert {name for name in a[0].facts if a[0].facts[name] != b[0].facts[name]} == {"work"}
    assert a[0].swept.throughput_rps > b[0].swept.throughput_rps
    assert all((run_folder(folder, key) / "server-1.log").is_file() for key in runs_of(made))


def test_a_run_that_was_cut_is_put_aside_and_begun_anew(tmp_path: Path, command: str) -> None:
    made, folder = experiment(command), tmp_path / "ab"
    ran(folder, made)
    first, second = runs_of(made)
    (run_folder(folder, second) / AFTER).unlink()  # as if it was killed before the machine was looked at
    assert left_to_run(folder, made) == [second]
    assert "was not run, or cut" in read_arms(folder, made)[Arm.A].lost[0]
    assert ran(folder, made) == ("", [second.name])
    assert [path.name for path in (folder / "cut").iterdir()] == [f"{second.name}-1"]
    assert left_to_run(folder, made) == []
    assert first.name in {path.name for path in (folder / "runs").iterdir()}


def test_an_experiment_that_is_told_to_end_goes_on_later(tmp_path: Path, command: str) -> None:
    made, folder = experiment(command), tmp_path / "ab"
    assert ran(folder, made, told=lambda: True) == (TOLD, [])
    assert resumable(folder) == read_experiment(folder)
    why, begun = ran(folder, made)
    assert why == "" and len(begun) == 2


def test_a_machine_that_changed_takes_the_runs_out(tmp_path: Path, command: str) -> None:
    looks = iter([looked(governor="performance")] * 2 + [looked(governor="powersave")] * 2)
    made, folder = experiment(command), tmp_path / "ab"
    ran(folder, made, look=lambda: next(looks))
    _, second = runs_of(made)
    changed = read_arms(folder, made)[second.arm]
    assert "machine.governor: performance against powersave" in changed.changes[0]
    assert changed.rounds[0].excluded.startswith("the machine changed")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"a_a": True}, "the arms are the same"),
        ({"order": ()}, ""),
        ({"b": None}, "the arms are the same"),
    ],
)
def test_an_experiment_is_of_two_arms_that_differ(change: dict[str, Any], said: str, command: str) -> None:
    made = experiment(command)
    if change.get("b", made.b) is None:
        change = {"b": made.a}
    if not said:
        assert replace(made, **change).order == ()
        return
    with pytest.raises(UsageError, match=said):
        replace(made, **change)


def test_a_server_that_runs_already_is_no_arm(command: str) -> None:
    made = experiment(command)
    running = ArmPlan(Subject("http://127.0.0.1:1"), {})
    with pytest.raises(UsageError, match="starts a server for each run"):
        replace(made, a=running)


COMMON = ("--no-samplers", "--no-stream", "--at", "2", "--requests", "24", "--warmup", "0", "--json")


def test_settings_that_follow_from_the_variable_are_told_and_do_no_harm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """The script's second argument is another setting in the server's own words."""
    other = command.replace("{work}", "15")
    arms = ("--launch", command, "--launch-b", other, "--set", "work=5", "--pairs", "1")
    main(["ab", *arms, *COMMON, "--investigation", str(tmp_path / "inv")])
    made = document(capsys)
    assert [one["name"] for one in made["differences"]] == ["launch"]
    assert made["question"]["derived"][-3:] == ["settings", "server", "launch"]
    assert made["verdict"]["word"] != "invalid"


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


def test_the_command_runs_both_arms_and_judges_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    place = ["--investigation", str(tmp_path / "inv")]
    code = main(
        ["ab", "--launch", command, "--set", "work=5", "--vs", "work=60", "--pairs", "2", *COMMON, *place]
    )
    made = document(capsys)
    assert (made["verdict"]["word"], code) == ("regression", made["verdict"]["exit_code"])
    assert made["primary"]["n_pairs"] == 2 and made["primary"]["ratio"] < 0.5
    assert [one["name"] for one in made["differences"]] == ["work"]
    assert sorted(made["experiment"]["order"]) == ["a"] * 2 + ["b"] * 2
    assert "PK512" not in {g["code"] for g in made["guards"]}
    assert faults(report_of(tmp_path / "inv", commands=("ab",))) == []
    code = main(["ab", "--resume", "--json", *place])
    again = document(capsys)
    assert again["primary"]["ratios"] == made["primary"]["ratios"] and code == made["verdict"]["exit_code"]


def test_an_a_a_sets_a_floor(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    place = ["--investigation", str(tmp_path / "inv")]
    main(["ab", "--launch", command, "--set", "work=5", "--a-a", "--pairs", "2", *COMMON, *place])
    made = document(capsys)
    assert made["differences"] == [] and made["floors"][0]["runs"] == 4
    assert "PK521" not in {g["code"] for g in made["guards"]}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--set", "work=5"), "say how B differs"),
        (("--set", "work=5", "--vs", "work=6", "--at", "2.5"), "--at 2.5"),
        (("--set", "work=5", "--vs", "work=6", "--pairs", "0"), "--pairs 0"),
        (("--set", "work", "--vs", "work=6"), "--set work"),
        (("--set", "work=5", "--vs", "other=6"), "name the same settings"),
        (("--set", "work=5", "--vs", "work=6", "--a-a"), "leave out --vs"),
        (("--set", "work=5", "--vs", "work=5"), "the arms are the same"),
        (("--resume", "--set", "work=5"), "leave out --set"),
    ],
)
def test_what_cannot_be_run_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, more: tuple[str, ...], said: str
) -> None:
    place = ["--investigation", str(tmp_path / "inv")]
    assert main(["ab", "--launch", command, *more, *place]) == 2
    said_on = capsys.readouterr()
    assert said in said_on.err and said_on.out == ""


def test_nothing_to_go_on_with_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ab", "--resume", "--investigation", str(tmp_path)]) == 2
    assert "no A/B in" in capsys.readouterr().err


def test_an_experiment_goes_on_with_what_was_declared_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    place = ["--investigation", str(tmp_path / "inv")]
    arms = ("--launch", command, "--set", "work=5", "--vs", "work=6", "--pairs", "1")
    main(["ab", *arms, *COMMON, *place, "--margin", "50", "--ran", "mode"])
    made = document(capsys)
    main(["ab", "--resume", "--json", *place])
    again = document(capsys)
    assert again["question"] == made["question"] and again["treatment"]["evidence"]
    main(["ab", "--resume", "--json", *place, "--margin", "5"])
    assert document(capsys)["question"]["margin"] == 0.05


def test_a_run_whose_last_look_was_not_written_does_not_stand(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk, or at a kill between the beginning of the file and its end."""
    made, folder = experiment(command), tmp_path / "ab"
    write_bytes = Path.write_bytes

    def torn(path: Path, data: bytes) -> int:
        if path.stem != "after":
            return write_bytes(path, data)
        write_bytes(path, data[:20])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", torn)
        with pytest.raises(StoreError, match="No space left"):
            ran(folder, made)
    assert [key.number for key in left_to_run(folder, made)] == [1, 2]
    assert ran(folder, made)[0] == "" and read_arms(folder, made)[Arm.A].rounds


def test_data_that_changed_before_it_went_on_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    data, place = tmp_path / "asked.jsonl", ["--investigation", str(tmp_path / "inv")]
    lines = [f'{{"text": "question {n} of some words"}}\n' for n in range(30)]
    data.write_text("".join(lines))
    arms = ("--launch", command, "--set", "work=5", "--vs", "work=6", "--pairs", "1", "--data", str(data))
    main(["ab", *arms, *COMMON, *place])
    assert document(capsys)["verdict"]["word"] != "invalid"
    (folder,) = (tmp_path / "inv" / "artifacts").glob("ab-*")
    _, second = runs_of(read_experiment(folder))
    (run_folder(folder, second) / AFTER).unlink()
    data.write_text("".join(line.replace("question", "other") for line in lines))
    main(["ab", "--resume", "--json", *place])
    made = document(capsys)
    assert made["verdict"]["word"] == "invalid"
    assert "items" in next(g["message"] for g in made["guards"] if g["code"] == "PK520")


class AfterTheFirstPair:
    """In place of a signal: it comes once two runs stand."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def is_set(self) -> bool:
        return len(list(self.place.glob(f"artifacts/ab-*/runs/*/{AFTER}"))) >= 2

    def __enter__(self) -> AfterTheFirstPair:
        return self

    def __exit__(self, *_: object) -> None: ...


def test_pk540_an_experiment_that_was_interrupted_hints_and_exits_130(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "inv"
    arms = ("--launch", command, "--set", "work=5", "--vs", "work=60", "--pairs", "2")
    with monkeypatch.context() as signalled:
        signalled.setattr(ab_arms, "told_to_end", lambda: AfterTheFirstPair(place))
        assert main(["ab", *arms, *COMMON, "--investigation", str(place)]) == 130
    made = document(capsys)
    assert made["verdict"]["exit_code"] == 130 and "--resume" in made["verdict"]["next_step"]
    assert "PK540" in {g["code"] for g in made["guards"]} and made["primary"]["n_pairs"] == 1
    assert main(["ab", "--resume", "--json", "--investigation", str(place)]) != 130
    made = document(capsys)
    assert "PK540" not in {g["code"] for g in made["guards"]} and made["primary"]["n_pairs"] == 2


def test_an_arm_that_does_not_start_is_one_line_and_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    arms = ("--launch", command, "--launch-b", "false {port}", "--set", "work=5", "--pairs", "1")
    assert main(["ab", *arms, *COMMON, "--investigation", str(tmp_path / "inv")]) == 4
    said = capsys.readouterr()
    assert "no run of both arms stands" in said.err and json.loads(said.out)["verdict"]["word"] == "void"
