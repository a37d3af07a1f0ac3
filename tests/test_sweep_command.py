"""perfkit sweep as it is called: a server that runs, one that it starts, a control, a grid, a resume."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from layers.evidence.store import Investigation
from layers.evidence.verdict import Exit
from layers.layer3_sweep import subject
from layers.layer3_sweep.calibration import FILE, IDLE, Cost, Floor, machine_id
from perfkit import __version__
from perfkit.cli.app import main
from tests.load_builders import whole
from tests.load_servers import Asked, Script, answer, serving
from tests.sweep_runs import NOTHING_THERE, loaded

SHORT = ("--repeats", "1", "--requests", "20", "--warmup", "0", "--no-samplers", "--no-stream", "--json")
CLOSED = (*SHORT, "--max-concurrency", "2")
SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

settings = {"batch": int(sys.argv[2])}

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def say(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/v1/models":
            self.say({"data": [{"id": "tiny", "owned_by": "sample_engine"}]})
        else:
            self.say({"settings": settings})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/configure":
            settings.update(json.loads(body))
        self.say({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})

    def log_message(self, *_): ...

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture(autouse=True)
def known_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that was calibrated before."""
    cache = tmp_path / "cache" / "perfkit"
    cache.mkdir(parents=True)
    floor = Floor(machine_id(), __version__, "2026-08-05 10:00:00Z", (Cost(IDLE, 100, 0.5, 0.1, 0.2, 90),))
    (cache / FILE).write_bytes(msgspec.json.encode(floor))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def answering(_: Asked) -> Script:
    return [0.005, *whole()]


def swept(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> dict[str, Any]:
    """The document of a sweep that came to a result."""
    code = main(["sweep", "--investigation", str(folder), *options])
    out, err = capsys.readouterr()
    assert code in (Exit.OK, Exit.NO_CONCLUSION, Exit.INVALID), err
    document: dict[str, Any] = json.loads(out)
    assert document["command"] == "sweep" and "points" in document, document["verdict"]
    return document


def test_a_sweep_tells_its_points_and_a_resume_of_it_runs_nothing_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "investigation"
    with loaded(answering) as server:
        url = f"http://127.0.0.1:{server.port}"
        first = swept(capsys, folder, "--server", url, *CLOSED)
        asked = len(server.asked)
        again = swept(capsys, folder, "--resume", "--json")
        assert len(server.asked) == asked > 0
    with Investigation.open(folder, create=False) as investigation:
        logs = sorted((folder / "artifacts").rglob("requests-*.log"))
        lines = sum(len(log.read_bytes().splitlines()) for log in logs)
        assert lines == asked and [investigation.ingest(log).added for log in logs] == [0] * len(logs)
    repeats = [point for point in first["points"] if point["repeat"] == 1]
    assert [point["concurrency"] for point in repeats] == [1, 2]
    assert sum(point["ok"] for point in repeats) > 0
    assert [point for point in again["points"] if point["repeat"] == 1] == repeats
    assert first["sweep"]["client_floor"]["costs"][0]["loop_lag_p99_ms"] == 0.5
    assert {part["ended"] for part in first["sweep"]["parts"]} == {"done"}


@pytest.mark.parametrize(
    ("pipeline", "path"), [("tts", "/v1/audio/speech"), ("asr", "/v1/audio/transcriptions")]
)
def test_the_bundled_engine_that_runs_is_sent_what_its_pipeline_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pipeline: str, path: str
) -> None:
    """As layer1, stages and layer2 do, unasked; and a refusal is told in the server's own words."""
    about = {
        b"/v1/models": {"data": [{"id": "tiny", "owned_by": "sample_engine"}]},
        b"/server_info": {"settings": {"pipeline": pipeline}},
    }
    refusal = b'{"error": "21 words always fit"}'

    def script(asked: Asked) -> Script:
        found = next((said for where, said in about.items() if b" " + where + b" " in asked.head), None)
        return [answer(json.dumps(found).encode()) if found else answer(refusal, status="400 Bad Request")]

    with serving(script) as server:
        url = f"http://127.0.0.1:{server.port}"
        document = swept(capsys, tmp_path / "investigation", "--server", url, *CLOSED)
    sent = [asked.head.split()[1] for asked in server.asked if asked.head.startswith(b"POST")]
    assert set(sent) == {path.encode()}
    verdict = document["verdict"]
    assert (verdict["word"], verdict["exit_code"]) == ("void", Exit.INVALID)
    assert f"the server says 400 to {path}" in verdict["because"]
    assert "21 words always fit" in verdict["because"] and "--data" in verdict["next_step"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_sweep_that_is_interrupted_keeps_what_it_has_and_exits_130(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    def script(asked: Asked) -> Script:
        if asked.number == 30:
            os.kill(os.getpid(), number)
        return [0.005, *whole()]

    options = ("--repeats", "1", "--requests", "1000", "--warmup", "0", "--no-samplers", "--json")
    with loaded(script) as server:
        where = ("--server", f"http://127.0.0.1:{server.port}", "--concurrency", "1,2", "--no-stream")
        code = main(["sweep", "--investigation", str(tmp_path / "investigation"), *where, *options])
    document = json.loads(capsys.readouterr().out)
    assert code == Exit.INTERRUPTED == document["verdict"]["exit_code"]
    assert "--resume" in document["verdict"]["next_step"]
    assert document["sweep"]["parts"][0]["attempts"] >= 30


def test_an_endpoint_that_the_server_lacks_is_told_with_those_to_try(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with loaded(lambda _: list(NOTHING_THERE)) as server:
        url = f"http://127.0.0.1:{server.port}"
        verdict = swept(capsys, tmp_path / "investigation", "--server", url, *CLOSED)["verdict"]
    assert "the server says 404 to /v1/chat/completions" in verdict["because"]
    assert verdict["next_step"].startswith("try --endpoint completions, speech, transcriptions")


def test_a_control_is_swept_beside_and_the_ratio_is_told_at_every_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with loaded(answering) as server, loaded(lambda _: whole()) as control:
        document = swept(
            capsys,
            tmp_path / "investigation",
            *("--server", f"http://127.0.0.1:{server.port}"),
            *("--control", f"http://127.0.0.1:{control.port}", *CLOSED),
        )
    assert {point["arm"] for point in document["points"]} == {"", "control"}
    parts = [part["pass"] for part in document["sweep"]["parts"]]
    assert [name.partition("-")[0] for name in parts] == ["server", "control"] * 2
    repeats = [p for p in document["points"] if p["repeat"] == 1]
    standing = {(p["arm"], p["concurrency"]) for p in repeats if not p["void"]}
    both = [load for load in (1, 2) if {("", load), ("control", load)} <= standing]
    assert [row["load"] for row in document["control"]] == both


@pytest.mark.parametrize("kind", ["any", "sample_engine"])
def test_a_grid_starts_or_changes_a_server_for_each_cell_and_checks_what_it_says_of_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """A server of another kind tells no settings here, so that nothing confirms them."""
    script = tmp_path / "server.py"
    script.write_text(SERVER.replace("sample_engine", kind))
    document = swept(
        capsys,
        tmp_path / "investigation",
        *("--launch", f"{sys.executable} {script} {{port}} {{batch}}", "--param", "batch=4,8"),
        *("--endpoint", "chat", "--data", "text", "--max-concurrency", "1", *SHORT),
    )
    servers, ours = document["sweep"]["servers"], kind == "sample_engine"
    told = [str(server["info"]["settings"].get("batch")) for server in servers]
    assert told == (["4", "8"] if ours else ["None", "None"])
    assert len({server["url"] for server in servers}) == (1 if ours else 2)
    assert {point["settings"]["batch"] for point in document["points"]} == {"4", "8"}
    checked = [*document["guards"], *document["guards_clear"]]
    assert len([c for c in checked if c["code"] == "PK340"]) == (2 if ours else 0)
    fired = [c["code"] for c in document["guards"] if c["code"] in ("PK340", "PK341")]
    assert fired == ([] if ours else ["PK341", "PK341"])


def test_a_server_that_perfkit_started_and_that_ends_is_told_with_its_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends at its sixth request."""
    script = tmp_path / "server.py"
    ends = "        settings['batch'] -= 1\n        settings['batch'] or __import__('os')._exit(9)\n"
    script.write_text(SERVER.replace('        self.say({"choices"', ends + '        self.say({"choices"'))
    document = swept(
        capsys,
        tmp_path / "investigation",
        *("--launch", f"{sys.executable} {script} {{port}} 6", "--endpoint", "chat", "--data", "text"),
        *("--max-concurrency", "4", *SHORT),
    )
    (part,) = document["sweep"]["parts"]
    assert (part["ended"], part["error"]) == ("server-gone", "the server ended with code 9 (server-1.log)")
    assert any("the server ended with code 9" in lost for lost in document["lost"])


def test_a_study_that_there_is_not_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "none"
    assert main(["sweep", "--study", "none", "--investigation", str(folder)]) == Exit.USAGE
    assert "there are scheduling, scheduling:quick" in capsys.readouterr().err
    ignored = ("--study", "scheduling", "--after-shed", "retry", "--warmup", "5", "--no-stream")
    assert main(["sweep", *ignored, "--investigation", str(folder)]) == Exit.USAGE
    assert "leave out --no-stream, --after-shed, --warmup" in capsys.readouterr().err
    options = ("--study", "scheduling", "--seconds", "0", "--investigation", str(folder))
    assert main(["sweep", *options]) == Exit.USAGE
    assert "--seconds 0: give more than 0" in capsys.readouterr().err and not folder.exists()


def test_a_server_that_is_not_there_is_told_before_anything_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with loaded(answering) as server:
        gone = f"http://127.0.0.1:{server.port}"
    folder = tmp_path / "none"
    assert main(["sweep", "--server", gone, "--investigation", str(folder)]) == Exit.INVALID
    assert "is the server running?" in capsys.readouterr().err
    assert not folder.exists()


def test_without_torch_it_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "find_spec", lambda name: None)
    assert main(["sweep", "--investigation", str(tmp_path / "none")]) == Exit.USAGE
    said = capsys.readouterr().err
    assert "the bundled engine needs torch, fastapi, uvicorn: pip install 'perfkit[engine]'" in said
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--server", "nowhere"], "give an address such as"),
        (["--launch", "serve --port 1"], "put {port} into the command"),
        (["--max-concurrency", "0"], "--max-concurrency 0: 1 to"),
        (["--max-concurrency", "8", "--open-loop", "3"], "one of them"),
        (["--open-loop", "3", "--arrivals", "bursts"], "there are poisson, constant"),
        (["--endpoint", "telepathy"], "there are chat"),
        (["--repeats", "0"], "0 repeats"),
        (["--seconds", "0"], "--seconds 0: give more than 0"),
        (["--seconds", "nan"], "--seconds nan: give more than 0"),
        (["--seconds", "inf"], "--seconds inf: give more than 0, up to 1e+06"),
        (["--open-loop", "nan"], "--open-loop nan: give more than 0"),
        (["--open-loop", "inf"], "--open-loop inf: give more than 0, up to"),
        (["--minutes", "-1"], "--minutes -1: give more than 0"),
        (["--timeout", "nan"], "--timeout nan: give more than 0"),
        (["--warmup", "nan"], "--warmup nan: give 0 or more"),
        (["--client-processes", "0"], "--client-processes 0: give more than 0"),
        (["--path", "generate"], "a path begins with /"),
        (["--slo", "ttft:p100:200"], "give TIME:pQ:MS"),
        (["--slo", "ttft:p95:0"], "give TIME:pQ:MS"),
        (["--slo", "ttft<200"], "give TIME:pQ:MS"),
        (["--param", "batch"], "give NAME=VALUE"),
        (["--param", "batch=4,8", "--control", "http://127.0.0.1:2"], "not both"),
        (["--control", "http://127.0.0.1:1/"], "it is the server itself"),
        (["--set", "limits=raised"], "the bundled engine's"),
        (["--resume"], "is no investigation"),
        (["--resume", "--max-concurrency", "8"], "leave out --max-concurrency"),
        (["--resume", "--study", "scheduling"], "leave out --study"),
        (["--study", "scheduling"], "--study chooses the server, its settings and the load itself"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    server = [] if {"--server", "--launch", "--resume"} & set(options) else ["--server", "http://127.0.0.1:1"]
    folder = tmp_path / "none"
    assert main(["sweep", *server, *options, "--investigation", str(folder)]) == Exit.USAGE
    assert said in capsys.readouterr().err
    assert not folder.exists()
