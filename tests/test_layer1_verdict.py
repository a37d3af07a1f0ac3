"""The verdict of Layer 1: words at their borders, several devices, what weakens it, and its exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from layers.layer1_gpu_busy.idle_model import Cause
from layers.layer1_gpu_busy.judge import judge_traces
from layers.layer1_gpu_busy.next_steps import BY_CAUSE
from layers.layer1_gpu_busy.thresholds import Thresholds, Word, word_of
from layers.layer1_gpu_busy.trace_analysis import Unread
from parsers.errors import UsageError
from tests.layer1_traces import (
    DEVICE_BOUND_NS,
    FIRST_NS,
    HOST_BOUND_NS,
    PERIOD_NS,
    UNDECIDED_NS,
    add_steady,
    analysed,
    host_only,
    steady,
)
from tests.writers.chrome import TraceBuilder

Judge = Callable[..., Result]

SECOND_NS = 1_000_000_000


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Judges traces, each given as its builder and written to a file of its own."""

    def run(*traces: TraceBuilder, thresholds: Thresholds | None = None) -> Result:
        names = (f"trace-{number}.json" for number in range(len(traces)))
        made = [analysed(trace, tmp_path, name) for trace, name in zip(traces, names, strict=False)]
        return judge_traces(made, thresholds or Thresholds())

    return run


def of_rank(rank: int, busy_ns: int, world_size: int = 2) -> TraceBuilder:
    trace = steady(busy_ns)
    trace.distributed(rank, world_size)
    return trace


def on_devices(*busy_ns: int) -> TraceBuilder:
    trace = TraceBuilder(devices=len(busy_ns))
    for device, each_ns in enumerate(busy_ns):
        add_steady(trace, each_ns, device=device)
    return trace


def says(result: Result) -> tuple[str, bool, Exit]:
    return result.verdict.word, result.verdict.directional, result.verdict.exit_code


@pytest.mark.parametrize(
    ("busy_ns", "word", "code"),
    [
        (6_000, "host-bound", Exit.OK),
        (6_001, "undecided", Exit.NO_CONCLUSION),
        (8_999, "undecided", Exit.NO_CONCLUSION),
        (9_000, "device-bound", Exit.OK),
    ],
)
def test_a_ratio_on_a_threshold_belongs_to_the_word_beyond_it(
    busy_ns: int, word: str, code: Exit, judge: Judge
) -> None:
    assert says(judge(steady(busy_ns))) == (word, False, code)


def test_thresholds_are_settable_and_stated_with_the_verdict(judge: Judge) -> None:
    result = judge(steady(6_001), thresholds=Thresholds(0.605, 0.7))
    assert says(result) == ("host-bound", False, Exit.OK)
    assert "device-op time <= 60.5 % host-bound, >= 70 % device-bound" in result.verdict.because
    assert result.sections["thresholds"] == {"host_bound": 0.605, "device_bound": 0.7}


@pytest.mark.parametrize(
    ("low", "high"), [(0.9, 0.6), (0.6, 0.6), (-0.1, 0.5), (0.5, 1.1), (float("nan"), 0.9)]
)
def test_thresholds_that_cannot_be_are_refused(low: float, high: float) -> None:
    with pytest.raises(UsageError, match="shares from 0 to 1"):
        Thresholds(low, high)


def test_thresholds_may_lie_at_the_ends() -> None:
    assert [word_of(ratio, Thresholds(0.0, 1.0)) for ratio in (0.0, 0.5, 1.0)] == [
        Word.HOST_BOUND,
        Word.UNDECIDED,
        Word.DEVICE_BOUND,
    ]


def test_a_directional_guard_keeps_the_word_and_opens_it(judge: Judge) -> None:
    result = judge(steady(operations=50))
    assert says(result) == ("host-bound", True, Exit.NO_CONCLUSION)
    assert result.verdict.headline == "HOST-BOUND?"
    assert result.sections["devices"][0]["directional"] is True
    assert result.verdict.next_step.startswith("first record again: 5 steady steps or more (PK105). Then ")
    verdict, ruled_out = result.findings[:2]
    assert ": a hint that the host does not keep it busy" in verdict.statement
    assert result.verdict.next_step.startswith(verdict.recommendation)
    assert ": a hint that kernels are not the limit" in ruled_out.statement
    assert {f.strength for f in result.findings} == {Strength.WEAK}
    assert all(f.rule.startswith("directional: fewer than 5 steps") for f in result.findings)


