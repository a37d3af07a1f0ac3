"""The engine's HTTP interface, over a real socket."""

from __future__ import annotations

import gzip
import io
import json
import socket
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from sample_engine.models.vocoder_sizes import SAMPLE_RATE_HZ, SAMPLES_A_FRAME
from sample_engine.observe.vocabulary import EventName
from sample_engine.server.body_limit import MAX_BODY_BYTES
from sample_engine.server.wav import UNKNOWN_BYTES
from sample_engine.stages.preprocess import FRAMES_A_WORD
from tests.engine_servers import SPEECH, Server, serving

WORDS = 3
SAMPLES = WORDS * FRAMES_A_WORD * SAMPLES_A_FRAME
HEADER_BYTES = 44


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def pcm(server: Server) -> bytes:
    return server.speak(WORDS, response_format="pcm").data


def test_a_server_that_serves_is_healthy_and_lists_its_model(server: Server) -> None:
    assert (server.get("/health").status, server.get("/health").json) == (200, {"status": "ok"})
    assert [one["id"] for one in server.get("/v1/models").json["data"]] == ["sample-tts"]


def test_speech_is_a_wav_file_of_the_length_that_the_text_asks_for(server: Server, pcm: bytes) -> None:
    reply = server.speak(WORDS)
    assert (reply.status, reply.headers["content-type"]) == (200, "audio/wav")
    with wave.open(io.BytesIO(reply.data)) as file:
        assert file.getparams()[:4] == (1, 2, SAMPLE_RATE_HZ, SAMPLES)
        assert file.readframes(SAMPLES) == pcm


def test_streamed_speech_is_the_same_audio(server: Server, pcm: bytes) -> None:
    assert server.speak(WORDS, response_format="pcm", stream=True).data == pcm
    assert server.speak(WORDS, response_format="pcm", stream_format="audio").data == pcm


def test_a_streamed_wav_says_that_its_length_is_unknown(server: Server, pcm: bytes) -> None:
    data = server.speak(WORDS, stream=True).data
    assert int.from_bytes(data[HEADER_BYTES - 4 : HEADER_BYTES], "little") == UNKNOWN_BYTES
    assert data[HEADER_BYTES:] == pcm


def test_a_seed_decides_what_a_temperature_draws(server: Server, pcm: bytes) -> None:
    drawn = [server.speak(WORDS, response_format="pcm", temperature=1, seed=seed).data for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1]
    assert len({pcm, *drawn}) == 3


def test_a_completion_has_as_many_tokens_as_it_may(server: Server) -> None:
    reply = server.post("/v1/completions", {"prompt": "one two", "max_tokens": 4}).json
    assert reply["usage"] == {"prompt_tokens": 2, "completion_tokens": 4, "total_tokens": 6}
    assert reply["choices"][0]["finish_reason"] == "length"


def test_a_streamed_completion_is_the_same_text_in_events(server: Server) -> None:
    body = {"prompt": ["one two"], "max_tokens": 4}
    text = server.post("/v1/completions", body).json["choices"][0]["text"]
    asked = {**body, "stream": True, "stream_options": {"include_usage": True}}
    *events, done, nothing = server.post("/v1/completions", asked).data.decode().split("\n\n")
    data = [json.loads(one.removeprefix("data: ")) for one in events]
    assert "".join(one["choices"][0]["text"] for one in data[:-1]) == text
    assert [one["choices"][0]["finish_reason"] for one in data[:-1]] == [None] * 4 + ["length"]
    assert (data[-1]["usage"]["completion_tokens"], done, nothing) == (4, "data: [DONE]", "")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"input', 400, "invalid_request"),
        (b"", 400, "invalid_request"),
        ([], 400, "invalid_request"),
        ({"input": 3}, 400, "invalid_request"),
        ({"input": " \n"}, 400, "invalid_request"),
        ({"input": "x" * 5000}, 400, "invalid_request"),
        ({"input": "word " * 100}, 400, "rejected"),
        ({"input": "a", "response_format": "mp3"}, 400, "invalid_request"),
        ({"input": "a", "temperature": -1}, 400, "invalid_request"),
        (b'{"input": "a", "temperature": NaN}', 400, "invalid_request"),
        ({"input": "a", "seed": 1 << 70}, 400, "invalid_request"),
        ({"input": "a", "model": "tts-1"}, 404, "model_not_found"),
    ],
)
def test_what_cannot_be_served_is_the_clients_fault_and_says_so(
    server: Server, body: Any, status: int, code: str
) -> None:
    assert server.post(SPEECH, body).error == (status, code)


@pytest.mark.parametrize(
    "body",
    [{"prompt": ["a", "b"]}, {"prompt": "a", "n": 2}, {"prompt": "a", "max_tokens": -1}, {"prompt": ""}],
)
def test_completions_that_cannot_be_served_are_refused(server: Server, body: dict[str, Any]) -> None:
    assert server.post("/v1/completions", body).error == (400, "invalid_request")


def test_unknown_paths_and_methods_are_errors_of_the_same_shape(server: Server) -> None:
    assert server.get("/v1/nothing").error == (404, "invalid_request")
    assert server.get(SPEECH).error == (405, "invalid_request")


def test_a_body_that_is_too_large_is_refused_whether_its_length_is_announced_or_not(server: Server) -> None:
    assert server.post(SPEECH, bytes(MAX_BODY_BYTES + 1)).error == (413, "body_too_large")
    connection = socket.create_connection(("127.0.0.1", server.port))
    connection.sendall(f"POST {SPEECH} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    connection.sendall(f"{MAX_BODY_BYTES + 1:x}\r\n".encode() + bytes(MAX_BODY_BYTES + 1) + b"\r\n0\r\n\r\n")
    assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
    connection.close()


def test_this_pipeline_cannot_transcribe(server: Server) -> None:
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n--x--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert server.call("POST", "/v1/audio/transcriptions", form, headers).error == (501, "pipeline")


def test_a_client_that_leaves_cancels_its_request(server: Server) -> None:
    before = server.metric("requests_total", end="cancelled")
    for stream in (False, True):
        server.settle()
        with server.device_stopped():
            body = json.dumps({"input": "word " * 7, "stream": stream}).encode()
            head = f"POST {SPEECH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
                server.wait_for("requests_running", 1)
            server.wait_for("requests_total", before + 1 + stream, end="cancelled")
    assert server.speak().status == 200


def test_metrics_count_what_was_served(server: Server) -> None:
    before, frames = server.metric("requests_total", end="done"), server.metric("frames_total")
    server.speak(WORDS)
    assert server.metric("requests_total", end="done") == before + 1
    assert server.metric("frames_total") == frames + WORDS * FRAMES_A_WORD
    assert server.metric("queue_wait_seconds_count", stage="ar") >= before + 1


def test_the_server_tells_its_settings_and_where_they_came_from(server: Server) -> None:
    info = server.get("/server_info").json
    assert info["device"] == "emulated (CPU)"
    assert (info["settings"]["size"], info["sources"]["size"]) == ("tiny", "environment")
    assert info["settings"]["max_running_requests"] == 32
    assert info["stages"]["ar"]["promise"] == "any shape"


def test_switches_change_without_a_restart(server: Server, pcm: bytes) -> None:
    assert server.post("/configure", {"preset": "baseline", "policy": "unified"}).status == 200
    assert server.get("/server_info").json["settings"]["lookahead"] is False
    assert server.speak(WORDS, response_format="pcm").data == pcm
    assert server.post("/configure", {"preset": "optimized", "cuda_graph": False}).status == 200
    assert server.speak(WORDS, response_format="pcm").data == pcm


def test_a_change_that_is_not_possible_is_refused_with_the_reason(server: Server) -> None:
    refused = server.post("/configure", {"size": "small"})
    assert refused.error == (409, "refused")
    assert "the weights are made at start" in refused.json["error"]["message"]
    assert server.post("/configure", {"nothing": 1}).error == (400, "invalid")
    assert server.post("/configure", [1]).error == (400, "invalid_request")


def events_of(stopped: Any) -> list[Any]:
    """All stage events of a run, in the order of time."""
    lines = [line for file in stopped["event_files"] for line in Path(file).read_text().splitlines()]
    return sorted(map(json.loads, lines), key=lambda one: one["timestamp_ns"])


def test_a_profile_is_a_trace_of_the_device_and_the_events_of_both_processes(
    server: Server, tmp_path: Path
) -> None:
    place = {"trace_path_template": f"{tmp_path}/{{run_id}}_{{stage}}", "event_dir": str(tmp_path / "events")}
    assert server.post("/start_profile", {"run_id": "r1", **place}).json["run_id"] == "r1"
    assert server.post("/start_profile", place).error == (409, "run_in_progress")
    server.speak(WORDS)
    stopped = server.post("/stop_profile").json
    trace = json.loads(gzip.decompress(Path(stopped["trace_path"]).read_bytes()))
    engine_pid = server.processes["engine"]
    assert Path(stopped["trace_path"]).name == f"r1_engine_pid{engine_pid}_rank0.trace.json.gz"
    assert trace["deviceProperties"][0]["name"] == "emulated (CPU)"
    assert sum(one.get("cat") == "kernel" for one in trace["traceEvents"]) > 0
    events = events_of(stopped)
    assert {one["event_name"] for one in events} <= set(get_args(EventName))
    assert {one["pid"] for one in events} == {server.processes["front"], server.processes["engine"]}
    assert len({one["request_id"] for one in events}) == 1


def test_events_alone_tell_the_way_of_a_request(server: Server, tmp_path: Path) -> None:
    server.post("/start_request_profile", {"event_dir": str(tmp_path)})
    server.speak(WORDS, stream=True)
    stopped = server.post("/stop_request_profile", {}).json
    events = events_of(stopped)
    firsts = {one["event_name"]: place for place, one in reversed(list(enumerate(events)))}
    way = [
        "request_admission",
        "preprocess_start",
        "preprocess_end",
        "scheduler_queue_enter",
        "scheduler_prefill_start",
        "scheduler_prefill_end",
        "scheduler_first_emit",
        "stage_stream_chunk_sent",
        "code2wav_decode_start",
        "code2wav_first_audio",
        "coordinator_stream_received",
        "terminal_response",
    ]
    assert sorted(way, key=lambda name: firsts[name]) == way
    assert stopped["trace_path"] == ""


def test_a_profile_needs_a_place_that_can_be_written(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    place = {"event_dir": str(tmp_path / "file" / "below")}
    assert server.post("/start_request_profile", place).error == (400, "not_writable")
    assert server.post("/start_profile", {}).error == (400, "invalid_request")
    odd = {"trace_path_template": "/tmp/{pid}", "event_dir": str(tmp_path)}
    assert server.post("/start_profile", odd).error == (400, "invalid_request")
    assert server.post("/stop_profile").error == (400, "no_run")


def test_what_is_shed_is_503_with_the_limits_name() -> None:
    with serving("--set", "build_workers=0", "--set", "build_backlog=0") as full:
        reply = full.speak()
        assert reply.error == (503, "build_backlog")
        assert "retry-after" in reply.headers
        assert full.speak(stream=True).error == (503, "build_backlog")
        assert full.metric("shed_total", limit="build_backlog") == 2
