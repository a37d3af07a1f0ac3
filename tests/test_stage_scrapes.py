"""The ledger of two pages of a server's metrics: exact means, percentiles as buckets, and what voids it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.guard import Checked, Effect
from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from layers.stages.guards_scrapes import SCRAPE_GUARDS
from layers.stages.model import Kind, RunLedger
from layers.stages.scrape_ledger import bucket_of
from parsers.errors import PerfkitError, UnreadableInput
from parsers.metrics_histograms import READ_AT, read_metrics_file
from tests.command_runs import document, run
from tests.stage_builders import asr_run, judged, ledger, written
from tests.writers.server_pages import BOUNDS, SGLANG, VLLM, Page, Times, around, request

LOAD = [request(0.5, 0.1, 0.3, front=0.1)] * 80


def vllm(tmp_path: Path, requests: list[Times] | None = None) -> tuple[str, str]:
    """A server that has served before: what was there before the first page is in no time of the ledger."""
    page = Page()
    for _ in range(7):
        page.observe(request(9.0, 9.0, 9.0))
    return around(tmp_path, page, LOAD if requests is None else requests)


def checked(result: Result, code: str) -> Checked:
    return next(g for g in result.guards if g.code == code)


def shares(run: RunLedger) -> dict[str, float]:
    return {row.stage: row.share for row in run.rows}


def test_what_vllm_says_adds_up_to_the_request(tmp_path: Path) -> None:
    run = ledger(*vllm(tmp_path))
    assert {row.kind: row.mean_ms for row in run.rows} == pytest.approx(
        {Kind.QUEUE: 500, Kind.FIRST_FORWARD: 100, Kind.DECODE: 300}
    )
    assert run.e2e_ms.mean_ms == pytest.approx(1000) and run.counts.complete == 80
    assert shares(run) == pytest.approx({"scheduler": 0.5, "prefill": 0.1, "decode": 0.3})
    assert run.residual_share == pytest.approx(0.1) and sum(run.split.values()) == pytest.approx(0.9)
    assert {row.stage: row.mean_ms for row in run.enclosing} == pytest.approx(
        {"inference": 400, "to the first token": 700}
    )
    assert run.in_flight is None and all(row.held is None for row in run.rows)


def test_a_percentile_is_the_bucket_it_lies_in_and_said_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = vllm(tmp_path)
    made = document(capsys, "stages", before, after)
    assert made["verdict"]["word"] == "scheduling-bound" and made["runs"][0]["source"] == "histograms"
    queue = next(s for s in made["stages"] if s["interval"] == "queue")
    assert "p50_ms" not in queue and queue["within_ms"] == {"p50": [300, 500], "p95": [300, 500]}
    assert made["shed"] is None and "PK428" in [g["code"] for g in made["guards"]]
    _, out, _ = run(capsys, "stages", before, after, "--no-record")
    assert "300-500" in out and out.startswith("SCHEDULING-BOUND")
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 80


TIMES = st.lists(st.floats(0.001, 9.0), min_size=6, max_size=60)


@given(TIMES, st.sampled_from([0.5, 0.95]))
def test_the_bucket_holds_the_observation_of_that_rank(times: list[float], quantile: float) -> None:
    bounds = (*BOUNDS, float("inf"))
    buckets = tuple((bound, float(sum(t <= bound for t in times))) for bound in bounds)
    low, high = bucket_of(buckets, quantile * len(times))
    rank = int(np.ceil(quantile * len(times))) - 1
    value_ms = 1000 * sorted(times)[rank]
    assert low < value_ms and (high is None or value_ms <= high)


def test_pages_that_say_when_they_were_read_give_the_load(tmp_path: Path) -> None:
    page = Page()
    before = page.write(tmp_path / "b.prom", READ_AT.format(10**18))
    for times in LOAD:
        page.observe(times)
    after = page.write(tmp_path / "a.prom", READ_AT.format(10**18 + 20 * 10**9))
    run = ledger(after, before)  # their times set them in order
    assert run.in_flight == pytest.approx(4.0) and run.window_ms == pytest.approx(20_000)
    assert {row.stage: row.held for row in run.rows} == pytest.approx(
        {"scheduler": 2.0, "prefill": 0.4, "decode": 1.2}
    )


def test_three_pages_are_two_loads(tmp_path: Path) -> None:
    page, paths = Page(), []
    for number, queue in enumerate((0.0, 0.1, 3.0)):
        for _ in range(40 * bool(number)):
            page.observe(request(queue, 0.2, 0.2))
        paths.append(page.write(tmp_path / f"{number}.prom"))
    result = judged(*paths)
    words = {one["run"]: one["word"] for one in result.sections["runs"]}
    assert words == {"0.prom → 1.prom": "balanced", "1.prom → 2.prom": "scheduling-bound"}


def test_sglang_without_its_stages_says_what_it_takes(tmp_path: Path) -> None:
    load = [{"e2e": 1.0, "queue": 0.1, "first": 0.4}] * 40
    result = judged(*around(tmp_path, Page(SGLANG), load))
    assert result.verdict.word == "undecided" and result.verdict.exit_code is Exit.NO_CONCLUSION
    assert result.sections["queue_share"] == pytest.approx(0.1)
    missing = checked(result, "PK424")
    assert missing.fired and missing.effect is Effect.NOTE and "per_stage_req_latency" in missing.message


def test_stages_of_sglang_that_repeat_others_are_left_out(tmp_path: Path) -> None:
    page = Page(SGLANG)
    before = page.write(tmp_path / "b.prom")
    for _ in range(40):
        page.observe({"e2e": 1.0, "queue": 0.5})
        for rank in ("0", "1"):  # both work on the same request
            stages = {"prefill_waiting": 0.5, "prefill_forward": 0.3, "chunked_prefill": 0.1}
            page.observe_stages(stages, rank)
    run = ledger(before, page.write(tmp_path / "a.prom"))
    assert shares(run) == pytest.approx({"scheduler": 0.5, "prefill_forward": 0.3})


def test_pk422_a_server_that_began_anew_is_void(tmp_path: Path) -> None:
    before, after = vllm(tmp_path)
    result = judged(after, before)
    assert checked(result, "PK422").fired and result.verdict.word == "void" and result.findings == []
    assert "less than before" in result.verdict.because and result.verdict.exit_code is Exit.INVALID
    assert not checked(judged(before, after), "PK422").fired


def test_pk422_a_server_that_began_anew_and_served_more_since_is_void(tmp_path: Path) -> None:
    """Counters alone show nothing: 40 requests since look like 33 after 7."""
    before, _ = vllm(tmp_path)
    later = Page()
    for _ in range(40):
        later.observe(request(9.0, 9.0, 9.0))
    result = judged(before, later.write(tmp_path / "later.prom"))
    assert checked(result, "PK422").fired and result.verdict.word == "void"
    assert "_created" in result.verdict.because


def test_pk423_bounds_that_changed_are_void(tmp_path: Path) -> None:
    before, _ = vllm(tmp_path)
    other = Page(bounds=(0.4, 4.0))
    after = around(tmp_path, other, [request(9.0, 9.0, 9.0)] * 80)[1]
    before = Page().write(tmp_path / "old.prom")
    old = Page()
    old.observe(request(0.1, 0.1, 0.1))
    result = judged(old.write(tmp_path / "old.prom"), after)
    assert before and checked(result, "PK423").fired and result.verdict.word == "void"
    assert not checked(judged(*vllm(tmp_path)), "PK423").fired


def test_pk424_without_a_queue_there_is_no_ledger(tmp_path: Path) -> None:
    names = {phase: name for phase, name in VLLM.items() if phase != "queue"}
    result = judged(*around(tmp_path, Page(names), LOAD))
    assert result.verdict.word == "void" and "no queue time" in result.verdict.because
    assert not checked(judged(*vllm(tmp_path)), "PK424").fired


def test_pk425_an_idle_server_is_void(tmp_path: Path) -> None:
    result = judged(*vllm(tmp_path, []))
    assert checked(result, "PK425").fired and "0 requests ended" in result.verdict.because
    assert not checked(judged(*vllm(tmp_path)), "PK425").fired


@pytest.mark.parametrize(("more", "effect"), [(5, Effect.NOTE), (20, Effect.DIRECTIONAL)])
def test_pk426_phases_of_other_requests(tmp_path: Path, more: int, effect: Effect) -> None:
    waits = [{"queue": 0.5}] * more
    found = checked(judged(*vllm(tmp_path, [*LOAD, *waits])), "PK426")
    assert found.fired and found.effect is effect
    assert not checked(judged(*vllm(tmp_path)), "PK426").fired


def test_pk427_engines_are_added(tmp_path: Path) -> None:
    page = Page()
    for engine in ("0", "1"):
        page.observe(LOAD[0], engine)
    before = page.write(tmp_path / "b.prom")
    for engine, queue in (("0", 0.1), ("1", 0.9)):
        for _ in range(40):
            page.observe(request(queue, 0.1, 0.1), engine)
    result = judged(before, page.write(tmp_path / "a.prom"))
    assert checked(result, "PK427").fired and result.sections["queue_share"] == pytest.approx(1.0 / 1.4)
    assert not checked(judged(*vllm(tmp_path)), "PK427").fired


def test_a_sound_pair_fires_its_note_alone(tmp_path: Path) -> None:
    result = judged(*vllm(tmp_path, [request(0.5, 0.1, 0.3, front=0.05)] * 80))
    assert [g.code for g in result.guards if g.fired] == ["PK428"]
    assert {g.code for g in SCRAPE_GUARDS} <= {g.code for g in result.guards}


def test_one_page_alone_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path, _ = vllm(tmp_path)
    with pytest.raises(UnreadableInput, match="give two"):
        judged(path)
    result = judged(path, written(tmp_path / "e.jsonl", asr_run()))
    assert any("give two" in lost for lost in result.sections["lost"])


def test_what_nobody_can_read_says_why_as_events_as_a_table_and_as_a_page(tmp_path: Path) -> None:
    (tmp_path / "x.prom").write_text("torn\n", encoding="utf-8")
    with pytest.raises(UnreadableInput) as refused:
        judged(str(tmp_path / "x.prom"))
    events, table, page = str(refused.value).split("; nor ")
    assert "Expected stage events" in events
    assert table.startswith("a table: ") and page.startswith("a page: no page of metrics")
    with pytest.raises(UnreadableInput) as refused:
        judged(str(tmp_path / "none.prom"))
    assert str(refused.value).count("cannot be opened") == 1


def test_what_is_no_page_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("nothing of note\n", encoding="utf-8")
    with pytest.raises(UnreadableInput, match="no page of metrics"):
        read_metrics_file(str(tmp_path / "x.txt"))


@given(st.binary(max_size=300))
def test_any_file_is_a_page_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("page") / "p.prom"
    for head in (b"", b"# HELP a b\n", b'a_bucket{le="x"} 1\na_sum NaN\na_count{} 2\n'):
        path.write_bytes(head + data)
        try:
            page = read_metrics_file(str(path))
        except PerfkitError:
            continue
        assert all(np.isfinite([h.sum, h.count]).all() for h in page.histograms.values())


def test_a_damaged_page_is_told_and_what_is_whole_counts(tmp_path: Path) -> None:
    before, after = vllm(tmp_path)
    text = Path(after).read_text("utf-8")
    Path(after).write_text(f'{text}half a li\nvllm:x{{a="b"}} nothing\n', encoding="utf-8")
    result = judged(before, after)
    assert result.sections["queue_share"] == pytest.approx(0.5)
    assert any("no sample of a metric" in lost for lost in result.sections["lost"])


def test_a_sum_that_is_no_number_leaves_its_phase_out(tmp_path: Path) -> None:
    before, after = vllm(tmp_path)
    lines = Path(after).read_text("utf-8").splitlines()
    broken = [
        f"{line.rpartition(' ')[0]} NaN" if "prefill_time_seconds_sum" in line else line for line in lines
    ]
    Path(after).write_text("\n".join(broken) + "\n", encoding="utf-8")
    result = judged(before, after)
    assert result.verdict.word == "void" and "vllm:request_prefill_time_seconds" in result.verdict.because
