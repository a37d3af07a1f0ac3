"""A study's cells beside each other: twins that differ in one setting, ratios, and what they come to."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from layers.collectors.load.plan import Load
from layers.collectors.server_adapters.adapter import ServerInfo
from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from layers.layer3_sweep.analyse import EACH_CELL, analyse
from layers.layer3_sweep.model import Latency, SweepPass, Timing
from layers.layer3_sweep.protocol import MIX, completed
from layers.layer3_sweep.studies import (
    POLICIES,
    QUICK,
    SCHEDULING,
    STUDIES,
    Study,
    plan_of_study,
    starts_of,
    study_named,
)
from layers.layer3_sweep.study import Compared, compared
from layers.layer3_sweep.study_judge import judge_study
from parsers.errors import UsageError
from perfkit.cli.sweep_view import show_sweep
from tests.study_builders import level, ran, unified_is_slow


def of(study: Study, passes: list[SweepPass]) -> Compared:
    return compared(analyse(passes, of_curves=EACH_CELL).curves, study.reference)


def judged(study: Study, passes: list[SweepPass]) -> Result:
    return judge_study(study, analyse(passes, of_curves=EACH_CELL))


def test_each_cell_is_compared_with_those_that_differ_in_one_setting_alone() -> None:
    found = of(QUICK, ran(QUICK, level))
    assert len(QUICK.cells) == 2 * 3 * 2
    unified = [c for c in found.comparisons if c.settings["policy"] == "unified"]
    told = [(c.mix, c.setting, c.own, c.against) for c in unified]
    assert sorted(told) == sorted(
        (mix, *other)
        for mix in QUICK.mixes
        for other in (
            ("policy", "unified", "per-stage"),
            ("policy", "unified", "per-stage"),
            ("max_running_requests", "8", "4"),
        )
    )
    for comparison in found.comparisons:
        assert MIX not in comparison.settings


def test_a_ratio_has_an_interval_out_of_the_spread_of_all_cells() -> None:
    found = of(QUICK, ran(QUICK, unified_is_slow, spread=0.02))
    slow = [c for c in found.comparisons if (c.mix, c.own) == ("short-heavy", "unified")]
    for one in slow:
        assert one.throughput.value == pytest.approx(0.7) and one.throughput.clear
        assert one.throughput.low is not None and one.throughput.high is not None
        assert one.throughput.low < 0.7 < one.throughput.high < 1
        assert one.tail is not None and one.tail.value == pytest.approx(1 / 0.7) and one.tail.clear
    rest = [c for c in found.comparisons if (c.mix, c.own) == ("long-heavy", "unified")]
    assert rest and not any(c.throughput.clear for c in rest)
    assert found.freedom == len(QUICK.cells)


def test_the_interval_is_that_of_the_pooled_spread() -> None:
    """By hand: of two repeats one lies 2 % below the other."""
    from scipy.stats import t

    found = of(QUICK, ran(QUICK, level, spread=0.02))
    sd = (math.log(1.0) - math.log(0.98)) / math.sqrt(2)
    half = t.ppf(0.975, len(QUICK.cells)) * sd
    one = found.comparisons[0].throughput
    assert one.value == pytest.approx(1.0)
    assert one.low == pytest.approx(math.exp(-half)) and one.high == pytest.approx(math.exp(half))


def test_without_repeats_nothing_is_clear() -> None:
    found = of(QUICK, ran(QUICK, unified_is_slow, repeats=1))
    assert found.freedom == 0 and found.detectable is None
    assert {c.throughput.low for c in found.comparisons} == {None}
    result = judged(QUICK, ran(QUICK, unified_is_slow, repeats=1))
    assert (result.verdict.word, result.verdict.exit_code) == ("undecided", Exit.NO_CONCLUSION)
    assert "no cell has repeats" in result.verdict.because


def test_no_cell_is_on_the_front_of_another_mix() -> None:
    found = of(QUICK, ran(QUICK, lambda cell: 90.0 if cell[MIX] == "short-heavy" else 20.0, spread=0.0))
    assert {one.mix for one in found.mixes} == set(QUICK.mixes)
    assert {one.tail for one in found.mixes} == {"p95"}
    for one in found.mixes:
        assert len(one.cells) == 6 and all(MIX not in cell.settings for cell in one.cells)
        assert all(cell.on_front for cell in one.cells)  # level within their mix


def test_a_mix_without_requests_for_a_tail_still_tells_its_throughputs() -> None:
    few = []
    for swept in ran(QUICK, unified_is_slow):
        mean_ms = 1000 * QUICK.concurrency / swept.throughput_rps
        few.append(replace(swept, timings={Timing.E2E: Latency(5, mean_ms, 1.0, ())}))
    result = judged(QUICK, few)
    for mix in result.sections["study"]["mixes"]:
        assert mix["tail"] == "" and {cell["tail_ms"] for cell in mix["cells"]} == {None}
        assert all(cell["throughput_rps"] > 0 for cell in mix["cells"])
    assert {c["tail"] for c in result.sections["study"]["comparisons"]} == {None}
    assert result.verdict.word == "settings-differ"


def test_a_difference_that_is_clear_is_the_verdict_and_names_its_cells() -> None:
    result = judged(SCHEDULING, ran(SCHEDULING, unified_is_slow))
    assert (result.verdict.word, result.verdict.exit_code) == ("settings-differ", Exit.OK), result.guards
    assert "short-heavy, policy=unified against per-stage" in result.verdict.because
    assert "0.70x [" in result.verdict.because
    study = result.sections["study"]
    assert study["name"] == "scheduling" and len(study["cannot"]) >= 3
    assert all(c["throughput"]["clear"] for c in study["comparisons"] if c["text"] in result.verdict.because)
    assert result.findings[0].measurements and result.sections["curve"] is None


def test_cells_that_are_all_alike_are_level_and_noise_is_undecided() -> None:
    alike = judged(SCHEDULING, ran(SCHEDULING, level, spread=0.005))
    assert (alike.verdict.word, alike.verdict.exit_code) == ("level", Exit.OK)
    assert alike.findings[0].negative
    noisy = judged(SCHEDULING, ran(SCHEDULING, level, spread=0.2))
    assert (noisy.verdict.word, noisy.verdict.exit_code) == ("undecided", Exit.NO_CONCLUSION)
    assert "apart would be told" in noisy.verdict.because


def test_a_study_without_two_cells_to_compare_is_void() -> None:
    one = [swept for swept in ran(QUICK, level) if swept.settings["policy"] == "unified"][:2]
    result = judged(QUICK, one)
    assert (result.verdict.word, result.verdict.exit_code) == ("void", Exit.INVALID) and not result.findings
    empty = judged(QUICK, [])
    assert (empty.verdict.word, empty.verdict.exit_code) == ("void", Exit.INVALID)


def test_cells_go_so_that_the_engine_starts_as_seldom_as_can_be() -> None:
    plan = plan_of_study(QUICK)
    assert starts_of(plan, QUICK) == 3  # the second repeat goes backwards, from where the first one ended
    assert {plan.mix_of(n) for n in range(len(plan.cells))} == set(QUICK.mixes)
    assert all(MIX not in plan.settings_of(n) for n in range(len(plan.cells)))
    assert {plan.settings_of(n)["policy"] for n in range(len(plan.cells))} == set(POLICIES)


def test_a_study_keeps_its_load_whatever_cap_the_server_has() -> None:
    plan = plan_of_study(QUICK)
    info = ServerInfo("any", "", ("m",), 8, {})
    assert completed(plan, info).loads == (Load(QUICK.concurrency),)
    assert completed(replace(plan, study=""), info).loads == (Load(8), Load(QUICK.concurrency))


def test_a_study_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    assert study_named("scheduling") is SCHEDULING
    with pytest.raises(UsageError, match="--study none: there are scheduling, scheduling:quick"):
        study_named("none")


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_a_twin_for_each_value_that_is_not_the_reference(name: str) -> None:
    study = STUDIES[name]
    others: dict[str, Any] = {n: len(v) - 1 for n, v in study.settings.items()}
    rest = {n: math.prod(len(v) for m, v in study.settings.items() if m != n) for n in study.settings}
    expected = len(study.mixes) * sum(others[n] * rest[n] for n in study.settings)
    assert len(of(study, ran(study, level)).comparisons) == expected


def test_tables_of_a_study_are_tables_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Every row says of which cell it is, and none falls apart into a line for each of its cells."""
    result = judged(SCHEDULING, ran(SCHEDULING, unified_is_slow))
    show_sweep(result)
    lines = capsys.readouterr().out.splitlines()
    heads = [n for n, line in enumerate(lines) if line.split()[:1] == ["cell"]]
    mixes = result.sections["study"]["mixes"]
    assert len(heads) == 2 * len(mixes) and max(map(len, lines)) <= 80
    for head, until, mix in zip(heads[::2], heads[1::2], mixes, strict=True):
        numbered = [n for line in lines[head:until] for n in line.split()[:1] if n.isdigit()]
        assert numbered == [str(n) for n in range(1, len(mix["cells"]) + 1)]