def test_undecided_is_no_hint(judge: Judge) -> None:
    result = judge(steady(UNDECIDED_NS, operations=50))
    assert says(result) == ("undecided", False, Exit.NO_CONCLUSION)
    assert result.verdict.headline == "UNDECIDED"


def test_a_void_device_leaves_no_finding_and_says_what_to_read(judge: Judge) -> None:
    result = judge(host_only())
    assert says(result) == ("void", False, Exit.INVALID)
    assert result.findings == [] and result.measurements == []
    assert result.verdict.next_step.startswith("record with device activities (torch.profiler:")
    assert result.verdict.next_step.endswith("(perfkit explain PK104)")


def test_what_a_void_device_measured_is_kept_and_concludes_nothing(judge: Judge) -> None:
    trace = steady()
    trace.graph_launch(FIRST_NS - 500, [], call_dur_ns=100)
    result = judge(trace)
    assert says(result) == ("void", False, Exit.INVALID)
    assert result.findings == []
    assert result.sections["devices"][0]["word"] == "void"
    assert {m.name for m in result.measurements} >= {"device_op_ratio", "kernel_time_ratio"}
    [anatomy] = result.sections["anatomy"]
    assert (anatomy["idle"], anatomy["symptoms"]) == (None, []) and anatomy["kernels"]


def test_the_spread_over_steps_stands_with_the_ratio(judge: Judge) -> None:
    trace = TraceBuilder()
    for number, busy_ns in enumerate((2_000, 4_000)):
        start_ns = FIRST_NS + number * 150 * PERIOD_NS
        add_steady(trace, busy_ns, operations=100, start_ns=start_ns)
        trace.annotation(f"ProfilerStep#{number}", start_ns - PERIOD_NS, 102 * PERIOD_NS)
    because = judge(trace).verdict.because
    assert "; 20.0 % to 40.0 % inside its 2 steps; device-op time <= 60 % host-bound" in because


def test_python_stacks_are_left_out_of_the_next_recording(judge: Judge) -> None:
    trace = steady()
    trace.python_function("serve.py(1): main", FIRST_NS - 500, 100_000)
    result = judge(trace)
    assert says(result) == ("host-bound", False, Exit.OK)
    assert result.verdict.next_step.startswith("first record again: without Python stacks (PK129). Then ")
    few = steady(operations=50)
    few.python_function("serve.py(1): main", FIRST_NS - 500, 100_000)
    step = judge(few).verdict.next_step
    wanted = "first record again: 5 steady steps or more, without Python stacks (PK105, PK129). Then "
    assert step.startswith(wanted)


def test_a_window_without_length_is_void(judge: Judge) -> None:
    trace = TraceBuilder()
    trace.kernel("instant", FIRST_NS, 0)
    result = judge(trace)
    assert says(result) == ("void", False, Exit.INVALID)
    assert (
        result.verdict.because == "1 operation, none of any duration, at one moment: the window has no length"
    )
    assert result.verdict.next_step.endswith("(perfkit explain PK135)")
    assert "device_op_ratio" not in result.sections["devices"][0]


def test_a_void_verdict_names_three_reasons_and_counts_the_rest(judge: Judge) -> None:
    traces = [host_only() for _ in range(5)]
    for number, trace in enumerate(traces):
        for _ in range(number):
            trace.cpu_op("aten::add", FIRST_NS, 10)
    because = judge(*traces).verdict.because
    assert because.count("all of the host") == 3 and because.endswith("; and 2 more")


def test_windows_that_disagree_leave_it_undecided_and_show_both(judge: Judge) -> None:
    trace = steady(DEVICE_BOUND_NS)
    trace.annotation("ProfilerStep#1", FIRST_NS - 200 * PERIOD_NS, 400 * PERIOD_NS)
    result = judge(trace)
    assert says(result) == ("undecided", False, Exit.NO_CONCLUSION)
    assert "95.0 % of the device window, 47.5 % of the profiled steps" in result.verdict.because


# Several devices and ranks


def test_devices_that_agree_share_their_word(judge: Judge) -> None:
    result = judge(on_devices(HOST_BOUND_NS, 2_000))
    assert says(result) == ("host-bound", False, Exit.OK)
    assert result.verdict.because.startswith("device busy 20.0 % to 30.0 % over 2 devices")
    assert result.verdict.next_step.endswith("Kernel tuning can win at most 30.0 %")


