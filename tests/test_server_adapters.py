"""Which kind of server listens, what it says of itself, and its profiler, against small real servers."""

from __future__ import annotations

import gzip
import json
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from layers.collectors.server_adapters import calls, generic, trace_files
from layers.collectors.server_adapters.adapter import ServerAdapter, ServerCallFailed, ServerState
from layers.collectors.server_adapters.bundled import BundledAdapter
from layers.collectors.server_adapters.calls import Caller
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.server_adapters.registry import KINDS, adapter_for
from parsers.errors import UsageError
from tests.control_servers import HANG, Page, control_server, models
from tests.load_servers import answer, serving

SECRET = "hunter2-s3cr3t"
VLLM_PAGE = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 5.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:num_preemptions_total{engine="0",model_name="m"} 7.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 100.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 25.0
vllm:gpu_prefix_cache_hits_total{engine="0",model_name="m"} 25.0
"""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_server_is_recognised_by_who_owns_its_models(kind: type[GenericAdapter]) -> None:
    with control_server({"GET /v1/models": models(kind.owner or "library")}) as server:
        adapter: ServerAdapter = adapter_for(server.url)
        assert adapter.kind == kind.kind and adapter.info().models == ("m",)


def test_what_answers_without_a_list_of_models_is_of_the_general_kind() -> None:
    with control_server({"GET /v1/models": "<html>"}) as server:
        adapter = adapter_for(server.url)
        assert (adapter.kind, adapter.info().models) == ("openai-like", ())


def test_nothing_that_listens_is_an_error_that_names_the_address() -> None:
    with control_server({}) as server:
        url = server.url
    with pytest.raises(ServerCallFailed, match=url):
        adapter_for(url)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="give an address"):
        adapter_for("127.0.0.1:8000")


def test_a_server_that_hangs_costs_the_timeout_and_no_more() -> None:
    with (
        control_server({"GET /x": HANG}) as server,
        pytest.raises(ServerCallFailed, match=r"/x: no answer in 0\.05 s"),
    ):
        Caller(server.url).get("/x", timeout_s=0.05)


def test_an_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_ANSWER_BYTES", 10)
    with control_server({"GET /x": "12345678901"}) as server, pytest.raises(ServerCallFailed, match="more"):
        Caller(server.url).get("/x")


def test_headers_go_to_the_server_and_into_no_message() -> None:
    with control_server({"GET /v1/models": models("vllm"), "GET /x": 401}) as server:
        adapter = adapter_for(server.url, {"Authorization": f"Bearer {SECRET}"})
        assert {headers["Authorization"] for _, _, headers in server.asked} == {f"Bearer {SECRET}"}
        with pytest.raises(ServerCallFailed, match="HTTP 401") as failed:
            adapter.caller.json_of("/x")
        assert SECRET not in str(failed.value)


def test_vllm_tells_its_cap_where_it_is_asked_in_development_mode() -> None:
    config = {"scheduler_config": {"max_num_seqs": 256}, "model_config": {"hf_token": SECRET}}
    pages: dict[str, Page] = {
        "GET /v1/models": models("vllm"),
        "GET /version": {"version": "0.33.0"},
        "GET /server_info?config_format=json": {"vllm_config": config, "vllm_env": {"A_KEY": SECRET}},
    }
    with control_server(pages) as server:
        info = adapter_for(server.url).info()
        assert (info.version, info.max_concurrency) == ("0.33.0", 256)
        assert SECRET not in repr(info)


def test_vllm_without_development_mode_has_no_cap_and_flushes_nothing() -> None:
    with control_server({"GET /v1/models": models("vllm")}) as server:
        adapter = adapter_for(server.url)
        assert adapter.info().max_concurrency is None and not adapter.flush_caches()


def test_vllm_flushes_its_prefix_cache() -> None:
    with control_server({"GET /v1/models": models("vllm"), "POST /reset_prefix_cache": 200}) as server:
        assert adapter_for(server.url).flush_caches()


def test_a_state_sums_engines_and_takes_the_fullest_memory_and_counts_no_renamed_metric_twice() -> None:
    with control_server({"GET /v1/models": models("vllm"), "GET /metrics": VLLM_PAGE}) as server:
        adapter = adapter_for(server.url)
        sample = adapter.scrape()
        assert sample is not None and sample.call_ns > 0
        assert adapter.state(sample) == ServerState(
            running=8, waiting=2, kv_share=0.75, preemptions=7, prefix_hits=25, prefix_queries=100
        )


def test_a_server_without_a_page_of_metrics_has_none() -> None:
    with control_server({"GET /v1/models": models("sglang")}) as server:
        assert adapter_for(server.url).scrape() is None


@pytest.mark.parametrize("page", ["<html>\nno\n</html>", 500])
def test_a_page_that_is_none_is_an_error(page: Page) -> None:
    with control_server({"GET /metrics": page}) as server, pytest.raises(ServerCallFailed, match="/metrics"):
        generic.scrape(Caller(server.url))


@pytest.mark.parametrize("path", ["/server_info", "/get_server_info"])
def test_sglang_tells_the_cap_of_all_its_ranks(path: str) -> None:
    states = [{"effective_max_running_requests_per_dp": 128, "last_gen_throughput": 3.1}]
    info = {"version": "0.5.16", "dp_size": 2, "api_key": SECRET, "internal_states": states}
    with control_server({"GET /v1/models": models("sglang"), f"GET {path}": info}) as server:
        told = adapter_for(server.url).info()
        assert (told.version, told.max_concurrency) == ("0.5.16", 256)
        assert SECRET not in repr(told) and "internal_states" not in told.settings


def write_trace(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / name, "wt") as file:
        file.write(json.dumps({"traceEvents": []}))


def test_sglang_profiles_into_the_folder_that_it_is_told(tmp_path: Path) -> None:
    write_trace(tmp_path, "old.trace.json.gz")

    def stop(_: Any) -> Page:
        write_trace(tmp_path, "1-TP-0.trace.json.gz")
        return "stopped"

    pages: dict[str, Page] = {
        "GET /v1/models": models("sglang"),
        "POST /start_profile": "started",
        "POST /stop_profile": stop,
    }
    with control_server(pages) as server:
        adapter = adapter_for(server.url)
        adapter.start_profile(tmp_path, "r1")
        assert adapter.stop_profile("r1") == [tmp_path / "1-TP-0.trace.json.gz"]
        (started,) = server.calls("POST /start_profile")
        assert started == {"output_dir": str(tmp_path), "activities": ["CPU", "GPU"]}


def test_vllm_that_was_started_without_a_profiler_says_how_to(tmp_path: Path) -> None:
    with control_server({"GET /v1/models": models("vllm")}) as server:
        adapter = adapter_for(server.url)
        with pytest.raises(ServerCallFailed, match="--profiler-config"):
            adapter.start_profile(tmp_path, "r1")


def test_a_folder_that_the_server_does_not_write_to_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layers.collectors.server_adapters.vllm.WHOLE_TIMEOUT_S", 0.0)
    pages: dict[str, Page] = {
        "GET /v1/models": models("vllm"),
        "POST /start_profile": 200,
        "POST /stop_profile": 200,
    }
    with control_server(pages) as server:
        adapter = adapter_for(server.url)
        adapter.start_profile(tmp_path, "r1")
        with pytest.raises(ServerCallFailed, match="no trace came"):
            adapter.stop_profile("r1")


def test_sglang_omni_names_run_and_path_and_its_trace_is_taken_once_packed(tmp_path: Path) -> None:
    def stop(_: Any) -> Page:
        (tmp_path / "r1_pid7_rank0.trace.json").write_text("{}")
        write_trace(tmp_path, "r1_pid7_rank0.trace.json.gz")
        return {"run_id": "r1"}

    pages: dict[str, Page] = {
        "GET /v1/models": models("sglang-omni"),
        "POST /start_profile": {"run_id": "r1"},
        "POST /stop_profile": stop,
    }
    with control_server(pages) as server:
        adapter = adapter_for(server.url)
        adapter.start_profile(tmp_path, "r1")
        assert adapter.stop_profile("r1") == [tmp_path / "r1_pid7_rank0.trace.json.gz"]
        (started,) = server.calls("POST /start_profile")
        assert started["trace_path_template"] == str(tmp_path / "{run_id}")
        assert server.calls("POST /stop_profile") == [{"run_id": "r1"}]


@pytest.mark.parametrize(
    ("name", "data", "whole"),
    [
        ("a.trace.json.gz", gzip.compress(b"{}", mtime=0), True),
        ("a.trace.json.gz", gzip.compress(b"{}" * 999, mtime=0)[:-4], False),
        ("a.trace.json.gz", b"", False),
        ("a.trace.json", b'{"traceEvents": []}\n', True),
        ("a.trace.json", b'{"traceEvents": [', False),
    ],
)
def test_a_trace_is_whole_once_its_end_is_there(tmp_path: Path, name: str, data: bytes, whole: bool) -> None:
    (tmp_path / name).write_bytes(data)
    assert trace_files.is_whole(tmp_path / name) is whole


def test_the_bundled_engine_flushes_by_turning_its_cache_off_and_on() -> None:
    settings = {"encoder_cache": True, "max_running_requests": 32}
    pages: dict[str, Page] = {
        "GET /v1/models": models("sample_engine"),
        "GET /server_info": {"settings": settings, "processes": {"front": 1, "engine": 2}},
        "POST /configure": {},
    }
    with control_server(pages) as server:
        adapter = adapter_for(server.url)
        assert isinstance(adapter, BundledAdapter)
        assert adapter.info().max_concurrency == 32 and adapter.processes() == {"front": 1, "engine": 2}
        assert adapter.flush_caches()
        assert server.calls("POST /configure") == [{"encoder_cache": False}, {"encoder_cache": True}]


def test_a_change_that_the_engine_refuses_is_an_error_with_its_reason() -> None:
    with control_server({"POST /configure": 409}) as server, pytest.raises(ServerCallFailed, match="409"):
        BundledAdapter(Caller(server.url)).configure({"encoder_cache": False})


def test_a_server_of_the_general_kind_has_no_profiler(tmp_path: Path) -> None:
    with control_server({}) as server:
        adapter = adapter_for(server.url)
        with pytest.raises(ServerCallFailed, match="no profiler"):
            adapter.start_profile(tmp_path, "r")
        with pytest.raises(ServerCallFailed, match="no profiler"):
            adapter.stop_profile("r")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that vouches for itself, its key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(file), "-out", "-"]
    made = subprocess.run([*command, *names], check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + made.stdout)
    return file


def test_a_certificate_is_checked_unless_it_is_asked_not_to(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving(lambda _: [answer(b"{}")], context) as server:
        url = f"https://127.0.0.1:{server.port}"
        assert Caller(url, ca_file=str(certificate)).get("/x").ok and Caller(url, verify=False).get("/x").ok
        with pytest.raises(ServerCallFailed, match="certificate verify failed"):
            Caller(url).get("/x")
        assert len(server.asked) == 2
