"""Two traces side by side, per step or per window."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.guard import apply_guards
from layers.layer1_gpu_busy.busy import measure_busy
from layers.layer1_gpu_busy.compare import (
    NO_NOISE_ESTIMATE,
    WHOLE_WINDOW,
    Change,
    Side,
    compare_traces,
    time_rows,
)
from layers.layer1_gpu_busy.guards_comparison import COMPARISON_GUARDS, Sides
from layers.layer1_gpu_busy.idle_model import Cause, IdleAnatomy
from layers.layer1_gpu_busy.model import DeviceAnalysis, Steps, StepTime
from layers.layer1_gpu_busy.replays import check_replays
from parsers.trace_model import CategoryCount, DeviceTrace
from tests.builders import Op, call, copy_to_host, kernel, ops_of, trace_of
from tests.symptom_builders import NO_STEPS, idle_of, step, steps_of


def side(label: str, trace: DeviceTrace, steps: Steps = NO_STEPS, idle: IdleAnatomy | None = None) -> Side:
    ops = ops_of(trace)
    analysis = DeviceAnalysis(measure_busy(trace, ops), check_replays(trace, ops), steps=steps, idle=idle)
    return Side(label, trace, ops, analysis)


def stepped(
    kernel_ns: int, n: int, kind: str = "decode", batch_size: int | None = None
) -> tuple[DeviceTrace, Steps]:
    """`n` steps of 100 ns, one every 200 ns, each with one kernel."""
    starts = range(0, 200 * n, 200)
    ops = [kernel(t, t + kernel_ns, "gemm", correlation=t + 1) for t in starts]
    host = [call(t, t + 1, correlation=t + 1) for t in starts]
    steps = steps_of(*(step(t, t + 100, kind, batch_size=batch_size) for t in starts))
    return trace_of(ops, host), steps


def test_steps_of_a_common_kind_are_compared_per_step() -> None:
    compared = compare_traces(side("A", *stepped(50, n=4)), side("B", *stepped(80, n=2)))
    assert compared.unit == "decode step"
    assert (compared.a.units, compared.b.units) == (4, 2)
    assert (compared.a.busy_ns, compared.a.idle_ns, compared.a.busy_ratio) == (50, 50, 0.5)
    assert (compared.b.busy_ns, compared.b.idle_ns, compared.b.busy_ratio) == (80, 20, 0.8)
    row = compared.kernels[0]
    assert (row.a_ns, row.b_ns, row.a_count, row.b_count, row.ratio, row.difference_ns) == (
        50,
        80,
        1,
        1,
        1.6,
        30,
    )


def test_work_outside_the_compared_steps_is_left_out() -> None:
    trace, steps = stepped(50, n=2)
    wider = trace_of(
        [kernel(0, 50, "gemm", correlation=1), kernel(150, 190, "other", correlation=2)],
        [call(0, 1, correlation=1), call(150, 151, correlation=2)],
    )
    compared = compare_traces(side("A", wider, steps_of(steps.steps[0])), side("B", trace, steps))
    assert [row.name for row in compared.kernels] == ["gemm"]


def test_steps_of_other_kinds_and_without_work_are_left_out() -> None:
    trace, steps = stepped(50, n=3, batch_size=8)
    decode, extend, _ = steps.steps
    kinds = (decode, replace(extend, kind="extend", batch_size=2), step(500, 600, "decode", operations=0))
    compared = compare_traces(side("A", trace, Steps(steps.method, kinds)), side("B", trace, steps))
    assert (compared.unit, compared.a.units, compared.a.busy_ns, compared.a.idle_ns) == (
        "decode step",
        1,
        50,
        50,
    )
    assert compared.caveats == (NO_NOISE_ESTIMATE,)


def test_the_kind_that_the_scarcer_side_has_most_of_is_taken() -> None:
    trace, decode = stepped(50, n=6)
    kinds = ["decode", "decode", "decode", "extend", "extend", "decode"]
    mixed = Steps(decode.method, tuple(replace(s, kind=k) for s, k in zip(decode.steps, kinds, strict=True)))
    few = Steps(decode.method, tuple(replace(s, kind="extend") for s in decode.steps[:5]) + decode.steps[5:])
    assert compare_traces(side("A", trace, mixed), side("B", trace, few)).unit == "extend step"


def test_without_a_common_kind_whole_windows_are_compared_and_it_is_said() -> None:
    compared = compare_traces(side("A", *stepped(50, n=2, kind="extend")), side("B", *stepped(50, n=2)))
    assert compared.unit == WHOLE_WINDOW
    assert compared.a.busy_ns == 100
    assert compared.a.idle_ns == 150
    assert any("no kind of step" in caveat for caveat in compared.caveats)


def test_kernels_are_new_gone_changed_or_the_same_and_groups_show_whether_their_work_did() -> None:
    a = trace_of([kernel(0, 10, "ampere_sgemm_128x64"), kernel(10, 20, "kept")])
    b = trace_of([kernel(0, 30, "ampere_sgemm_64x64"), kernel(30, 40, "kept")])
    compared = compare_traces(side("A", a), side("B", b))
    assert {row.name: row.change for row in compared.kernels} == {
        "ampere_sgemm_128x64": Change.GONE,
        "ampere_sgemm_64x64": Change.NEW,
        "kept": Change.SAME,
    }
    gemm = next(row for row in compared.groups if row.name == "gemm")
    assert (gemm.change, gemm.a_ns, gemm.b_ns) == (Change.CHANGED, 10, 30)
    assert next(row for row in compared.kernels if row.change is Change.NEW).ratio is None


OPS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 9), st.sampled_from(["a", "gemm", "attn"])), min_size=1
)


@given(OPS, OPS)
def test_rows_hold_all_time_of_both_sides_largest_difference_first(
    a: list[tuple[int, int, str]], b: list[tuple[int, int, str]]
) -> None:
    def traced(rows: list[tuple[int, int, str]]) -> DeviceTrace:
        return trace_of([Op(start, start + length, name) for start, length, name in rows])

    compared = compare_traces(side("A", traced(a)), side("B", traced(b)))
    sums = [Counter[str](), Counter[str]()]
    for total, rows in zip(sums, (a, b), strict=True):
        for _, length, name in rows:
            total[name] += length
    assert {r.name: (r.a_ns, r.b_ns) for r in compared.kernels} == {
        name: (sums[0][name], sums[1][name]) for name in sums[0] | sums[1]
    }
    assert sum(r.a_ns for r in compared.groups) == sum(sums[0].values())
    sizes = [abs(r.difference_ns) for r in compared.kernels]
    assert sizes == sorted(sizes, reverse=True)


def test_a_unit_is_told_in_parts_and_in_all() -> None:
    compared = compare_traces(side("A", *stepped(50, n=4)), side("B", *stepped(80, n=2)))
    assert time_rows(compared) == (("busy", 50, 80), ("idle", 50, 20), ("in all", 100, 100))


def test_idle_time_until_the_next_step_counts_where_both_sides_know_it() -> None:
    a, b = side("A", *stepped(50, n=4)), side("B", *stepped(80, n=2))
    timed = replace(a, analysis=replace(a.analysis, step_times=(StepTime(50, 50, 100),) * 4))
    after = (StepTime(80, 20, 30), StepTime(80, 20, None))
    other = replace(b, analysis=replace(b.analysis, step_times=after))
    assert time_rows(compare_traces(timed, other))[2:] == (
        ("idle until the next", 100, 30),
        ("in all", 200, 130),
    )
    last = replace(b, analysis=replace(b.analysis, step_times=(StepTime(80, 20, None),) * 2))
    for unknown in (b, last):
        compared = compare_traces(timed, unknown)
        assert [what for what, *_ in time_rows(compared)] == ["busy", "idle", "in all"]
        assert "B: no step follows these" in compared.caveats[-1]


def test_idle_time_is_compared_by_cause_as_shares_of_the_windows() -> None:
    trace = trace_of([kernel(0, 10), kernel(90, 100)])
    a = side("A", trace, idle=idle_of(80, {Cause.HOST_WORK: 50, Cause.LAUNCH_BOUND: 30}))
    b = side("B", trace, idle=idle_of(80, {Cause.LAUNCH_BOUND: 40}))
    largest = compare_traces(a, b).idle[0]
    assert (largest.cause, largest.a_share, largest.b_share) == (Cause.HOST_WORK, 0.5, 0.0)
    assert compare_traces(a, side("B", trace)).idle == ()


def test_one_capture_each_is_always_called_directional() -> None:
    same = side("A", *stepped(50, n=2))
    assert compare_traces(same, replace(same, label="B")).caveats == (NO_NOISE_ESTIMATE,)


def test_other_differences_between_the_sides_are_named() -> None:
    trace, steps = stepped(50, n=2, batch_size=8)
    _, larger = stepped(50, n=2, batch_size=16)
    other = replace(
        on_card(trace, "NVIDIA H200"),
        inventory=[CategoryCount("python_function", "X", 10, "Python frame")],
    )
    compared = compare_traces(side("A", trace, steps), side("B", other, larger))
    assert compared.caveats[1:] == (
        "different card: A unnamed, B NVIDIA H200",
        "different batch sizes: A 8, B 16",
        "different Python stacks: A not recorded, B recorded",
    )


def on_card(trace: DeviceTrace, name: str) -> DeviceTrace:
    return replace(trace, meta=replace(trace.meta, device_names={0: name}))


def test_different_cards_put_the_whole_comparison_in_question() -> None:
    trace, steps = stepped(50, n=2)
    cards = [side(name, on_card(trace, name), steps) for name in ("H100", "H200")]
    assert fired(*cards) == {
        "PK194": "different cards: H100 H100, H200 H200; times of one say nothing of the other"
    }
    assert compare_traces(*cards).caveats == (NO_NOISE_ESTIMATE,)
    assert fired(cards[0], cards[0]) == {} and asked(*cards) == {"PK194", "PK195"}


def test_cards_are_not_compared_where_one_is_not_named() -> None:
    trace, steps = stepped(50, n=2)
    assert asked(side("A", trace, steps), side("B", on_card(trace, "H200"), steps)) == {"PK195"}


def fired(a: Side, b: Side) -> dict[str, str]:
    """The guards of the comparison that fire, with what they say."""
    return {c.code: c.message for c in apply_guards(COMPARISON_GUARDS, Sides(a, b)) if c.fired}


def asked(a: Side, b: Side) -> set[str]:
    return {c.code for c in apply_guards(COMPARISON_GUARDS, Sides(a, b))}


def test_so_does_work_that_shares_few_kernels_whatever_copies_it_shares() -> None:
    def ran(*names: str) -> DeviceTrace:
        ops = [kernel(10 * t, 10 * t + 5, name) for t, name in enumerate(names)]
        return trace_of([*ops, copy_to_host(900, 910)])

    unlike = fired(side("A", ran("p", "q", "r")), side("B", ran("r", "s", "t", "u")))
    assert unlike["PK195"].startswith("1 of 3 and 4 kernel names in common: ")
    assert fired(side("A", ran("p", "q", "r")), side("B", ran("q", "r", "t", "u"))) == {}


def test_replays_that_recorded_nothing_make_a_sides_times_too_small() -> None:
    blind = trace_of([kernel(0, 10)], [call(0, 5, "cudaGraphLaunch", correlation=9)])
    caveats = compare_traces(side("A", blind), side("B", trace_of([kernel(0, 10)]))).caveats
    assert any(caveat.startswith("A: 1 graph launch without recorded work") for caveat in caveats)