@pytest.mark.parametrize("other_ns", [DEVICE_BOUND_NS, UNDECIDED_NS])
def test_devices_that_differ_are_undecided_and_never_averaged(other_ns: int, judge: Judge) -> None:
    result = judge(on_devices(HOST_BOUND_NS, other_ns))
    assert says(result) == ("undecided", False, Exit.NO_CONCLUSION)
    assert f"30.0 % to {other_ns / 100:.1f} % over 2 devices" in result.verdict.because
    assert "1 host-bound, 1 " in result.verdict.because
    assert "begin with trace-0.json, device 0, the least busy one: launch" in result.verdict.next_step
    ratios = {m.scope: m.value for m in result.measurements if m.name == "device_op_ratio"}
    assert sorted(ratios.values()) == [0.3, other_ns / PERIOD_NS]


def test_ranks_are_named_and_judged_each_by_itself(judge: Judge) -> None:
    result = judge(of_rank(1, DEVICE_BOUND_NS), of_rank(0, HOST_BOUND_NS))
    assert [(d["scope"], d["rank"], d["word"]) for d in result.sections["devices"]] == [
        ("rank 1, device 0", 1, "device-bound"),
        ("rank 0, device 0", 0, "host-bound"),
    ]
    assert {g.scope for g in result.guards if g.code == "PK116"} == {"rank 0, device 0", "rank 1, device 0"}


def test_two_captures_of_one_rank_are_named_by_their_files(judge: Judge) -> None:
    first, second = of_rank(0, HOST_BOUND_NS), steady(start_ns=SECOND_NS)
    second.distributed(0, 2)
    scopes = [d["scope"] for d in judge(first, second).sections["devices"]]
    assert scopes == ["trace-0.json, device 0", "trace-1.json, device 0"]


def test_where_devices_differ_their_symptoms_are_counted(judge: Judge) -> None:
    result = judge(on_devices(HOST_BOUND_NS, DEVICE_BOUND_NS))
    assert result.verdict.next_step.startswith("S1 on 1 of 2 devices; begin with trace-0.json, device 0")
    [count] = [c for c in result.sections["symptom_counts"] if c["code"] == "S1"]
    assert (count["scopes"], count["devices"]) == (("trace-0.json, device 0",), 2)


def test_a_void_device_among_good_ones_is_left_out_and_opens_the_verdict(judge: Judge) -> None:
    result = judge(steady(), host_only())
    assert says(result) == ("host-bound", True, Exit.NO_CONCLUSION)
    assert result.verdict.because.startswith("device busy 30.0 % of its own window")
    assert result.verdict.because.endswith("; 1 void device left out")
    assert result.findings and not any("trace-1.json" in f.statement for f in result.findings)


def test_the_rest_is_undecided_where_it_differs_whatever_is_void(judge: Judge) -> None:
    result = judge(steady(), steady(DEVICE_BOUND_NS), host_only(), host_only())
    assert says(result) == ("undecided", False, Exit.NO_CONCLUSION)
    assert result.verdict.because.endswith("; 2 void devices left out")


def test_a_file_that_could_not_be_read_opens_the_verdict(tmp_path: Path) -> None:
    unread = [Unread("b.json", "b.json: no chrome trace")]
    result = judge_traces([analysed(steady(), tmp_path)], Thresholds(), unread)
    assert says(result) == ("host-bound", True, Exit.NO_CONCLUSION)
    assert result.sections["unread"] == [{"path": "b.json", "why": "b.json: no chrome trace"}]


def with_a_hole(trace: TraceBuilder, device: int, busy_ns: int) -> None:
    """Two stretches of work with a pause of more than their length between them."""
    end_ns = add_steady(trace, busy_ns, operations=100, device=device)
    add_steady(trace, busy_ns, operations=100, device=device, start_ns=2 * end_ns + FIRST_NS)


def test_a_doubt_of_the_busier_device_comes_before_the_cure_of_the_other(judge: Judge) -> None:
    trace = on_devices(1_000)
    with_a_hole(trace, 1, 6_000)
    result = judge(trace)
    assert says(result) == ("host-bound", True, Exit.NO_CONCLUSION)
    assert result.verdict.next_step.startswith("first judge by steps (PK109); check that there was load")
    assert ". Then launch overhead: CUDA graphs" in result.verdict.next_step


