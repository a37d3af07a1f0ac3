"""The bundled engine as a sweep sees it: recognised, asked, flushed and profiled over HTTP."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from layers.collectors.server_adapters.adapter import ServerCallFailed
from layers.collectors.server_adapters.bundled import BundledAdapter, NeedsRestart
from layers.collectors.server_adapters.metrics import server_means
from layers.collectors.server_adapters.registry import adapter_for
from tests.engine_servers import Server, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def adapter(server: Server) -> BundledAdapter:
    found = adapter_for(f"http://127.0.0.1:{server.port}")
    assert isinstance(found, BundledAdapter)
    return found


def test_it_tells_its_model_its_cap_and_its_processes(server: Server, adapter: BundledAdapter) -> None:
    info = adapter.info()
    assert (info.kind, info.models) == ("sample-engine", ("sample-tts",))
    assert info.max_concurrency == info.settings["max_running_requests"] == 32
    assert adapter.processes() == server.processes


def test_its_page_says_what_runs_and_how_long_its_stages_took(
    server: Server, adapter: BundledAdapter
) -> None:
    before = adapter.scrape()
    server.speak(words=3)
    server.settle()
    after = adapter.scrape()
    assert before is not None and after is not None
    means = server_means(adapter, [before, after], before.monotonic_ns, after.monotonic_ns)
    assert means is not None and (means.running, means.waiting, means.n) == (0.0, 0.0, 2)
    assert means.stage_ms.keys() == {"ar queue", "ar", "vocoder queue", "vocoder"}
    assert all(mean_ms > 0 for mean_ms in means.stage_ms.values())
    assert means.batches.keys() == {"ar", "vocoder"}
    assert means.batches["ar"].n >= 15 and means.batches["ar"].size == pytest.approx(1.0)


def test_it_says_what_its_bundles_stand_for(adapter: BundledAdapter) -> None:
    info = adapter.info()
    raised = info.expanded({"limits": "raised", "build_workers": "4"})
    assert raised == {"max_running_requests": "64", "build_workers": "4", "build_backlog": "32"}
    assert info.expanded({"preset": "optimized"})["radix_key"] == "device"
    assert info.expanded({"limits": "unheard of"}) == {"limits": "unheard of"}


def test_what_it_takes_only_when_it_starts_is_told_from_what_it_cannot_do_now(
    server: Server, adapter: BundledAdapter
) -> None:
    server.settle()
    with pytest.raises(NeedsRestart, match="a restart is needed"):
        adapter.configure({"max_running_requests": 8})
    with pytest.raises(ServerCallFailed) as refused:
        adapter.configure({"policy": "none of them"})
    assert not isinstance(refused.value, NeedsRestart)


def test_its_cache_is_dropped_while_it_rests(server: Server, adapter: BundledAdapter) -> None:
    server.settle()
    assert adapter.flush_caches() and adapter.info().settings["encoder_cache"] is True


def test_its_profile_is_whole_when_it_is_told(
    server: Server, adapter: BundledAdapter, tmp_path: Path
) -> None:
    adapter.start_profile(tmp_path, "r1")
    server.speak(words=2)
    trace, *events = adapter.stop_profile("r1")
    with gzip.open(trace) as file:
        assert json.load(file)["traceEvents"]
    assert len(events) == 2 and all(path.stat().st_size for path in events)
