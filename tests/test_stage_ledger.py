"""The stage ledger's arithmetic: pairs, shares, residual, outcomes, runs; against a slow second reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.measurement import Artifact
from layers.stages.ledger import ledger_of, union_ns
from layers.stages.model import Kind, Row, RunLedger
from layers.stages.requests import timed_runs
from layers.stages.thresholds import Word, fullest, holding, word_of
from layers.stages.vocabulary import HAND_OVER
from parsers.errors import UsageError
from parsers.stage_columns import Reader, find_columns
from parsers.stage_model import StageEvent
from tests.stage_builders import (
    Line,
    analysed,
    asr_request,
    asr_run,
    ledger,
    line,
    plain_csv,
    written,
)
from tests.stage_twin import Stretch, covered, mean_ms, quantile_ms, spans, stretches

ARTIFACT = Artifact("e.jsonl", "0" * 64, 1)


def row(run: RunLedger, stage: str, kind: str, part: str = "") -> Row:
    (found,) = [r for r in run.rows if (r.stage, r.kind, r.part) == (stage, kind, part)]
    return found


def test_a_request_is_split_into_its_intervals_without_a_rest(tmp_path: Path) -> None:
    run = ledger(written(tmp_path / "e.jsonl", asr_run()))
    means = {(r.kind, r.part): r.mean_ms for r in run.rows if r.stage == "asr"}
    assert means == {
        (Kind.BUILD, ""): 5.0,
        (Kind.HOP, HAND_OVER): 1.0,
        (Kind.QUEUE, "admission"): 10.0,
        (Kind.FIRST_FORWARD, ""): 30.0,
        (Kind.DECODE, ""): 54.0,
        (Kind.QUEUE, "build workers"): 0.0,
    }
    assert run.e2e_ms.mean_ms == 100.0 and run.counts.complete == 30
    assert (run.queue_share, run.hop_share, run.residual_share) == pytest.approx((0.1, 0.01, 0.0))
    assert run.in_flight == pytest.approx(30 * 100 / (29 * 20 + 100))


def test_an_older_build_ends_its_first_forward_with_the_first_output(tmp_path: Path) -> None:
    lines = [one for n in range(30) for one in asr_request(f"q{n}", n * 20, ends_prefill=False)]
    run = ledger(written(tmp_path / "e.jsonl", lines))
    assert (row(run, "asr", "first_forward").mean_ms, row(run, "asr", "decode").mean_ms) == (30.0, 54.0)
    assert run.first_output_ends_prefill and run.residual_share == pytest.approx(0)


def test_what_nobody_logs_is_the_residual(tmp_path: Path) -> None:
    lines = [one for one in asr_run() if one["event_name"] not in ("scheduler_queue_enter",)]
    run = ledger(written(tmp_path / "e.jsonl", lines))
    assert run.residual_share == pytest.approx(0.11) and run.queue_share == 0


def test_a_stage_of_ones_own_waits_works_and_hands_on(tmp_path: Path) -> None:
    rows = [
        f"{n},{stage},{event},{n * 40 + at}"
        for n in range(25)
        for stage, event, at in (
            ("a", "enqueued", 0),
            ("a", "begin", 30),
            ("a", "finished", 50),
            ("b", "start", 50),
            ("b", "done", 60),
        )
    ]
    run = ledger(plain_csv(tmp_path / "l.csv", rows))
    assert [(r.stage, r.kind, r.mean_ms) for r in run.rows] == [
        ("a", "queue", 30),
        ("a", "service", 20),
        ("b", "service", 10),
    ]
    assert (run.queue_share, run.residual_share) == pytest.approx((0.5, 0.0))


def test_events_of_ones_own_name_their_intervals(tmp_path: Path) -> None:
    steps = [
        ("queue_wait_start", 0),
        ("queue_wait_end", 5),
        ("prefill_start", 5),
        ("prefill_end", 7),
        ("tidy_begin", 7),
        ("tidy_done", 9),
    ]
    rows = [f"{n},s,{event},{at + 9 * n}" for n in range(20) for event, at in steps]
    run = ledger(plain_csv(tmp_path / "l.csv", rows))
    assert {(r.kind, r.part, r.mean_ms) for r in run.rows} == {
        ("queue", "queue_wait", 5),
        ("first_forward", "prefill", 2),
        ("service", "tidy", 2),
    }


def test_decoding_that_is_a_stage_of_its_own_is_counted_once(tmp_path: Path) -> None:
    """As the bundled engine's asr pipeline logs it: prefill is built before the encoder had the request."""
    steps = [
        ("coordinator", "request_admission", 0), ("preprocess", "stage_input_received", 0),
        ("prefill", "scheduler_request_build_start", 2), ("preprocess", "preprocess_start", 2),
        ("preprocess", "preprocess_end", 4), ("preprocess", "stage_complete", 4),
        ("encoder", "stage_input_received", 4), ("prefill", "scheduler_request_build_end", 4),
        ("encoder", "encoder_start", 9), ("encoder", "encoder_end", 12), ("encoder", "stage_complete", 12),
        ("prefill", "stage_input_received", 12), ("prefill", "scheduler_queue_enter", 12),
        ("prefill", "scheduler_prefill_start", 20), ("prefill", "scheduler_prefill_end", 22),
        ("prefill", "stage_complete", 22), ("decode", "stage_input_received", 22),
        ("decode", "scheduler_first_emit", 25), ("decode", "stage_complete", 40),
        ("coordinator", "terminal_response", 40),
    ]  # fmt: skip
    lines = [line(f"q{n}", stage, event, at + 10 * n) for n in range(20) for stage, event, at in steps]
    run = ledger(written(tmp_path / "e.jsonl", lines))
    got = {(r.stage, str(r.kind), r.part): r.mean_ms for r in run.rows if r.kind != "hop"}
    assert got == {
        ("preprocess", "queue", ""): 2, ("preprocess", "service", "preprocess"): 2,
        ("encoder", "queue", ""): 5, ("encoder", "service", "encoder"): 3,
        ("prefill", "build", ""): 2, ("prefill", "queue", "admission"): 8,
        ("prefill", "first_forward", ""): 2, ("decode", "decode", ""): 18,
    }  # fmt: skip
    assert [q.stage for q in run.queues] == ["preprocess", "encoder", "prefill", "decode"]
    assert run.residual_share == pytest.approx(0)


def test_pieces_of_a_stream_hop_by_their_number_and_overlap_the_decoding(tmp_path: Path) -> None:
    def request(n: int, at: float) -> list[Line]:
        q, made = f"q{n}", asr_request(f"q{n}", at)
        for piece, sent in enumerate((50, 60)):
            told: dict[str, Any] = {"chunk_id": piece}
            made += [
                line(q, "asr", "stage_stream_chunk_sent", at + sent, to_stage="voc", **told),
                line(q, "voc", "stage_stream_chunk_received", at + sent + 5, from_stage="asr", **told),
                line(q, "voc", "code2wav_decode_start", at + sent + 6, batch_size=1),
                line(q, "voc", "code2wav_decode_end", at + sent + 9, batch_size=1),
            ]
        return made

    run = ledger(written(tmp_path / "e.jsonl", [one for n in range(20) for one in request(n, n * 30.0)]))
    hop = row(run, "asr → voc", "hop", "stream_chunk")
    assert (hop.n, hop.mean_ms) == (40, 5.0) and hop.share == pytest.approx(0.1)
    assert row(run, "voc", "service", "code2wav").mean_ms == 3 and row(run, "voc", "queue").mean_ms == 1
    assert run.overlap_share == pytest.approx((10 + 2 + 6) / 100) and run.residual_share == pytest.approx(0)
    assert run.hop_share == pytest.approx(0.01)  # decoding goes on meanwhile


def test_a_hop_in_which_requests_stay_is_a_queue_in_front_of_its_receiver(tmp_path: Path) -> None:
    rows = []
    for n in range(30):
        q, at = f"q{n}", n * 10.0
        rows += [line(q, "a", "start", at), line(q, "a", "end", at + 20)]
        rows += [line(q, "a", "stage_hop_sent", at + 20, to_stage="b")]
        rows += [line(q, "b", "stage_input_received", at + 80, from_stage="a")]
        rows += [line(q, "b", "stage_complete", at + 90)]
    run = ledger(written(tmp_path / "e.jsonl", rows))
    assert (run.queue_share, run.hop_share) == pytest.approx((0, 60 / 90))
    assert word_of(run) is Word.SCHEDULING and holding(run).stage == fullest(run).stage == "b"


def test_refused_requests_are_apart_from_waiting_ones(tmp_path: Path) -> None:
    lines = asr_run(30)
    refusals: tuple[dict[str, Any], ...] = (
        {"status": 503},
        {"status_code": 429},
        {"error": "request-build backlog is full (backlog_limit=16)", "status": 500},
        {"error": "out of memory"},
    )
    for n, told in enumerate(refusals):
        lines += [
            line(f"x{n}", "coordinator", "request_admission", 50),
            line(f"x{n}", "coordinator", "terminal_response", 51, **told),
        ]
    counts = ledger(written(tmp_path / "e.jsonl", lines)).counts
    assert (counts.complete, counts.shed, counts.shed_told, counts.failed, counts.cut) == (30, 3, 3, 1, 0)


def test_a_request_that_many_later_ones_overtook_was_let_go_without_work(tmp_path: Path) -> None:
    lines = asr_run(30)
    for request, at in (("early", 5), ("late", 29 * 20 - 100)):
        lines += [
            line(request, "coordinator", "request_admission", at),
            line(request, "asr", "stage_input_received", at),
        ]
    counts = ledger(written(tmp_path / "e.jsonl", lines)).counts
    assert (counts.shed, counts.shed_told, counts.cut) == (1, 0, 1)  # five came after the late one


def test_requests_that_the_log_cuts_are_left_out_of_shares(tmp_path: Path) -> None:
    lines = [one for one in asr_run(30) if 100 * 1e6 <= one["timestamp_ns"] - min_ns() <= 500 * 1e6]
    run = ledger(written(tmp_path / "e.jsonl", lines))
    assert (run.counts.complete, run.counts.cut, run.counts.all) == (16, 10, 26)
    assert run.e2e_ms.mean_ms == 100


def min_ns() -> int:
    return int(min(one["timestamp_ns"] for one in asr_run(1)))


def test_runs_of_a_reused_folder_are_ledgers_of_their_own(tmp_path: Path) -> None:
    few, many = asr_run(20, 200, run="few"), asr_run(40, 10, run="many", queue=20.0)
    path = tmp_path / "e.jsonl"
    written(path, few)
    with path.open("a", encoding="utf-8") as file:
        file.write(Path(written(tmp_path / "other", many)).read_text("utf-8"))
    analysis = analysed(str(path))
    assert [(run.run, run.e2e_ms.mean_ms) for run in analysis.runs] == [("few", 100), ("many", 110)]
    assert analysis.chosen is not None and analysis.chosen.run == "many"
    assert ledger(str(path), run="few").run == "few"
    with pytest.raises(UsageError, match="there is few, many"):
        analysed(str(path), run="other")


def test_logs_without_a_run_id_are_one_run_where_they_overlap_in_time(tmp_path: Path) -> None:
    def log(name: str, stage: str, at: int) -> str:
        rows = [
            f"{n},{stage},{event},{at + n * 10 + took}"
            for n in range(20)
            for event, took in (("start", 0), ("end", 9))
        ]
        return plain_csv(tmp_path / name, rows)

    first, beside, later = log("c1.csv", "a", 0), log("b.csv", "b", 9), log("c2.csv", "a", 5000)
    assert [run.counts.complete for run in analysed(first, beside).runs] == [20]
    runs = analysed(first, beside, later).runs
    assert {run.run: [q.stage for q in run.queues] for run in runs} == {"c1.csv": ["a", "b"], "c2.csv": ["a"]}


def test_a_wait_that_is_meant_does_not_count_against_its_stage(tmp_path: Path) -> None:
    path = written(tmp_path / "e.jsonl", asr_run())
    run = ledger(path, intended_ms={"asr": 4.0})
    meant, rest = (
        next(r for r in run.rows if r.part == "admission" and r.intended is is_meant)
        for is_meant in (True, False)
    )
    assert (meant.mean_ms, rest.mean_ms) == (4.0, 6.0)
    assert (run.queue_share, run.split["intended"]) == pytest.approx((0.06, 0.04))
    with pytest.raises(UsageError, match="no such stage; there is asr, coordinator"):
        analysed(path, intended_ms={"tts": 4.0})


@pytest.mark.parametrize(("queue", "word"), [(150.0, Word.SCHEDULING), (1.0, Word.STAGE), (50.0, Word.STAGE)])
def test_the_word_follows_from_the_shares(queue: float, word: Word, tmp_path: Path) -> None:
    run = ledger(written(tmp_path / "e.jsonl", asr_run(queue=queue)))
    assert word_of(run) is word and holding(run).stage == "asr"


def test_a_residual_that_may_hide_waiting_or_work_leaves_it_undecided_and_a_small_one_balanced(
    tmp_path: Path,
) -> None:
    def three(rest: int, work: int = 20) -> RunLedger:
        rows = [
            f"{n},{stage},{event},{n * 30 + at}"
            for n in range(20)
            for stage, event, at in (
                ("a", "start", 0),
                ("a", "end", 20),
                ("b", "start", 20),
                ("b", "end", 20 + work),
                ("c", "start", 20 + work + rest),
                ("c", "end", 40 + work + rest),
            )
        ]
        return ledger(plain_csv(tmp_path / f"{rest}-{work}.csv", rows))

    assert word_of(three(5)) is Word.BALANCED
    assert word_of(three(50)) is Word.UNDECIDED
    assert word_of(three(2, work=36)) is Word.BALANCED
    assert word_of(three(10, work=36)) is Word.UNDECIDED, "41.9 % of work and 11.6 % that may be as much"