def test_a_busier_device_that_had_its_work_queued_is_no_cure_of_the_other(judge: Judge) -> None:
    trace = TraceBuilder(devices=2)
    add_steady(trace, 1_000, device=1)
    for number in range(200):
        start_ns = FIRST_NS + number * PERIOD_NS
        trace.launch("k", call_ns=number * 1_000, call_dur_ns=500, start_ns=start_ns, dur_ns=HOST_BOUND_NS)
    assert (
        "first look at the largest gaps and what ended them (PK117). Then " in judge(trace).verdict.next_step
    )


@pytest.mark.parametrize("others", [(), (HOST_BOUND_NS, HOST_BOUND_NS)])
def test_the_remedy_of_a_file_that_was_left_out_comes_first(others: tuple[int, ...], judge: Judge) -> None:
    step = judge(steady(), host_only(), *captures(*others)).verdict.next_step
    assert step.startswith("first record with device activities") and "(PK104). Then " in step


def test_of_a_trace_that_perfkit_does_not_read_no_remedy_is_told(judge: Judge) -> None:
    trace = host_only()
    trace.complete("mtia_ccp_events", "dma", FIRST_NS, 5, args={"device": 0})
    assert "first " not in judge(steady(), trace).verdict.next_step


def test_of_several_void_files_each_remedy_is_told(judge: Judge) -> None:
    torn = steady(operations=20)
    torn.raw('{"ph": "X", "cat": "kernel", "name": "cut')
    result = judge(host_only(), torn, host_only())
    assert says(result) == ("void", False, Exit.INVALID)
    assert result.verdict.next_step.startswith("record with device activities")
    assert result.verdict.next_step.endswith("; copy or record the file again (perfkit explain PK104 PK106)")


@pytest.mark.parametrize("busy_ns", [HOST_BOUND_NS, UNDECIDED_NS, DEVICE_BOUND_NS])
@pytest.mark.parametrize("files", [1, 2])
def test_of_ratios_alone_the_whole_reading_is_advised_once(tmp_path: Path, busy_ns: int, files: int) -> None:
    made = [analysed(steady(busy_ns), tmp_path, f"{n}.json", busy_only=True) for n in range(files)]
    result = judge_traces(made, Thresholds())
    for said in (result.verdict.next_step, *(f.recommendation for f in result.findings if not f.negative)):
        assert said.count("without --busy-only") == 1 and said.count("PK134") == 1


# Captures


def strengths(result: Result) -> list[tuple[Strength, str]]:
    return [(f.strength, f.rule) for f in verdicts(result)]


def verdicts(result: Result) -> list[Finding]:
    """The finding that states the verdict of each device."""
    return [f for f in result.findings if f.kind is FindingKind.VERDICT]


def captures(*busy_ns: int) -> list[TraceBuilder]:
    """Recorded one after another."""
    return [steady(each_ns, start_ns=(n + 1) * SECOND_NS) for n, each_ns in enumerate(busy_ns)]


def test_three_captures_that_agree_are_strong(judge: Judge) -> None:
    found = strengths(judge(*captures(3_000, 3_200, 3_500)))
    assert [strength for strength, _ in found] == [Strength.STRONG] * 3
    assert all("3 captures, 0 steps, 201 operations" in rule for _, rule in found)


@pytest.mark.parametrize("busy_ns", [(3_000,), (3_000, 3_000), (3_000, 3_000, 3_501), (5_999, 5_999, 6_001)])
def test_fewer_captures_or_ones_that_disagree_are_not(busy_ns: tuple[int, ...], judge: Judge) -> None:
    assert Strength.STRONG not in {strength for strength, _ in strengths(judge(*captures(*busy_ns)))}


def test_captures_of_other_workloads_that_happen_to_agree_repeat_nothing(judge: Judge) -> None:
    others = captures(3_000, 3_000, 3_000)
    for number, trace in enumerate(others):
        for kernel in range(10):
            trace.kernel(f"kernel {kernel} of {number}", (number + 1) * SECOND_NS + kernel * PERIOD_NS, 10)
    assert Strength.STRONG not in {strength for strength, _ in strengths(judge(*others))}


