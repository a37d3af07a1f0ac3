"""A pair in one server: `perfkit ab --hot` changes its settings between the two runs, and says so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from layers.layer4_ab.collect_experiment import read_arms
from layers.layer4_ab.experiment import runs_of
from layers.layer4_ab.experiment_folder import AFTER, left_to_run, run_folder
from layers.layer4_ab.model import Arm
from parsers.errors import UsageError
from perfkit.cli.app import main
from tests.test_ab_experiment import COMMON, command, document, experiment, quick, ran

__all__ = ["command", "quick"]

SERVER = """
import json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

settings = {"work": sys.argv[2]}

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def say(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        models = {"data": [{"id": "tiny", "owned_by": "sample_engine"}]}
        self.say({"settings": settings} if self.path == "/server_info" else models)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/configure":
            settings.update(asked)
            print("changed to", asked, flush=True)
            return self.say({"settings": settings})
        time.sleep(float(settings["work"]) / 1000)
        self.say({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})

    def log_message(self, *_): ...

print("started", flush=True)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def living(tmp_path: Path) -> str:
    """The command of a server that changes its settings as it runs."""
    script = tmp_path / "living.py"
    script.write_text(SERVER)
    return f"{sys.executable} {script} {{port}} {{work}}"


def test_both_runs_of_a_pair_meet_one_server_and_the_next_pair_another(tmp_path: Path, living: str) -> None:
    made, folder = experiment(living, pairs=2, hot=True), tmp_path / "ab"
    assert ran(folder, made)[0] == ""
    keys = list(runs_of(made))
    logs = [run_folder(folder, key) / "server-1.log" for key in keys]
    assert [log.is_file() for log in logs] == [True, False, True, False]
    assert logs[0].read_text().count("started") == 1 and logs[0].read_text().count("changed to") == 1
    arms = read_arms(folder, made)
    a, b = (arms[arm].rounds for arm in (Arm.A, Arm.B))
    assert arms[Arm.A].hot and len(a) == len(b) == 2
    assert min(one.swept.throughput_rps for one in a) > max(one.swept.throughput_rps for one in b)
    assert {one.facts["settings.work"] for one in a} == {"5"}
    assert {one.facts["settings.work"] for one in b} == {"15"}


def test_a_cut_run_takes_the_other_of_its_server_with_it(tmp_path: Path, living: str) -> None:
    made, folder = experiment(living, pairs=2, hot=True), tmp_path / "ab"
    ran(folder, made)
    keys = list(runs_of(made))
    (run_folder(folder, keys[1]) / AFTER).unlink()
    assert left_to_run(folder, made) == keys[:2]
    assert ran(folder, made) == ("", [key.name for key in keys[:2]])


def test_a_server_that_cannot_change_a_setting_ends_the_experiment_in_words(
    tmp_path: Path, command: str
) -> None:
    with pytest.raises(UsageError, match="does not change work as it runs"):
        ran(tmp_path / "ab", experiment(command, hot=True))


def test_the_result_says_which_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str], living: str) -> None:
    arms = ["--launch", living, "--set", "work=5", "--vs", "work=60", "--pairs", "2", "--hot"]
    main(["ab", *arms, *COMMON, "--endpoint", "chat", "--investigation", str(tmp_path / "inv")])
    made = document(capsys)
    assert made["hot"] is True and made["primary"]["n_starts"] == 2
    assert made["primary"]["ratio"] < 0.5


def test_arms_of_two_commands_are_no_one_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], living: str
) -> None:
    arms = ["--launch", living, "--launch-b", f"{living} x", "--set", "work=5", "--hot"]
    assert main(["ab", *arms, *COMMON, "--investigation", str(tmp_path / "inv")]) == 2
    assert "--hot: one server for both arms" in capsys.readouterr().err
