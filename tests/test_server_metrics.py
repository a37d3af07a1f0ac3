"""Metrics and CPU of a server over a window: means, differences, resets, and pages that do not come."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.server_adapters.adapter import MetricsSample
from layers.collectors.server_adapters.bundled import BundledAdapter
from layers.collectors.server_adapters.calls import Caller
from layers.collectors.server_adapters.generic import GenericAdapter, StageTime
from layers.collectors.server_adapters.metrics import BatchMeans, read_metrics, server_means
from layers.collectors.server_adapters.sampling import ServerSampling
from layers.collectors.server_adapters.sglang_omni import SglangOmniAdapter
from layers.collectors.server_adapters.vllm import VllmAdapter
from layers.collectors.server_cpu import CpuLook, cpu_use, read_cpu
from layers.evidence.record_log import RecordLog
from layers.layer3_sweep.model import HostUse, ServerUse
from layers.layer3_sweep.server_use import host_use, server_use
from tests.control_servers import HANG, ControlServer, control_server

VLLM = VllmAdapter(Caller("http://127.0.0.1:1"))
S = 1_000_000_000
DEADLINE_S = 60.0


def page(at_s: float, **values: float) -> MetricsSample:
    return MetricsSample(int(at_s * S), 0, 1, {f"vllm:{name}": value for name, value in values.items()})


def queue(at_s: float, sum_s: float, count: float, **values: float) -> MetricsSample:
    """A page with the queue's histogram."""
    name = "request_queue_time_seconds"
    return page(at_s, **{f"{name}_sum": sum_s, f"{name}_count": count}, **values)


def test_gauges_are_means_inside_the_window_alone() -> None:
    samples = [page(at, num_requests_running=at) for at in (0, 1, 2, 3, 4, 9)]
    means = server_means(VLLM, samples, 1 * S, 4 * S)
    assert means is not None and (means.running, means.n, means.waiting) == (2.5, 4, None)


def test_counters_and_stages_are_differences_between_the_pages_nearest_to_its_ends() -> None:
    samples = [
        queue(0.0, 1.0, 10, num_preemptions_total=1, prefix_cache_hits_total=0, prefix_cache_queries_total=0),
        queue(
            0.9, 2.0, 20, num_preemptions_total=2, prefix_cache_hits_total=5, prefix_cache_queries_total=10
        ),
        queue(
            2.0, 4.0, 25, num_preemptions_total=4, prefix_cache_hits_total=6, prefix_cache_queries_total=30
        ),
        queue(
            3.1, 5.0, 30, num_preemptions_total=7, prefix_cache_hits_total=10, prefix_cache_queries_total=35
        ),
        queue(
            9.0, 9.0, 99, num_preemptions_total=9, prefix_cache_hits_total=99, prefix_cache_queries_total=99
        ),
    ]
    means = server_means(VLLM, samples, 1 * S, 3 * S)
    assert means is not None and not means.reset
    assert (means.preemptions, means.prefix_hit_share, means.n) == (5.0, 0.2, 1)
    assert means.stage_ms == {"queue": pytest.approx(300.0)}


def test_a_server_that_began_anew_inside_the_window_has_no_counters() -> None:
    samples = [
        page(at, num_requests_running=1, num_preemptions_total=total)
        for at, total in ((1, 5), (2, 9), (3, 0), (4, 12))
    ]
    means = server_means(VLLM, samples, 1 * S, 4 * S)
    assert means is not None and means.reset and (means.running, means.preemptions) == (1.0, None)


def test_a_histogram_that_began_anew_gives_no_stage_times() -> None:
    means = server_means(VLLM, [queue(1, 5.0, 50), queue(2, 0.1, 1), queue(3, 9.0, 90)], 1 * S, 3 * S)
    assert means is not None and means.reset and means.stage_ms == {}


BUNDLED = BundledAdapter(Caller("http://127.0.0.1:1"))


def bundled_page(at_s: int, done: float, wait_s: float, held_s: float, busy_s: float, steps: float) -> Any:
    """Four items a step in `ar`; a vocoder that nothing passed."""
    ar, other = '{stage="ar"}', '{stage="vocoder"}'
    values = {
        'engine_requests_total{end="done"}': done,
        'engine_requests_total{end="shed"}': 7.0,
        f"engine_queue_wait_seconds_sum{ar}": wait_s,
        f"engine_held_seconds_total{ar}": held_s,
        f"engine_busy_seconds_total{ar}": busy_s,
        f"engine_step_seconds_count{ar}": steps,
        f"engine_batch_items_sum{ar}": 4 * steps,
        f"engine_held_seconds_total{other}": 0.0,
        f"engine_step_seconds_count{other}": 0.0,
    }
    return MetricsSample(at_s * S, 0, 1, values)


def test_a_stage_that_works_in_steps_tells_what_all_steps_of_a_request_took() -> None:
    pages = [bundled_page(1, 0, 0.0, 0.0, 0.0, 0), bundled_page(2, 10, 5.0, 20.0, 0.8, 100)]
    means = server_means(BUNDLED, pages, 1 * S, 2 * S)
    assert means is not None and means.stage_ms == pytest.approx({"ar queue": 500.0, "ar": 2000.0})
    assert means.batches.keys() == {"ar"}
    one: BatchMeans = means.batches["ar"]
    assert (one.size, one.ms, one.n) == pytest.approx((4.0, 8.0, 100))