def test_one_file_under_three_names_is_one_capture_and_says_so(judge: Judge) -> None:
    result = judge(*[steady() for _ in range(3)])
    assert {strength for strength, _ in strengths(result)} == {Strength.MEDIUM}
    assert [g.message for g in result.guards if g.code == "PK132" and g.fired] == [
        "2 of 3 files hold the same events as another"
    ]


@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_ranks_of_one_run_are_one_capture(named: bool, judge: Judge) -> None:
    traces = [steady(3_000 + rank) for rank in range(4)]
    for rank, trace in enumerate(traces if named else []):
        trace.distributed(rank, 4)
    assert {strength for strength, _ in strengths(judge(*traces))} == {Strength.MEDIUM}


def test_a_void_capture_repeats_nothing(judge: Judge) -> None:
    good = captures(3_000, 3_000, 3_000)
    good[2].graph_launch(3 * SECOND_NS - 500, [], call_dur_ns=100)
    assert all("2 captures" in rule for _, rule in strengths(judge(*good)))


# Findings


def test_a_host_bound_device_gets_its_next_layer_and_a_negative_finding(judge: Judge) -> None:
    result = judge(steady())
    first, limit = result.findings[:2]
    assert first.statement.endswith("n = 201 operations): the host does not keep it busy")
    assert first.recommendation == BY_CAUSE[Cause.LAUNCH_BOUND]
    assert limit.negative and limit.statement.endswith("making all of them free would save at most 30.0 %")
    assert {m.name for m in first.measurements} == {"device_op_ratio", "kernel_time_ratio"}


def test_a_device_bound_one_gets_its_top_kernel_and_a_negative_finding(judge: Judge) -> None:
    result = judge(steady(DEVICE_BOUND_NS))
    first, limit = result.findings[:2]
    assert "the ncu command of kernel_0 (20.0 % of busy time)" in first.recommendation
    assert limit.negative and "without idle time at most 5.0 % of it would be saved" in limit.statement


def test_an_undecided_one_gets_no_negative_finding(judge: Judge) -> None:
    result = judge(steady(UNDECIDED_NS))
    assert result.findings[0].statement.endswith("between the thresholds")
    assert not any(f.negative for f in result.findings)


def test_where_the_host_was_ahead_it_is_not_sent_to_layer_2(judge: Judge) -> None:
    trace = TraceBuilder()
    for number in range(200):
        start_ns = FIRST_NS + number * PERIOD_NS
        trace.launch("k", call_ns=number * 1_000, call_dur_ns=500, start_ns=start_ns, dur_ns=HOST_BOUND_NS)
    result = judge(trace)
    assert says(result) == ("host-bound", True, Exit.NO_CONCLUSION)
    assert result.verdict.next_step.startswith("first find what the device waited for")
    assert "it was idle with work already queued" in result.findings[0].statement
    assert result.findings[0].recommendation.startswith("first find what the device waited for")


def test_idle_time_is_a_weak_finding_since_a_trace_shows_no_cause_in_the_code(judge: Judge) -> None:
    idle = next(f for f in judge(steady()).findings if "of the idle time" in f.statement)
    assert (idle.strength, idle.rule.partition(":")[0]) == (Strength.WEAK, "indirect or confounded")


@pytest.mark.parametrize("busy_ns", [HOST_BOUND_NS, DEVICE_BOUND_NS])
def test_ratios_alone_give_the_same_word_as_a_hint_and_no_anatomy(tmp_path: Path, busy_ns: int) -> None:
    whole, ratios = (analysed(steady(busy_ns), tmp_path, busy_only=only) for only in (False, True))
    one, other = (judge_traces([analysis], Thresholds()) for analysis in (whole, ratios))
    assert one.verdict.word == other.verdict.word and not one.verdict.directional
    assert other.verdict.directional and other.verdict.exit_code is Exit.NO_CONCLUSION
    assert other.sections["anatomy"] == [] and len(one.sections["anatomy"]) == 1


def test_every_number_of_a_measurement_leads_to_its_file(judge: Judge, tmp_path: Path) -> None:
    measurements = judge(steady()).measurements
    assert {(m.unit, m.n, m.n_unit) for m in measurements} == {
        ("share", 201, "device operations"),
        ("share", 200, "gaps"),
    }
    for measurement in measurements:
        assert measurement.artifact is not None
        assert Path(measurement.artifact.path) == tmp_path / "trace-0.json"
