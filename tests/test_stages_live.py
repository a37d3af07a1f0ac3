"""`perfkit stages --server --profile`: events on around a load, off again however that ends, idle is void."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from layers.collectors.server_adapters import request_events
from layers.collectors.server_adapters.metrics import ServerMeans
from layers.evidence.guard import Outcome
from layers.evidence.store import Investigation
from layers.layer3_sweep.driven import Driven
from layers.layer3_sweep.protocol import Tally
from layers.stages.collect_live import Beside, Live
from layers.stages.guards_live import CUT_SHORT, IDLE_SERVER, LOAD_FAILED, NOT_WRITTEN, LiveFacts
from tests.command_runs import run
from tests.conftest import REPOSITORY
from tests.control_servers import ControlServer, Page, control_server, models
from tests.engine_servers import serving
from tests.process_trees import wait_for
from tests.stage_builders import asr_run, written
from tests.writers.server_pages import Page as ServerPage
from tests.writers.server_pages import request

START, STOP = "POST /start_request_profile", "POST /stop_request_profile"
PATIENCE_S = 60.0
BUSY_PAGE = "sglang:num_running_reqs 5.0\nsglang:num_queue_reqs 2.0\n"
IDLE_PAGE = "sglang:num_running_reqs 0.0\nsglang:num_queue_reqs 0.0\n"


@pytest.fixture(autouse=True)
def soon_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_events, "STILL_S", 0.1)
    monkeypatch.setattr(request_events, "FIRST_FILE_S", 0.1)


def omni(events: Callable[[Path], object], **pages: Page) -> dict[str, Page]:
    """A server of SGLang-Omni: `events` fills its folder when a run is started."""

    def start(body: Any) -> Page:
        folder = Path(body["event_dir"])
        folder.mkdir(parents=True, exist_ok=True)
        events(folder)
        return {"run_id": body["run_id"]}

    return {"GET /v1/models": models("sglang-omni"), START: start, STOP: {}, **pages}


def some(folder: Path) -> None:
    """Events that name no run."""
    lines = asr_run(40)
    written(folder / "events_asr_7.jsonl", [{**one, "run_id": ""} for one in lines])


def none(folder: Path) -> None:
    (folder / "events_asr_7.jsonl").touch()


def profile(
    capsys: pytest.CaptureFixture[str], server: ControlServer, *more: str
) -> tuple[int, dict[str, Any], str]:
    arguments = ("stages", "--server", server.url, "--profile", "1", *more, "--json")
    code, out, err = run(capsys, *arguments)
    return code, json.loads(out), err


def test_events_are_on_for_the_time_asked_and_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "investigation"
    with control_server(omni(some, **{"GET /metrics": BUSY_PAGE})) as server:
        code, made, _ = profile(capsys, server, "--investigation", str(folder))
        (began,), (ended,) = server.calls(START), server.calls(STOP)
    assert (code, made["verdict"]["word"], made["runs"][0]["requests"]["complete"]) == (0, "stage-bound", 40)
    assert began["run_id"] == ended["run_id"] == made["recorded"]["run"]
    assert Path(began["event_dir"]).is_relative_to(folder.resolve())
    assert made["recorded"]["server_means"]["running"] == 5
    with Investigation.open(folder, create=False) as opened:
        (finding, *_) = opened.findings()
        (artifact,) = finding.finding.artifacts
        assert opened.locate(artifact).name == "events_asr_7.jsonl" and opened.locate(artifact).is_file()


def test_pk418_an_idle_server_is_void(capsys: pytest.CaptureFixture[str]) -> None:
    with control_server(omni(none, **{"GET /metrics": IDLE_PAGE})) as server:
        code, made, _ = profile(capsys, server, "--no-record")
    assert (code, made["verdict"]["word"], made["findings"]) == (4, "void", [])
    assert "PK418" in [g["code"] for g in made["guards"]]
    assert "0 requests in" in made["verdict"]["because"] and "0 running" in made["verdict"]["because"]


def test_pk419_a_server_that_works_and_writes_nothing_is_void(capsys: pytest.CaptureFixture[str]) -> None:
    with control_server(omni(none, **{"GET /metrics": BUSY_PAGE})) as server:
        code, made, _ = profile(capsys, server, "--no-record")
    assert code == 4 and "PK419" in [g["code"] for g in made["guards"]]
    assert "PK418" not in [g["code"] for g in made["guards"]]


def test_the_folder_that_a_server_writes_into_is_perfkits_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever owns it may remove what a server of another user leaves in it."""
    before: list[bool] = []

    def start(body: Any) -> Page:
        before.append(Path(body["event_dir"]).is_dir())
        some(Path(body["event_dir"]))
        return {"run_id": body["run_id"]}

    with control_server({**omni(some, **{"GET /metrics": BUSY_PAGE}), START: start}) as server:
        code, _, _ = profile(capsys, server, "--no-record")
    assert (before, code) == ([True], 0)


def test_files_that_are_elsewhere_are_pointed_at(capsys: pytest.CaptureFixture[str]) -> None:
    with control_server(omni(lambda _: None)) as server:
        code, made, err = profile(capsys, server, "--no-record")
        assert len(server.calls(STOP)) == 1
    assert code == 4 and "copy it here" in err and "--events-dir" in made["verdict"]["because"]


def test_a_server_that_makes_no_file_while_it_is_idle_is_void(capsys: pytest.CaptureFixture[str]) -> None:
    with control_server(omni(lambda _: None, **{"GET /metrics": IDLE_PAGE})) as server:
        code, made, _ = profile(capsys, server, "--no-record")
    assert code == 4 and "PK418" in [g["code"] for g in made["guards"]]


def test_runs_that_lie_in_the_folder_from_before_are_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An older run with more load, in the folder that --events-dir names."""

    def appended(body: Any) -> Page:
        old = asr_run(90, 5, run="old", queue=500.0)
        written(Path(body["event_dir"]) / "events_asr_7.jsonl", [*old, *asr_run(40, run=body["run_id"])])
        return {}

    with control_server({**omni(none), START: appended}) as server:
        _, made, _ = profile(capsys, server, "--no-record", "--events-dir", str(tmp_path))
    assert [(one["word"], one["requests"]["complete"]) for one in made["runs"]] == [("stage-bound", 40)]


def test_a_server_that_does_not_stop_is_named_with_how_to_stop_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with control_server(omni(some, **{STOP: 500})) as server:
        code, _, err = profile(capsys, server, "--no-record")
        run_id = server.calls(START)[0]["run_id"]
        wait_for(lambda: len(server.calls(STOP)) >= 2, "the keeper does not try, too")
    assert code == 4 and "may still be on" in err
    assert f"curl -X POST {server.url}/stop_request_profile" in err and run_id in err


def test_a_run_of_somebody_else_is_not_ended_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    with control_server(omni(some, **{START: 409})) as server:
        code, _, err = profile(capsys, server, "--no-record")
        ids = {body["run_id"] for body in server.calls(STOP)}
        assert ids <= {server.calls(START)[0]["run_id"]}
    assert code == 4 and "a run that is left over ends by: curl" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--server", "http://127.0.0.1:9"), "give --profile SECONDS too"),
        (("--profile", "5"), "give --server URL too"),
        (("--load", "4"), "--load N drives a server"),
        (("--server", "http://127.0.0.1:9", "--profile", "5", "e.jsonl"), "one of them"),
        (("--server", "http://127.0.0.1:9", "--profile", "5", "--data", "text"), "--load N"),
        (("--server", "http://127.0.0.1:9", "--profile", "0.1"), "1 to 3600 seconds"),
        (("--server", "http://127.0.0.1:9", "--profile", "5", "--load", "0"), "give 1 or more"),
    ],
)
def test_options_that_do_not_belong_together_are_one_line(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "stages", *arguments, "--no-record")
    assert (code, out, len(err.splitlines())) == (2, "", 1) and says in err


def recording(server: ControlServer) -> subprocess.Popen[str]:
    """perfkit in a process of its own, once the server's events are on."""
    command = [sys.executable, "-m", "perfkit", "stages", "--server", server.url, "--profile", "600"]
    process = subprocess.Popen(
        [*command, "--no-record", "--json"], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    try:
        wait_for(lambda: bool(server.calls(START)), "nothing was turned on")
    except BaseException:
        process.kill()
        raise
    return process


def test_a_killed_perfkit_does_not_leave_the_events_on() -> None:
    with control_server(omni(some)) as server, recording(server) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        wait_for(lambda: bool(server.calls(STOP)), "nothing was turned off")
        assert server.calls(STOP)[0]["run_id"] == server.calls(START)[0]["run_id"]


def test_ctrl_c_turns_the_events_off_and_judges_what_came() -> None:
    with control_server(omni(some)) as server, recording(server) as process:
        time.sleep(0.5)  # into the recording
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert len(server.calls(STOP)) == 1
    made = json.loads(out)
    assert process.returncode == 130 and made["verdict"]["word"] == "stage-bound"
    assert "PK420" in [g["code"] for g in made["guards"]] and made["recorded"]["cut_short"]


LIVE = Live(
    url="http://h",
    kind="sglang-omni",
    run="r",
    folder=Path(),
    asked_s=10.0,
    lasted_s=10.0,
    cut_short=False,
    driven=Driven(4, Tally(90, 5, 5), 10.0, ""),
    beside=Beside(ServerMeans(1.0, 0.0, None, None, None, {}, 20, False), (), ()),
    files=(),
)


def outcome(check: Callable[[LiveFacts], Outcome | None], live: Live, seen: int = 100) -> Outcome | None:
    return check(LiveFacts(live, seen))


def fires(check: Callable[[LiveFacts], Outcome | None], live: Live, seen: int = 100) -> bool:
    found = outcome(check, live, seen)
    return found is not None and found.fired


def test_a_sound_recording_fires_nothing() -> None:
    for guard in (IDLE_SERVER, NOT_WRITTEN, CUT_SHORT, LOAD_FAILED):
        assert not fires(guard.check, LIVE)


def test_a_load_that_fails_is_told() -> None:
    assert LOAD_FAILED.code == "PK421"
    failing = replace(LIVE, driven=Driven(4, Tally(80, 0, 20), 10.0, ""))
    gone = replace(LIVE, driven=Driven(4, Tally(90, 0, 0), 3.0, "server-gone: no answer"))
    shedding = replace(LIVE, driven=Driven(4, Tally(50, 50, 0), 10.0, ""))
    assert fires(LOAD_FAILED.check, failing) and fires(LOAD_FAILED.check, gone)
    assert not fires(LOAD_FAILED.check, shedding)
    assert not fires(LOAD_FAILED.check, replace(gone, cut_short=True))
    assert outcome(LOAD_FAILED.check, replace(LIVE, driven=None)) is None


def test_pk418_needs_no_metrics_to_see_that_nothing_came() -> None:
    alone = replace(LIVE, driven=None, beside=Beside(None, (), ()))
    assert fires(IDLE_SERVER.check, alone, seen=0) and not fires(IDLE_SERVER.check, alone, seen=1)


def test_the_bundled_engine_under_a_driven_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole requests alone: events begin before the load and end after what it sent."""
    with serving("--preset", "baseline") as server:
        url = f"http://127.0.0.1:{server.port}"
        arguments = ("stages", "--server", url, "--profile", "1.5", "--load", "2", "--json")
        code, out, _ = run(capsys, *arguments, "--investigation", str(tmp_path / "i"))
        assert server.post("/stop_request_profile").status == 400  # nothing is being recorded
    made = json.loads(out)
    tally = made["recorded"]["load"]["tally"]
    (one,) = made["runs"]
    assert code in (0, 3) and tally["ok"] > 0
    assert (one["requests"]["complete"], one["requests"]["cut"]) == (tally["ok"], 0)
    assert made["recorded"]["devices"]


def test_a_server_without_events_is_read_by_its_histograms(capsys: pytest.CaptureFixture[str]) -> None:
    """Every look at the page is after 80 more requests."""
    page = ServerPage()

    def metrics(_: Any) -> Page:
        for _ in range(80):
            page.observe(request(0.5, 0.1, 0.3))
        return page.text()

    with control_server({"GET /v1/models": models("vllm"), "GET /metrics": metrics}) as server:
        code, made, _ = profile(capsys, server, "--no-record")
    assert (code, made["verdict"]["word"], made["recorded"]["kind"]) == (0, "scheduling-bound", "vllm")
    assert made["queue_share"] == pytest.approx(0.5 / 0.9) and made["runs"][0]["in_flight"] > 0
    assert [Path(path).name for path in made["recorded"]["files"]] == [
        "metrics-before.prom",
        "metrics-after.prom",
    ]


def test_an_idle_server_without_events_is_void(capsys: pytest.CaptureFixture[str]) -> None:
    page = ServerPage()
    page.observe(request(0.5, 0.1, 0.3))
    with control_server({"GET /v1/models": models("vllm"), "GET /metrics": page.text()}) as server:
        code, made, _ = profile(capsys, server, "--no-record")
    assert (code, made["verdict"]["word"]) == (4, "void")
    assert {"PK418", "PK425"} <= {g["code"] for g in made["guards"]}


def test_a_server_without_metrics_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with control_server({"GET /v1/models": models("vllm")}) as server:
        code, _, err = profile(capsys, server, "--no-record")
    assert code == 4 and "/metrics: HTTP 404" in err