def test_a_server_that_counts_no_batches_tells_of_none() -> None:
    means = server_means(VLLM, [queue(1, 1.0, 10), queue(2, 2.0, 20)], 1 * S, 2 * S)
    assert means is not None and means.batches == {}


def test_a_window_without_a_page_has_no_means() -> None:
    assert server_means(VLLM, [page(1, num_requests_running=1)], 2 * S, 3 * S) is None
    assert server_means(VLLM, [], 2 * S, 3 * S) is None
    assert server_use(None) is None


def test_a_stage_that_nothing_passed_has_no_time() -> None:
    means = server_means(VLLM, [queue(1, 5.0, 50), queue(2, 5.0, 50)], 1 * S, 2 * S)
    assert means is not None and means.stage_ms == {} and not means.reset


def test_stages_of_several_ranks_are_one_and_carry_their_pipeline_stage() -> None:
    adapter = SglangOmniAdapter(Caller("http://127.0.0.1:1"))
    name = "sglang:per_stage_req_latency_seconds"

    def sample(at_s: int, *sums: float) -> MetricsSample:
        values: dict[str, float] = {}
        for rank, sum_s in enumerate(sums):
            labels = f'{{omni_stage="thinker",stage="prefill_forward",tp_rank="{rank}"}}'
            values |= {f"{name}_sum{labels}": sum_s, f"{name}_count{labels}": 10.0 * at_s}
        return MetricsSample(at_s * S, 0, 1, values)

    means = server_means(adapter, [sample(1, 1.0, 2.0), sample(2, 2.0, 4.0)], 1 * S, 2 * S)
    assert means is not None and means.stage_ms == {"thinker prefill_forward": pytest.approx(150.0)}


def test_a_stage_without_that_label_has_the_rest_of_its_name() -> None:
    assert StageTime("x", "{omni_stage} queue").stage('x_sum{model="m"}') == "queue"


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12), st.integers(0, 12), st.integers(0, 12))
def test_a_window_of_counters_is_what_was_counted_between_the_nearest_pages(
    grown: list[int], begin: int, length: int
) -> None:
    """Pages each second; the twin looks for the nearest page by brute force."""
    totals = [sum(grown[: n + 1]) for n in range(len(grown))]
    samples = [page(at, num_preemptions_total=total) for at, total in enumerate(totals)]
    means = server_means(VLLM, samples, begin * S, (begin + length) * S)
    if means is None:
        assert begin >= len(grown)
        return
    last = min(begin + length, len(grown) - 1)
    expected = None if last == begin else float(totals[last] - totals[begin])
    assert means.preemptions == expected


def test_pages_that_do_not_come_are_counted_with_their_reason(tmp_path: Path) -> None:
    with RecordLog(tmp_path / "m.log") as log:
        common = {"kind": "r", "wall_ns": 0, "call_ns": 1}
        log.append({**common, "mono_ns": 2, "values": {"a": 1.0}})
        log.append({**common, "mono_ns": 1, "values": {"a": 0.0}})
        log.append({**common, "mono_ns": 3, "values": {}, "missing": {"/metrics": "no answer in 5 s"}})
    read = read_metrics(tmp_path / "m.log")
    assert [sample.monotonic_ns for sample in read.samples] == [1, 2]
    assert (read.failures, read.problem) == (1, "no answer in 5 s")
    assert read.lacking == "1 of 3 pages of the server's metrics did not come: no answer in 5 s"
    assert replace(read, failures=0).lacking == ""


def looks(*rows: tuple[float, float, dict[str, float]]) -> list[CpuLook]:
    return [CpuLook(int(at * S), total, 2, threads) for at, total, threads in rows]


def test_cpu_of_a_window_is_what_all_and_the_busiest_thread_used_in_it() -> None:
    recorded = looks(
        (0, 10.0, {"thread 1/1": 9.0, "thread 1/2": 1.0}),
        (1, 11.0, {"thread 1/1": 9.9}),
        (2, 13.0, {"thread 1/3": 1.0, "thread 1/1": 10.4}),
        (3, 15.0, {"thread 1/2": 2.0}),
    )
    used = cpu_use(recorded, 1 * S, 3 * S)
    assert used is not None and used.cores == 2.0 and used.busiest_thread == pytest.approx(0.5)
    assert host_use(used) == HostUse(2.0, used.busiest_thread, 2, 3)


def test_a_process_that_took_its_time_with_it_counts_as_nothing_used() -> None:
    used = cpu_use(looks((0, 10.0, {}), (1, 4.0, {}), (2, 5.0, {})), 0, 2 * S)
    assert used is not None and used.cores == 0.5


def test_one_look_is_no_window() -> None:
    assert cpu_use(looks((0, 1.0, {}), (5, 2.0, {})), 0, 4 * S) is None and host_use(None) is None


def _burn(until: Any) -> None:
    while not until.is_set():
        pass


@contextmanager
def burning() -> Iterator[int]:
    """A process that uses all it gets of a core."""
    context = multiprocessing.get_context("spawn")
    until = context.Event()
    process = context.Process(target=_burn, args=(until,))
    process.start()
    try:
        assert process.pid is not None
        yield process.pid
    finally:
        until.set()
        process.join()


def wait_for(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_a_server_is_sampled_while_something_else_runs(tmp_path: Path) -> None:
    def metrics(_: Any) -> str:
        return f"llamacpp:requests_processing {len(server.asked)}\n"

    with control_server({"GET /metrics": metrics}) as server, burning() as pid:
        began_ns = time.monotonic_ns()
        with ServerSampling(tmp_path, GenericAdapter(Caller(server.url)), [str(pid)]) as sampling:
            cpu = next(path for path in sampling.paths if "cpu" in path.name)
            wait_for(lambda: len(server.asked) >= 4 and used_by(cpu) > 0.2)
    assert sampling.problems == [] and sampling.losses == []
    window = (began_ns, time.monotonic_ns())
    use = server_use(server_means(GenericAdapter(Caller(server.url)), sampling.metrics.samples, *window))
    assert isinstance(use, ServerUse) and use.n >= 3 and use.running is not None and use.running >= 2
    used = cpu_use(sampling.looks, *window)
    assert used is not None and used.cores > 0 and used.busiest_thread > 0 and used.processes == 1


def used_by(path: Path) -> float:
    """Seconds of CPU between the first and the last look of a recording that is being written."""
    recorded = read_cpu(path, [])
    return recorded[-1].total_s - recorded[0].total_s if recorded else 0.0


def test_what_cannot_be_sampled_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    with control_server({}) as server:
        adapter = GenericAdapter(Caller(server.url))
        with ServerSampling(tmp_path, adapter, [str(os.getpid())]) as sampling:
            cpu = next(path for path in sampling.paths if "cpu" in path.name)
            wait_for(lambda: bool(read_cpu(cpu, [])))
    assert len(sampling.problems) == 1 and "has no /metrics" in sampling.problems[0]
    assert sampling.metrics.samples == () and sampling.looks[0].processes >= 1


def test_a_server_that_stops_answering_costs_pages_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from layers.collectors.server_adapters import metrics_source

    monkeypatch.setattr(metrics_source, "TIMEOUT_S", 0.05)
    with control_server({"GET /metrics": "a 1\n"}) as server:
        source = metrics_source.ServerMetricsSource([server.url])
        assert source.description.entities[0].name == server.url
        server.pages["GET /metrics"] = HANG
        (answer,) = metrics_source.PageProbe(Caller(server.url)).read()
    assert answer.values == {} and "no answer in 0.05 s" in answer.missing["/metrics"]


def guarded(server: ControlServer) -> Callable[[Any], Any]:
    """A page of metrics behind a key."""

    def page(_: Any) -> Any:
        return "llamacpp:requests_processing 3\n" if server.asked[-1][2].get("X-Key") == "hunter2" else 401

    return page


def test_a_page_behind_a_key_is_asked_for_with_it_and_no_list_of_processes_shows_it(tmp_path: Path) -> None:
    with control_server({}) as server:
        server.pages["GET /metrics"] = guarded(server)
        adapter = GenericAdapter(Caller(server.url, {"X-Key": "hunter2"}))
        with ServerSampling(tmp_path, adapter) as sampling:
            wait_for(lambda: len(server.asked) >= 2)
            commands = [Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit()]
            assert not [path for path in commands if b"hunter2" in read_or_nothing(path)]
    assert sampling.problems == []
    assert {s.values["llamacpp:requests_processing"] for s in sampling.metrics.samples} == {3.0}
    assert not [path for path in tmp_path.rglob("*") if b"hunter2" in path.read_bytes()]


def read_or_nothing(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it ended meanwhile
        return b""


@pytest.mark.parametrize(
    ("headers", "said"),
    [({}, "give its key with --header"), ({"X-Key": "no"}, "the key that was given does not open it")],
)
def test_a_page_behind_a_key_says_so(tmp_path: Path, headers: dict[str, str], said: str) -> None:
    with control_server({}) as server:
        server.pages["GET /metrics"] = guarded(server)
        with ServerSampling(tmp_path, GenericAdapter(Caller(server.url, headers))) as sampling:
            pass
    assert len(sampling.problems) == 1 and f"behind a key (HTTP 401): {said}" in sampling.problems[0]


def test_how_to_trust_a_certificate_goes_with_the_address_and_headers_do_not() -> None:
    from layers.collectors.server_adapters.metrics_source import private_of, targets_of

    assert private_of(Caller("https://h")) == ""
    caller = Caller("https://h:8443/", {"Authorization": "Bearer x"}, False, "/ca.pem")
    assert targets_of(caller) == ["https://h:8443", "no-verify", "ca=/ca.pem"]
    assert private_of(caller) == 'headers={"Authorization": "Bearer x"}'