PIECES = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda p: (min(p), max(p))), max_size=6
)


@given(PIECES)
def test_a_union_is_the_set_of_covered_moments(spans_: list[tuple[int, int]]) -> None:
    assert union_ns(spans_) == len({moment for a, b in spans_ for moment in range(a, b)})


EVENTS = ("enter", "start", "end")
LOGS = st.lists(
    st.tuples(st.sampled_from("qr"), st.sampled_from("ab"), st.sampled_from(EVENTS), st.integers(0, 60)),
    min_size=1,
    max_size=40,
)


@given(LOGS)
def test_any_order_of_events_gives_shares_within_a_request(rows: list[tuple[str, str, str, int]]) -> None:
    (run,) = timed_runs([[StageEvent(*one) for one in rows]])
    for request in run.requests:
        assert all(i.length_ns >= 0 for i in request.intervals)
    made = ledger_of(run, [ARTIFACT])
    if made is not None:
        assert 0 <= made.residual_share <= 1 and 0 <= made.queue_share + made.hop_share <= 1
        assert all(0 <= r.share <= 1 for r in made.rows)


STEPS = st.lists(st.lists(st.integers(0, 50), min_size=6, max_size=6), min_size=1, max_size=12)


@given(STEPS)
def test_rows_and_shares_are_those_of_a_slow_second_reading(steps: list[list[int]]) -> None:
    names = ("build", "hand_over", "queue", "first", "decode")
    lines = [
        one
        for n, (at, *took) in enumerate(steps)
        for one in asr_request(f"q{n}", float(at), **{k: float(v) for k, v in zip(names, took, strict=True)})  # type: ignore[arg-type]
    ]
    columns = find_columns(lines[0])
    assert columns is not None
    events = [event for event in map(Reader(columns).event, lines) if not isinstance(event, str)]
    (run,) = timed_runs([events])
    made = ledger_of(run, [ARTIFACT])
    whole = [span for span in spans(lines) if span.end > span.start]
    assert (made is None) == (not whole)
    if made is None:
        return
    total = sum(end - start for _, start, end in whole)
    known = {one.request for one in whole}
    waits = (
        ("scheduler_queue_enter", "scheduler_prefill_start"),
        ("stage_input_received", "scheduler_request_build_start"),
    )
    works = (
        ("scheduler_request_build_start", "scheduler_request_build_end"),
        ("scheduler_prefill_start", "scheduler_prefill_end"),
        ("scheduler_prefill_end", "stage_complete"),
    )
    waiting, working = (
        [s for pair in pairs for s in stretches(lines, "asr", *pair) if s.request in known]
        for pairs in (waits, works)
    )
    assert made.e2e_ms.mean_ms == pytest.approx(mean_ms(whole))
    assert made.queue_share == pytest.approx(covered(whole, waiting, working) / total)
    admitted = [s for s in stretches(lines, "asr", *waits[0]) if s.request in known]
    queue = row(made, "asr", "queue", "admission")
    assert queue.n == len(admitted) and queue.mean_ms == pytest.approx(mean_ms(admitted))
    assert queue.max_ms == pytest.approx(max(s.end - s.start for s in admitted) / 1e6)
    assert queue.share == pytest.approx(covered(whole, admitted) / total)
    if len(admitted) >= 6:
        assert queue.p50_ms == pytest.approx(quantile_ms(admitted, 0.5))
    else:
        assert queue.p50_ms is None


def test_the_twin_itself_counts_what_is_covered() -> None:
    whole, parts = [Stretch("q", 0, 10)], [Stretch("q", 2, 6), Stretch("q", 4, 8), Stretch("r", 0, 10)]
    assert (covered(whole, parts), covered(whole, parts, [Stretch("q", 5, 20)])) == (6, 3)


def test_every_event_of_the_bundled_engine_is_known() -> None:
    from typing import get_args

    from layers.stages.vocabulary import KNOWN, rules_for
    from sample_engine.observe.vocabulary import EventName

    names = set(get_args(EventName))
    used = {name for rule in rules_for(names, True) for name in (rule.start, rule.end)}
    assert names <= KNOWN | used
