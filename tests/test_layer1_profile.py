"""`perfkit layer1 --server URL --profile SECONDS`: started, stopped, its trace judged, whatever happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from layers.collectors.host_source import Look
from layers.collectors.server_adapters.bundled import BundledAdapter
from layers.collectors.server_adapters.metrics import ServerMeans
from layers.collectors.stacks.thread_cpu import CpuLook
from layers.evidence.finding import Finding, Strength
from layers.evidence.guard import Checked, Effect, apply_guards
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.layer1_gpu_busy.collect_profile import Profiled
from layers.layer1_gpu_busy.guards_profile import PROFILE_GUARDS, ProfileFacts
from layers.layer1_gpu_busy.judge_profile import with_profile
from layers.layer1_gpu_busy.profile_host import (
    HostBeside,
    HostLook,
    WaitedForCore,
    between_looks,
    look_at_host,
)
from layers.layer1_gpu_busy.thresholds import Word
from tests.command_runs import document, run
from tests.control_servers import Page, control_server, models
from tests.engine_servers import Server, serving
from tests.writers.chrome import TraceBuilder

BUSY = "sglang:num_running_reqs 4\nsglang:num_queue_reqs 2\n"
IDLE = "sglang:num_running_reqs 0\nsglang:num_queue_reqs 0\n"
STOP, START = "POST /stop_profile", "POST /start_profile"


def write_trace(folder: Path) -> Path:
    """Three hundred kernels of 50 us, each 100 us after the last."""
    trace = TraceBuilder()
    for n in range(300):
        trace.launch("gemm", call_ns=100_000 * n, start_ns=100_000 * n + 20_000, dur_ns=50_000)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "1-TP-0.trace.json.gz"
    trace.write(path)
    return path


def sglang(metrics: Page = BUSY, **other: Page) -> dict[str, Page]:
    """A server that writes a trace where it was told to."""
    told: list[Path] = []

    def start(body: Any) -> Page:
        told.append(Path(body["output_dir"]))
        return "started"

    def stop(_: Any) -> Page:
        write_trace(told[-1])
        return "stopped"

    pages: dict[str, Page] = {"GET /v1/models": models("sglang"), START: start, STOP: stop}
    return pages | {"GET /metrics": metrics} | other


def profile(url: str, *more: str) -> tuple[str, ...]:
    return ("layer1", "--server", url, "--profile", "1.5", *more)


def test_a_server_profiles_itself_and_its_trace_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with control_server(sglang()) as server:
        made = document(capsys, *profile(server.url))
        assert len(server.calls(START)) == len(server.calls(STOP)) == 1
    (device,) = made["devices"]
    assert device["device_op_ratio"] == pytest.approx(0.5, abs=0.01)
    said = made["profile"]
    assert (said["kind"], said["cut_short"], said["said"]) == ("sglang", False, {"running": 4, "waiting": 2})
    assert said["pages"] >= 1 and said["traces"][0].endswith("1-TP-0.trace.json.gz")


def test_its_trace_stays_in_the_investigation_and_is_what_the_numbers_rest_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "investigation"
    with control_server(sglang()) as server:
        code, out, _ = run(capsys, *profile(server.url, "--investigation", str(folder)))
    assert code in (Exit.OK, Exit.NO_CONCLUSION) and "sglang, 1." in out and "running 4, waiting 2" in out
    (trace,) = (folder / "artifacts").rglob("*.trace.json.gz")
    code, out, _ = run(capsys, "layer1", "--trace", str(trace), "--no-record")
    assert code in (Exit.OK, Exit.NO_CONCLUSION)


def test_pk184_a_trace_of_an_idle_server_is_void(capsys: pytest.CaptureFixture[str]) -> None:
    with control_server(sglang(IDLE)) as server:
        made = document(capsys, *profile(server.url))
    assert (made["verdict"]["word"], made["verdict"]["exit_code"]) == ("void", Exit.INVALID)
    assert "PK184" in made["verdict"]["because"] and made["findings"] == []


def test_a_server_that_says_nothing_of_itself_is_judged_by_its_trace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with control_server(sglang(404)) as server:
        made = document(capsys, *profile(server.url))
        _, out, _ = run(capsys, *profile(server.url, "--no-record"))
    assert made["profile"]["said"] == {} and made["verdict"]["word"] != "void"
    assert "says nothing of itself: it has no page of metrics" in " ".join(out.split())


def test_a_trace_that_is_elsewhere_is_pointed_at(capsys: pytest.CaptureFixture[str]) -> None:
    pages: dict[str, Page] = {
        "GET /v1/models": models("sample_engine"),
        "GET /server_info": {"settings": {}},
        START: {},
        STOP: {"trace_path": "/elsewhere/r_pid7.trace.json.gz", "event_files": []},
    }
    with control_server(pages) as server:
        code, _, err = run(capsys, *profile(server.url, "--no-record"))
    assert code == Exit.INVALID and "/elsewhere/r_pid7.trace.json.gz" in err and "copy it here" in err


def test_a_profiler_that_is_not_there_is_told_and_nobody_elses_is_stopped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with control_server(sglang(**{START: 409})) as server:
        code, _, err = run(capsys, *profile(server.url, "--no-record"))
        assert server.calls(STOP) == []
    assert code == Exit.INVALID and "HTTP 409" in err
    with control_server({}) as server:
        code, _, err = run(capsys, *profile(server.url, "--no-record"))
    assert code == Exit.INVALID and "no profiler" in err


def test_a_profiler_that_does_not_stop_is_named_with_how_to_stop_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with control_server(sglang(**{STOP: 500})) as server:
        code, _, err = run(capsys, *profile(server.url, "--no-record"))
        assert code == Exit.INVALID and f"curl -X POST {server.url}/stop_profile" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--profile", "5"], "--profile needs the server"),
        (["--server", "http://127.0.0.1:1"], "--server with --profile"),
        (["--server", "http://127.0.0.1:1", "--profile", "5", "--live", "5"], "one after the other"),
        (["--server", "http://127.0.0.1:1", "--profile", "0"], "--profile 0: 0.5 to 600 seconds"),
        (["--trace-dir", "x"], "says where --profile SECONDS writes"),
        (["--load", "4", "x.json"], "--load N goes with --server URL --profile SECONDS"),
        (["--server", "http://127.0.0.1:1", "--profile", "5", "--load", "0"], "--load 0: give 1 or more"),
        (["--header", "a=b", "x.json"], "--header goes with --profile"),
        (["--server", "http://127.0.0.1:1", "--profile", "5", "--header", "a"], "give NAME=VALUE"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "layer1", *options, "--no-record")
    assert code == Exit.USAGE and said in err


PROFILED = Profiled("u", "sglang", "r", 5.0, 5.0, False, (), None, "")
MEANS = ServerMeans(0.0, 0.0, None, None, None, {}, 5, False)


def of(profiled: Profiled, code: str, word: str = Word.HOST_BOUND) -> Checked | None:
    facts = ProfileFacts(profiled, word)
    return next((c for c in apply_guards(PROFILE_GUARDS, facts) if c.code == code), None)


def test_pk184_needs_a_server_that_says_so() -> None:
    assert of(PROFILED, "PK184") is None
    assert of(replace(PROFILED, beside=replace(MEANS, running=None, waiting=None)), "PK184") is None
    idle = of(replace(PROFILED, beside=MEANS), "PK184")
    assert idle is not None and idle.fired and idle.effect is Effect.VOID
    loaded = of(replace(PROFILED, beside=replace(MEANS, waiting=0.5)), "PK184")
    assert loaded is not None and not loaded.fired


def test_pk185_tells_a_profile_that_was_ended() -> None:
    for cut in (False, True):
        told = of(replace(PROFILED, cut_short=cut, lasted_s=2.0), "PK185")
        assert told is not None and told.fired is cut and told.message == "2.0 s of 5 s"


@pytest.mark.parametrize(
    ("foreign", "waited", "fired", "words"),
    [
        (0.1, 0.05, False, "others kept 0.1 of 4 cores busy"),
        (1.0, 0.05, True, "others kept 1 of 4 cores busy"),
        (0.1, 0.45, True, "thread device of process 9 waited for a CPU for 45.0 % of the profile"),
        (None, 0.45, True, "45.0 %"),
    ],
)
def test_pk186_a_server_that_had_no_core(
    foreign: float | None, waited: float, fired: bool, words: str
) -> None:
    host = HostBeside(4, foreign, WaitedForCore(9, "device", waited))
    told = of(replace(PROFILED, host=host), "PK186")
    assert told is not None and (told.fired, told.effect) == (fired, Effect.DIRECTIONAL)
    assert words in told.message
    assert of(PROFILED, "PK186") is None, "of a server that is not seen nothing is said"


CROWDED = HostBeside(4, 3.0, None)


@pytest.mark.parametrize(
    ("kind", "word", "effect"),
    [
        ("sglang", Word.DEVICE_BOUND, Effect.NOTE),
        ("sglang", Word.HOST_BOUND, Effect.DIRECTIONAL),
        ("sglang", Word.UNDECIDED, Effect.DIRECTIONAL),
        (BundledAdapter.kind, Word.DEVICE_BOUND, Effect.DIRECTIONAL),
    ],
)
def test_pk186_is_a_note_where_the_device_is_busy_all_the_same(kind: str, word: Word, effect: Effect) -> None:
    profiled = replace(PROFILED, kind=kind, host=CROWDED)
    told = of(profiled, "PK186", word)
    assert told is not None and (told.fired, told.effect) == (True, effect)
    verdict = Verdict(word, False, "why", Exit.OK if word is not Word.UNDECIDED else Exit.NO_CONCLUSION)
    judged = with_profile(Result("layer1", verdict), profiled).verdict
    hints = effect is Effect.DIRECTIONAL and word is not Word.UNDECIDED
    assert (judged.word, judged.directional) == (word, hints)


def test_a_profile_of_an_idle_server_voids_whatever_its_traces_say() -> None:
    finding = Finding("busy", Strength.MEDIUM, "rule", "advice")
    result = Result("layer1", Verdict(Word.DEVICE_BOUND, False, "why", Exit.OK), findings=[finding])
    judged = with_profile(result, replace(PROFILED, beside=MEANS))
    assert (judged.verdict.word, judged.verdict.exit_code) == (Word.VOID, Exit.INVALID)
    assert judged.verdict.because.startswith("PK184 idle-server-profiled: 0 running") and not judged.findings


def test_what_waited_between_two_looks_is_the_servers_own() -> None:
    def look(busy: int, ours: int, waited_ns: int) -> HostLook:
        threads = {7: CpuLook(busy, {7: ("main", 0, 0), 8: ("device", 0, waited_ns)})}
        return HostLook(Look(0, 2, 2 * busy, busy, ours, None), threads)

    assert between_looks(None, look(1, 1, 1)) is None
    found = between_looks(look(0, 0, 0), look(1000, 250, 600))
    assert found is not None and found.longest is not None
    assert (found.cores, found.foreign_cores) == (2, 0.75)
    assert (found.longest.pid, found.longest.thread) == (7, "device")
    assert found.longest.share == pytest.approx(0.6)
    assert look_at_host([]) is None


@pytest.fixture(scope="module")
def engine() -> Iterator[Server]:
    with serving() as running:
        yield running


def test_the_bundled_engine_profiles_itself_under_load(
    engine: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    over = threading.Event()

    def speak() -> None:
        while not over.is_set():
            engine.speak(words=4)

    speaking = threading.Thread(target=speak)
    speaking.start()
    try:
        made = document(capsys, *profile(f"http://127.0.0.1:{engine.port}"))
    finally:
        over.set()
        speaking.join()
    assert made["profile"]["kind"] == "sample-engine" and made["devices"][0]["events"] > 0
    assert made["verdict"]["word"] in ("host-bound", "device-bound", "undecided")
    assert made["profile"]["host"]["cores"] >= 1 and made["profile"]["host"]["longest"]["share"] >= 0
    assert made["profile"]["batches"].keys() <= {"ar", "vocoder"}


def test_perfkit_drives_the_load_itself_where_that_is_asked(
    engine: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = document(capsys, *profile(f"http://127.0.0.1:{engine.port}", "--load", "2"))
    load = made["profile"]["load"]
    assert (load["concurrency"], load["problem"], load["tally"]["errors"]) == (2, "", 0)
    assert load["tally"]["ok"] > 0 and made["devices"][0]["events"] > 0
