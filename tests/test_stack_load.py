"""Whether the server worked while it was recorded, by the best witness that there is."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from layers.collectors.load.plan import EndpointChoice, Extent, Load, LoadPlan
from layers.collectors.load.records import RequestRecord
from layers.collectors.server_adapters.adapter import MetricsSample
from layers.collectors.server_adapters.bundled import BundledAdapter
from layers.collectors.server_adapters.calls import Caller
from layers.collectors.server_adapters.generic import GenericAdapter
from layers.collectors.server_adapters.sglang import SglangAdapter
from layers.collectors.server_adapters.vllm import VllmAdapter
from layers.collectors.stacks.load_evidence import cpu_share, of_counters, of_records
from layers.collectors.stacks.recording import ThreadCpu
from layers.layer2_stacks.own_load import OwnLoad
from layers.layer3_sweep.data_sets.registry import data_set
from layers.layer3_sweep.sweep_folder import keep_items
from layers.layer3_sweep.target import target_for
from parsers.errors import InvalidMeasurement
from tests.load_servers import Asked, Script, Server, answer, serving
from tests.stack_targets import LISTENER, running, wait_until

S = 1_000_000_000


def page(at_s: float, **values: float) -> MetricsSample:
    named = {
        {"running": "engine_requests_running", "done": 'engine_requests_total{end="done"}'}[name]: value
        for name, value in values.items()
    }
    return MetricsSample(round(at_s * S), 0, 0, named)


def adapter(kind: type[GenericAdapter] = BundledAdapter) -> GenericAdapter:
    return kind(Caller("http://127.0.0.1:1", {}, True, ""))


def test_counters_tell_what_was_answered_and_what_was_under_way() -> None:
    pages = [page(t, running=4.0, done=100.0 + 5 * t) for t in range(10)]
    found = of_counters(adapter(), pages, (2 * S, 6 * S), 0.5)
    assert found is not None
    assert (found.completed, found.in_flight_mean, found.cpu_share) == (20, 4.0, 0.5)
    assert "sample-engine" in found.source


def test_counters_of_an_idle_server_say_that_it_was_idle() -> None:
    found = of_counters(adapter(), [page(t, running=0.0, done=7.0) for t in range(10)], (2 * S, 6 * S), 0.0)
    assert found is not None
    assert (found.completed, found.in_flight_mean) == (0, 0.0)


def test_counters_that_fell_tell_nothing_of_what_was_answered() -> None:
    pages = [page(t, running=1.0, done=10.0 - t) for t in range(10)]
    found = of_counters(adapter(), pages, (2 * S, 6 * S), None)
    assert found is not None and found.completed is None


@pytest.mark.parametrize("pages", [[], [page(1, running=1.0)], [MetricsSample(3 * S, 0, 0, {"up": 1.0})]])
def test_a_page_outside_the_window_or_without_the_names_is_no_witness(pages: list[MetricsSample]) -> None:
    assert of_counters(adapter(), pages, (2 * S, 6 * S), 0.5) is None


@pytest.mark.parametrize(
    ("kind", "sample"),
    [
        (VllmAdapter, 'vllm:request_success_total{finished_reason="stop"}'),
        (SglangAdapter, 'sglang:num_requests_total{model_name="m"}'),
        (BundledAdapter, 'engine_requests_total{end="done"}'),
    ],
)
def test_what_servers_call_the_requests_that_they_have_answered(
    kind: type[GenericAdapter], sample: str
) -> None:
    assert adapter(kind).state(MetricsSample(0, 0, 0, {sample: 3.0})).finished == 3.0


def test_the_cpu_of_all_threads_is_in_cores() -> None:
    threads = [ThreadCpu(1, "a", 1.0, 0.0, 4.0), ThreadCpu(2, "b", 2.0, 0.0, 4.0)]
    assert cpu_share(threads) == 0.75
    assert cpu_share([]) is None


def url_of(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}"


def plan(url: str, folder: Path) -> LoadPlan:
    items = data_set("text", folder)
    return LoadPlan(
        folder=folder / "load",
        target=target_for(url, {}),
        endpoint=EndpointChoice("chat", "m", stream=False),
        items=keep_items(folder, items.measured("t")),
        warmup_items=keep_items(folder, items.warmup("t")),
        load=Load(concurrency=2),
        extent=Extent(duration_s=600.0, warmup_requests=2, drain_s=5.0),
    )


CHAT = b'{"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}'


def answers(asked: Asked) -> Script:
    return [0.02, answer(CHAT)]


def ends(records: Sequence[RequestRecord]) -> list[int]:
    """When each that was answered well was."""
    return [record.end_ns for record in records if record.ok and record.end_ns is not None]


def test_a_load_of_ones_own_runs_around_what_is_inside_it(tmp_path: Path) -> None:
    with serving(answers) as server, OwnLoad(plan(url_of(server), tmp_path)) as load:
        assert load.records == ()
    ended = sorted(ends(load.records))
    whole = (ended[0] - 1, ended[-1])
    found = of_records(load.records, whole, load.words, None)
    assert found.completed == len(ended)
    assert found.in_flight_mean is not None and 0 < found.in_flight_mean <= 2.0
    assert found.source == "perfkit's own load, 2 at a time"
    assert of_records(load.records, (ended[-1] + S, ended[-1] + 2 * S), "", None).completed == 0


def test_a_server_that_is_not_there_is_told_before_anything_is_recorded(tmp_path: Path) -> None:
    with serving(answers) as server:
        url = url_of(server)
    with pytest.raises(InvalidMeasurement), OwnLoad(plan(url, tmp_path)):
        pytest.fail("the load began")


def never(asked: Asked) -> Script:
    return [600.0, answer(CHAT)]


def unanswered(url: str, folder: Path) -> LoadPlan:
    made = plan(url, folder)
    return replace(made, extent=replace(made.extent, drain_s=0.1))


def test_a_warm_up_that_cannot_end_names_the_process_that_is_stopped(tmp_path: Path) -> None:
    with running(LISTENER) as (front, line), serving(never) as server:
        engine = int(line.split()[0])
        os.kill(engine, signal.SIGSTOP)
        wait_until("T", engine)
        load = OwnLoad(unanswered(url_of(server), tmp_path), roots=(str(front),))
        with pytest.raises(InvalidMeasurement, match=f"cannot end.*kill -CONT {engine}"), load:
            pytest.fail("the load began")


def test_a_warm_up_that_never_ended_names_the_process_that_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layers.layer2_stacks.own_load.WARM_TIMEOUT_S", 0.2)
    with running(LISTENER) as (front, line), serving(never) as server:
        engine = int(line.split()[0])
        os.kill(engine, signal.SIGKILL)
        wait_until("Z", engine)
        load = OwnLoad(unanswered(url_of(server), tmp_path), roots=(str(front),))
        with pytest.raises(InvalidMeasurement, match=f"ended in 0.2 s: process {engine} .*zombie"), load:
            pytest.fail("the load began")
