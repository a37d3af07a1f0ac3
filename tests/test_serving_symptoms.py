"""Symptoms of a service under load: there with numbers, not there, or not measured and what it takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from layers.evidence.finding import Strength
from layers.evidence.symptom import Seen, SymptomRule
from layers.layer3_sweep.driven import Driven
from layers.layer3_sweep.model import DeviceUse
from layers.layer3_sweep.protocol import Tally
from layers.stages.collect_live import Beside, Live
from layers.stages.judge_live import service_of
from layers.stages.model import BatchFit, Kind, RunLedger, Service, ShortWaits, Tail
from layers.stages.next_steps import batching_at
from layers.stages.serving_symptoms import (
    S13,
    S14,
    S15,
    S16,
    S17,
    S18,
    S19,
    SERVING_SYMPTOMS,
    ServingFacts,
)
from reports.lint import faults
from reports.markdown_report import render
from tests.command_runs import document, run
from tests.stage_builders import Line, asr_request, asr_run, judged, ledger, plain_csv, written
from tests.test_report_stages import reported

TAIL = Tail(0.99, 400, 4, 100.0, 500.0, 0.0, 10.0, 10.0)
SHORT = ShortWaits("own work", 25, 10.0, 50.0, 0.9, 0.3)
FIT = BatchFit("vocoder", Kind.SERVICE, 1.0, 0.1, 2.0, 0.9, 50, (), 8, False, 32, 0.5)


def loaded(tmp_path: Path, queue: float = 10.0) -> RunLedger:
    return ledger(written(tmp_path / "e.jsonl", asr_run(100, 20, queue=queue)))


def look(
    rule: SymptomRule[ServingFacts], run: RunLedger, *runs: RunLedger, service: Service | None = None
) -> Seen:
    return rule.check(ServingFacts(run, runs or (run,), service or Service()))


def test_s13_waiting_beside_a_device_with_room(tmp_path: Path) -> None:
    waits, works = loaded(tmp_path, 200.0), loaded(tmp_path)
    busy = {share: Service(share, "device_op_ratio", 100) for share in (0.3, 0.9)}
    there = look(S13, waits, service=busy[0.3])
    assert there.present and "device_op_ratio 30.0 % (n = 100 samples)" in there.numbers
    assert look(S13, waits, service=busy[0.9]).present is False
    assert look(S13, works, service=busy[0.3]).present is False
    assert look(S13, works).present is False  # no waiting: whatever the device does
    unknown = look(S13, waits)
    assert unknown.present is None and "perfkit layer1 --live" in unknown.numbers


def test_s14_a_very_long_request(tmp_path: Path) -> None:
    """One of 100 takes 40 times as long; of a run without it there is no tail."""
    lines = asr_run(100, 20)
    lines += asr_request("long", 500, decode=4000.0)
    there = look(S14, ledger(written(tmp_path / "e.jsonl", lines)))
    run = ledger(written(tmp_path / "e.jsonl", lines))
    assert run.tail is not None and run.tail.quantile == 0.95
    assert there.present is None and "p99 may be more, and takes 368" in there.numbers  # one in 101 is no p95
    few = [one for n in range(8) for one in asr_request(f"long{n}", 200 * n, decode=4000.0)]
    there = look(S14, ledger(written(tmp_path / "f.jsonl", asr_run(100, 20) + few)))
    assert there.present and "100.0 % of its" in there.numbers
    assert look(S14, replace(run, tail=replace(TAIL, long_share=0.2))).present is False
    assert look(S14, replace(run, tail=None)).present is None


@pytest.mark.parametrize("rule", [S14, S15, S16])
def test_of_too_few_requests_for_p99_a_high_p95_tells_and_a_low_one_does_not(
    rule: SymptomRule[ServingFacts], tmp_path: Path
) -> None:
    """Held against one limit: p99 is never below p95, and may be far above it."""
    tail = replace(TAIL, quantile=0.95, n=100, long_share=1.0, joins_slow=30.0)
    run, retried = loaded(tmp_path), Service(retries={"vocoder": 7.0})
    seen = [
        look(rule, replace(run, tail=replace(tail, quantile=quantile, at_ms=at_ms)), service=retried).present
        for quantile, at_ms in ((0.95, 500.0), (0.95, 200.0), (0.99, 500.0), (0.99, 200.0))
    ]
    assert seen == [True, None, True, False]


def test_s15_allocation_retries_need_counters(tmp_path: Path) -> None:
    run = replace(loaded(tmp_path), tail=TAIL)
    assert look(S15, run, service=Service(retries={"vocoder": 7.0})).present
    assert look(S15, run, service=Service(retries={"vocoder": 0.0})).present is False
    unknown = look(S15, run)
    assert unknown.present is None and "it takes the server's own counters" in unknown.numbers
    assert look(S15, replace(run, tail=replace(TAIL, at_ms=150.0))).present is False


def test_s16_batches_put_together_anew(tmp_path: Path) -> None:
    run = loaded(tmp_path)
    assert look(S16, replace(run, tail=replace(TAIL, joins_slow=30.0))).present
    assert look(S16, replace(run, tail=TAIL)).present is False
    assert look(S16, replace(run, tail=replace(TAIL, joins_slow=None))).present is None


def bursts(tmp_path: Path) -> RunLedger:
    """Steady requests, and some whose decoding lasts while many others join."""
    lines: list[Line] = []
    for burst in range(8):
        at = 1000.0 * burst
        lines += asr_request(f"slow{burst}", at, decode=500.0)
        for n in range(12):  # each joins while the slow one decodes, and decodes when all have joined
            lines += asr_request(f"b{burst}-{n}", at + 60 + 10 * n, queue=0.0, decode=1.0)
    return ledger(written(tmp_path / "b.jsonl", lines))


def test_joins_are_counted_against_decoding_time(tmp_path: Path) -> None:
    tail = bursts(tmp_path).tail
    assert tail is not None and tail.ratio > 3
    assert tail.joins_slow == pytest.approx(12 / 0.5)
    assert tail.joins_others == pytest.approx(0.0, abs=200)


def test_s17_throughput_that_falls_with_the_batch(tmp_path: Path) -> None:
    run = loaded(tmp_path)
    assert look(S17, replace(run, fits=(FIT,))).present
    assert look(S17, replace(run, fits=(replace(FIT, best_batch=64),))).present is False
    assert look(S17, replace(run, fits=(replace(FIT, r2=0.1),))).present is None
    assert run.window_ms is not None
    slower = replace(run, in_flight=50.0, window_ms=2 * run.window_ms)
    there = look(S17, slower, run, slower)
    assert there.present and "in flight" in there.numbers
    assert look(S17, slower, run, replace(slower, window_ms=run.window_ms)).present is False


@pytest.mark.parametrize(
    ("stage", "says"),
    [("a", "upstream of b"), ("b", "b holds requests itself"), ("c", "downstream of b"), ("x", "")],
)
def test_advice_on_a_batch_says_on_which_side_of_the_bottleneck_it_lies(
    stage: str, says: str, tmp_path: Path
) -> None:
    rows = [
        f"{n},{one},{event},{n * 40 + at}"
        for n in range(30)
        for one, event, at in (
            *(("a", "start", 0), ("a", "end", 5), ("b", "enqueued", 5), ("b", "start", 60)),
            *(("b", "end", 65), ("c", "start", 65), ("c", "end", 70)),
        )
    ]
    run = ledger(plain_csv(tmp_path / "l.csv", rows))
    assert (says in batching_at(run, stage)) if says else batching_at(run, stage) == ""


def test_s18_a_stage_short_of_memory(tmp_path: Path) -> None:
    run = loaded(tmp_path)
    there = look(S18, run, service=Service(retries={"vocoder": 3.0, "ar": 0.0}))
    assert there.present and "retries in vocoder 3" in there.numbers
    assert look(S18, run, service=Service(preemptions=2.0)).present
    assert look(S18, run, service=Service(kv_share=0.97)).present
    assert look(S18, run, service=Service(kv_share=0.5, preemptions=0.0)).present is False
    assert look(S18, run).present is None


def one_server(lengths: list[float], gap: float) -> list[Line]:
    """One worker, first in first out: a request waits until all before it are done."""
    lines, free = list[Line](), 0.0
    for n, work in enumerate(lengths):
        at = n * gap
        begin = max(at, free)
        lines += asr_request(f"q{n}", at, build=0.0, hand_over=0.0, queue=begin - at, first=work, decode=0.0)
        free = begin + work
    return lines


def test_s19_short_requests_behind_long_ones(tmp_path: Path) -> None:
    """Every tenth takes 300 ms, the others 5 to 6 ms, one each 60 ms: who waits, waits for a long one."""
    lengths = [300.0 if n % 10 == 0 else 5.0 + n / 200 for n in range(200)]
    run = ledger(written(tmp_path / "e.jsonl", one_server(lengths, 60.0)))
    there = look(S19, run)
    assert there.present and run.short is not None and run.short.by == "own work"
    assert run.short.beside_share > 0.9 > run.short.expected_share
    calm = ledger(written(tmp_path / "f.jsonl", one_server([5.0 + n / 200 for n in range(200)], 60.0)))
    assert look(S19, calm).present is False
    busy = replace(run, short=replace(SHORT, expected_share=0.95))
    assert look(S19, busy).present is None and "order cannot be told" in look(S19, busy).numbers
    assert look(S19, replace(run, short=replace(SHORT, beside_share=0.3))).present is False
    assert look(S19, replace(run, short=None)).present is None


def test_requests_of_one_size_have_no_short_ones(tmp_path: Path) -> None:
    assert loaded(tmp_path).short is None


def test_every_symptom_says_what_would_disprove_it() -> None:
    assert [rule.code for rule in SERVING_SYMPTOMS] == ["S13", "S14", "S15", "S16", "S17", "S18", "S19"]
    for rule in SERVING_SYMPTOMS:
        assert rule.threshold and rule.threshold_source and rule.disproof and rule.look_next


def test_one_that_is_there_is_a_weak_finding_with_its_disproof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lengths = [300.0 if n % 10 == 0 else 5.0 + n / 200 for n in range(200)]
    path = written(tmp_path / "e.jsonl", one_server(lengths, 60.0))
    (found,) = [f for f in judged(path).findings if f.statement.startswith("S19")]
    assert found.strength is Strength.WEAK and found.disproof and "shortest quarter" in found.evidence
    made = document(capsys, "stages", path)
    assert {s["code"]: s["present"] for s in made["symptoms"]}["S19"] is True
    _, out, _ = run(capsys, "stages", path, "--no-record")
    assert "S19" in out and "not measured: " in out
    report = reported(tmp_path, path)
    assert faults(report) == [] and "S19 Short requests wait" in render(report, lambda figure: figure.name)


def test_what_was_measured_live_becomes_evidence() -> None:
    devices = (
        DeviceUse("gpu 0", "nvml", "nvml_util_pct", 80.0, 50, None),
        DeviceUse("gpu 1", "nvml", "nvml_util_pct", 20.0, 50, None),
    )
    live = Live(
        *("http://h", "sample-engine", "r", Path(), 1.0, 1.0, False),
        driven=Driven(1, Tally(1, 0, 0), 1.0, ""),
        beside=Beside(None, devices, (), {"vocoder": 2.0}),
        files=(),
    )
    service = service_of(live)
    assert (service.device_busy, service.device_metric, service.device_n) == (0.2, "nvml_util_pct", 50)
    assert service.retries == {"vocoder": 2.0} and service.kv_share is None
    assert service_of(replace(live, beside=Beside(None, (), ()))) == Service()
