"""`perfkit engine bench`: one server, one load, one table that says what it did not measure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from sample_engine.bench.inputs import asks
from sample_engine.bench.load import OK, SHED, Answer, Load
from sample_engine.bench.percentiles import interval_ranks, percentile
from sample_engine.bench.server import Counters
from sample_engine.bench.summary import TAILS, summary
from tests.conftest import REPOSITORY
from tests.engine_servers import LONG_S, TINY

BENCH = [sys.executable, "-m", "perfkit", "engine", "bench"]
INFO = {"device": "emulated (CPU)", "settings": {"pipeline": "tts"}}


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*BENCH, *options],
        cwd=REPOSITORY,
        env={**os.environ, **TINY},
        capture_output=True,
        text=True,
        timeout=LONG_S,
    )


def rows_of(document: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one["value"] for one in document["rows"]}


def load_of(*statuses: int) -> Load:
    """Answers that took 1, 2, 3 ... ms."""
    answers = [Answer(status, (place + 1) * 1e-3, 2.0) for place, status in enumerate(statuses)]
    return Load(answers, took_s=4.0)


@given(st.integers(1, 400), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_ranks_hold_the_percentile_as_the_binomial_says(n: int, share: float) -> None:
    below = binom.cdf(range(n), n, share)
    lows = [rank for rank in range(1, n + 1) if below[rank - 1] <= 0.025]
    highs = [rank for rank in range(1, n + 1) if below[rank - 1] >= 0.975]
    assert interval_ranks(n, share) == ((lows[-1], highs[0]) if lows and highs else None)


@pytest.mark.parametrize(("share", "needed"), [(share, needed) for _, share, needed in TAILS])
def test_a_percentile_is_said_from_the_n_on_that_it_needs(share: float, needed: int) -> None:
    assert percentile(range(needed - 1), share) is None
    found = percentile(range(1, needed + 1), share)
    assert found is not None
    assert found.low <= found.value <= found.high


def test_a_percentile_of_very_many_values_does_not_overflow() -> None:
    found = percentile(range(1, 20_001), 0.5)
    assert found is not None and found.low < 10_000 < found.high


def test_refused_requests_count_in_no_latency_and_no_throughput() -> None:
    load = load_of(*[OK] * 6, SHED, 0)
    made = summary(INFO, load, Counters({("engine_shed_total", "build_backlog"): 1.0}), 2)
    rows = {one.name: one for one in made.rows}
    assert rows["requests"].note == "6 done, 1 refused, 1 failed"
    assert rows["throughput"].value == 1.5
    assert rows["audio throughput"].value == 3.0
    assert rows["latency p50"].value == 3.0
    assert "latency p90" not in rows
    assert any("p90: needs 36" in one for one in made.not_measured)


def test_shares_come_from_what_the_counters_grew_by() -> None:
    before = Counters({("engine_graph_replays_total", "ar"): 5.0})
    after = Counters(
        {
            ("engine_graph_replays_total", "ar"): 8.0,
            ("engine_graph_eager_total", "ar"): 1.0,
            ("engine_device_busy_seconds_total", ""): 1.0,
        }
    )
    rows = {one.name: one for one in summary(INFO, load_of(OK), after.since(before), 1).rows}
    assert rows["replayed, ar"].value == 0.75
    assert rows["device busy"].value == 0.25
    assert "replayed, vocoder" not in rows


def test_a_gpu_s_busy_share_is_said_to_be_unknown() -> None:
    made = summary({**INFO, "device": "cuda"}, load_of(OK), Counters({}), 1)
    assert "device busy" not in {one.name for one in made.rows}
    assert any("device busy" in one for one in made.not_measured)


def test_the_set_is_the_same_each_time_and_every_request_another() -> None:
    for pipeline in ("tts", "asr"):
        some = asks(pipeline, 20)
        assert some == asks(pipeline, 20)
        assert len({one.body for one in some}) == 20


def test_it_measures_a_server_and_says_what_could_not_engage() -> None:
    done = run("--preset", "baseline", "--set", "lookahead=on", "--requests", "40", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    rows = rows_of(document)
    assert rows["requests"] == 40
    assert rows["throughput"] > 0
    assert rows["refused lookaheads"] > 0
    assert rows["looked ahead, ar"] == 0
    assert {"latency p50", "latency p90"} < rows.keys()
    assert "latency p95" not in rows


def test_it_prints_one_table_for_the_other_pipeline() -> None:
    done = run("--pipeline", "asr", "--requests", "8", "--concurrency", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("device: emulated (CPU), asr, size tiny, closed loop of 2; cuda_graph off")
    assert "steps of decode" in done.stdout
    assert "latency p90: needs 36 requests" in done.stdout


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--set", "lookahead=maybe"], 2, "lookahead cannot be 'maybe'"),
        (["--requests", "0"], 2, "invalid"),
        (["--set", "budget_bytes=1000"], 1, "the server did not start"),
    ],
)
def test_what_cannot_be_measured_is_told(options: list[str], code: int, text: str) -> None:
    done = run(*options)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr
