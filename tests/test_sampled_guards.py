"""Each guard on sampled series: a log in which it fires, one in which it is clear, one to which it does not
apply."""

from __future__ import annotations

import pytest

from layers.evidence.guard import Checked, Effect
from layers.evidence.strength_table import SERIES_MIN_SAMPLES
from layers.layer1_gpu_busy.guards_sampled import SAMPLED_GUARDS
from layers.layer1_gpu_busy.sampled_model import SampledAnalysis
from parsers.loss import Loss, LossKind
from parsers.series_model import NO_DEVICE, FailureKind, Metric
from tests.sampled_builders import checks, log_of, series, util

SM, GR, MEMORY = Metric.SM_ACTIVE_RATIO, Metric.GR_ACTIVE_RATIO, Metric.MEMORY_USED_BYTES
GIB = 2**30

STEADY = log_of(
    util([97.0] * 30),
    series(SM, [0.9] * 30),
    series(MEMORY, [5e9] * 30),
    series(Metric.PROCESS_UTIL_PCT, [90.0], pid=1),
    mig_devices=(),
)
"""A log that no guard weakens."""
EMPTY = log_of()


def fired(log: SampledAnalysis, code: str, *others: SampledAnalysis, number: int = 0) -> Checked:
    """The guard, which must apply and fire."""
    found = checks(log, *others, number=number)[code]
    assert found.fired, found
    return found


def test_a_steady_log_passes_every_guard() -> None:
    found = checks(STEADY)
    assert [c for c in found.values() if c.fired] == []
    assert {guard.code for guard in SAMPLED_GUARDS} - found.keys() == {"PK145"}


def test_pk141_many_samples_of_one_moment_are_few() -> None:
    at_one_time = series(Metric.NVML_UTIL_PCT, [30.0] * 100, at_s=[0] * 100)
    found = fired(log_of(at_one_time), "PK141")
    assert found.message.startswith("100 samples at 1 different time in the active stretch: sample 20")
    whole_seconds = [n // 5 for n in range(5 * SERIES_MIN_SAMPLES)]
    steady = series(Metric.NVML_UTIL_PCT, [30.0] * len(whole_seconds), at_s=whole_seconds)
    assert not checks(log_of(steady))["PK141"].fired


def test_pk173_idle_inside_the_load() -> None:
    blips = [100.0, *[0.0] * 998, 100.0]
    found = fired(log_of(util(blips)), "PK173")
    assert (found.effect, found.message) == (
        Effect.DIRECTIONAL,
        "998 of 1,000 samples of the active stretch are 0",
    )
    assert not checks(log_of(util([100.0, 0.0] * 30)))["PK173"].fired
    assert not checks(log_of(util([0.0] * 900 + [30.0] * 100)))["PK173"].fired


@pytest.mark.parametrize(
    ("shares", "says"),
    [
        ({SM: 0.1, Metric.TENSOR_ACTIVE_RATIO: 0.9}, "tensor active 90.0 %, SM active 10.0 %"),
        ({SM: 0.1, Metric.SM_OCCUPANCY_RATIO: 0.3}, "SM occupancy 30.0 %, SM active 10.0 %"),
        ({GR: 0.3, SM: 0.5}, "SM active 50.0 %, resident time 30.0 %"),
    ],
)
def test_pk174_shares_exclude_each_other(shares: dict[Metric, float], says: str) -> None:
    log = log_of(*(series(metric, [share] * 30) for metric, share in shares.items()))
    found = fired(log, "PK174")
    assert (found.effect, found.message.partition(": ")[0]) == (Effect.DIRECTIONAL, says)
    possible = log_of(*(series(metric, [share] * 30) for metric, share in {GR: 0.9, SM: 0.5}.items()))
    assert not checks(possible)["PK174"].fired


def test_guards_on_cards_do_not_apply_to_a_log_without_any() -> None:
    assert checks(EMPTY).keys() == {"PK140", "PK146", "PK147", "PK148", "PK152"}


def test_pk140_no_sampled_values() -> None:
    asked = fired(
        log_of(series(Metric.NVML_UTIL_PCT, [], missing=5), series(Metric.POWER_W, [70.0])), "PK140"
    )
    assert (asked.effect, asked.message) == (Effect.VOID, "utilization.gpu: 5 rows, none with a value")
    others = fired(log_of(series(Metric.POWER_W, [70.0])), "PK140")
    assert others.message == "power.draw: no field that says how busy the card is"
    assert fired(EMPTY, "PK140").message == "nvidia-smi: no value of any GPU"
    odd_cells = Loss("5 lines from line 2 on: a cell is no number", -1, 0, 5, False)
    unread = fired(log_of(series(Metric.NVML_UTIL_PCT, []), losses=[odd_cells]), "PK140")
    assert unread.message.endswith("none with a value (5 lines from line 2 on: a cell is no number)")
    undated = log_of(losses=[Loss("100 lines from line 2 on: no time", -1, 0, 100, False)])
    assert fired(undated, "PK140").message.endswith("of any GPU (100 lines from line 2 on: no time)")
    assert "PK140" not in checks(log_of(failures=[FailureKind.DRIVER]))


@pytest.mark.parametrize(("n", "fires"), [(SERIES_MIN_SAMPLES - 1, True), (SERIES_MIN_SAMPLES, False)])
def test_pk141_few_sampled_values(n: int, fires: bool) -> None:
    found = checks(log_of(util([0.0] * 30 + [50.0] * n)))["PK141"]
    assert (found.fired, found.effect) == (fires, Effect.DIRECTIONAL)
    assert found.message.startswith(f"{n} samples in the active stretch")
    assert "PK141" not in checks(log_of(util([0.0] * 30)))


def test_pk142_ramp_only() -> None:
    rising = log_of(util([float(n) for n in range(1, 101)]))
    assert fired(rising, "PK142").effect is Effect.DIRECTIONAL
    loaded_then_steady = log_of(util([5.0] * 10 + [95.0] * 30))
    assert not checks(loaded_then_steady)["PK142"].fired
    assert "PK142" not in checks(log_of(util([0.0] * 30)))


def test_pk143_idle_throughout_of_the_only_card() -> None:
    found = fired(log_of(util([0.0] * 30)), "PK143")
    assert (found.effect, found.message) == (Effect.VOID, "0.0 % over 30 samples")
    assert not checks(log_of(util([1.0] * 30)))["PK143"].fired
    assert "PK143" not in checks(EMPTY)


def test_pk143_idle_while_another_card_moves() -> None:
    log = log_of(util([1.0] * 30, gpu=0), util([45.0] * 30, gpu=3))
    found = fired(log, "PK143")
    assert (found.effect, found.message) == (Effect.NOTE, "1.0 % while gpu 3 had 45.0 %")
    assert not checks(log, number=1)["PK143"].fired
    both = log_of(util([30.0] * 30, gpu=0), util([45.0] * 30, gpu=3))
    assert not checks(both)["PK143"].fired


def test_pk144_zeros_that_another_field_contradicts() -> None:
    log = log_of(util([100.0] * 30), series(SM, [0.0] * 30))
    found = fired(log, "PK144")
    assert found.effect is Effect.VOID
    assert found.message == "SMACT stayed at exactly 0 over 30 samples while NVML util read 100.0 %"
    dcgm = log_of(series(SM, [0.0] * 30), source="dcgm", path="dmon.txt")
    assert fired(dcgm, "PK144", log_of(util([90.0] * 30))).message.endswith("NVML util read 90.0 %")


@pytest.mark.parametrize(
    ("metric", "values", "said"),
    [
        (Metric.POWER_W, [70.0] * 15 + [600.0] * 15, "power.draw went from 70 to 600 W"),
        (Metric.SM_CLOCK_MHZ, [345.0] * 15 + [1980.0] * 15, "clocks.sm went from 345 to 1,980 MHz"),
        (MEMORY, [0.0] * 15 + [20.0 * GIB] * 15, "memory.used went from 0 to 21,474,836,480 bytes"),
    ],
)
def test_pk144_zeros_while_the_card_moves(metric: Metric, values: list[float], said: str) -> None:
    assert fired(log_of(util([0.0] * 30), series(metric, values)), "PK144").message.endswith(said)


def test_pk144_is_clear_where_an_idle_card_only_cools_down() -> None:
    cooling = series(Metric.POWER_W, [66.0, 65.0, 65.0, 51.0, 37.0])
    assert not checks(log_of(util([0.0] * 5), cooling))["PK144"].fired
    assert not checks(log_of(util([0.0] * 4), series(Metric.POWER_W, [60.0, 600.0])))["PK144"].fired
    assert not checks(log_of(util([30.0] * 30), series(SM, [0.0] * 30)))["PK144"].fired
    assert "PK144" not in checks(log_of(series(Metric.POWER_W, [1.0])))


def test_pk145_mig_without_utilisation() -> None:
    asked = series(Metric.NVML_UTIL_PCT, [], missing=5)
    log = log_of(asked, series(Metric.POWER_W, [295.0] * 5), mig_devices=[0])
    assert fired(log, "PK145").effect is Effect.VOID
    assert not checks(log_of(series(GR, [0.5] * 30), mig_devices=[0]))["PK145"].fired
    assert "PK145" not in checks(log_of(asked, mig_devices=[1]))


def test_pk145_a_utilisation_of_a_partitioned_card_is_of_no_instance() -> None:
    found = fired(log_of(util([50.0] * 30), mig_devices=[0]), "PK145")
    assert found.effect is Effect.DIRECTIONAL
    assert found.message == "gpu 0 is partitioned (MIG), and utilization.gpu is of no instance of it"


@pytest.mark.parametrize(
    ("code", "kind", "other"),
    [
        ("PK146", FailureKind.PERMISSION, FailureKind.DRIVER),
        ("PK147", FailureKind.PROFILING_LOCK, FailureKind.DRIVER),
        *(
            ("PK148", kind, FailureKind.PERMISSION)
            for kind in FailureKind
            if kind.name not in ("PERMISSION", "PROFILING_LOCK")
        ),
    ],
)
def test_pk146_to_pk148_what_the_sampler_said_of_itself(
    code: str, kind: FailureKind, other: FailureKind
) -> None:
    found = fired(log_of(failures=[kind]), code)
    assert (found.effect, found.message) == (Effect.VOID, f"{kind}: it said: {kind}")
    assert fired(log_of(util([50.0] * 30), failures=[kind]), code).effect is Effect.NOTE
    assert not checks(log_of(failures=[other]))[code].fired


def test_pk149_several_processes() -> None:
    processes = [series(Metric.PROCESS_UTIL_PCT, [50.0], pid=pid) for pid in (1, 2)]
    apps = log_of(*processes, source="nvidia-smi pmon", path="pmon.txt")
    found = fired(log_of(util([50.0] * 30)), "PK149", apps)
    assert (found.effect, found.message) == (Effect.NOTE, "2 processes on the card")
    assert not checks(STEADY)["PK149"].fired
    assert "PK149" not in checks(log_of(util([50.0] * 30)))


def test_pk150_scale_suspected() -> None:
    shares = log_of(util([0.97, 0.5, 1.0] * 10))
    assert fired(shares, "PK150").message == "utilization.gpu: 20 of 30 are not whole percent"
    percent = log_of(series(SM, [0.9] * 30, out_of_range=12), util([97.0] * 30))
    assert fired(percent, "PK150").message == "values that the metric cannot have were left out: SMACT (12x)"
    assert not checks(log_of(util([0.0, 1.0] * 15)))["PK150"].fired
    assert not checks(log_of(series(SM, [0.9] * 30)))["PK150"].fired
    assert "PK150" not in checks(log_of(util([0.0] * 30)))
    none_left = log_of(series(Metric.NVML_UTIL_PCT, [], out_of_range=100))
    assert fired(none_left, "PK150").message.endswith("were left out: utilization.gpu (100x)")


def test_pk151_sampling_clock_stepped() -> None:
    back = log_of(series(Metric.NVML_UTIL_PCT, [50.0] * 5, at_s=[0, 1, 0.5, 2, 3]))
    assert fired(back, "PK151").message == "1 step back in time"
    assert not checks(STEADY)["PK151"].fired
    assert "PK151" not in checks(log_of(util([50.0] * 5, timed=False)))


def lost(lines: int, kind: LossKind = LossKind.DAMAGE) -> Loss:
    return Loss("line 7: not the 5 cells of the header", -1, 40, lines, False, kind=kind)


def test_pk152_damaged_log() -> None:
    assert fired(log_of(util([50.0] * 30), losses=[lost(1)]), "PK152").effect is Effect.NOTE
    found = fired(log_of(util([50.0] * 30), losses=[lost(30)]), "PK152")
    assert (found.effect, found.message) == (Effect.DIRECTIONAL, "line 7: not the 5 cells of the header")
    assert not checks(log_of(util([50.0] * 30), losses=[lost(9, LossKind.CLOCK)]))["PK152"].fired


def test_pk153_holes_in_the_series() -> None:
    hole = log_of(series(Metric.NVML_UTIL_PCT, [50.0] * 30, at_s=[*range(29), 60]))
    found = fired(hole, "PK153")
    assert found.effect is Effect.DIRECTIONAL and "the longest gap 32 s" in found.message
    small = log_of(series(Metric.NVML_UTIL_PCT, [50.0] * 30, at_s=[*range(29), 33]))
    assert fired(small, "PK153").effect is Effect.NOTE
    assert not checks(STEADY)["PK153"].fired
    assert "PK153" not in checks(log_of(util([50.0] * 30, timed=False)))


def test_pk154_unnamed_card() -> None:
    name = "NVIDIA GeForce RTX 4090"
    untimed = series(Metric.NVML_UTIL_PCT, [50.0] * 30, gpu=NO_DEVICE, entity=name, timed=False)
    assert fired(log_of(untimed), "PK154").effect is Effect.DIRECTIONAL
    timed = series(Metric.NVML_UTIL_PCT, [50.0] * 30, gpu=NO_DEVICE, entity=name)
    assert fired(log_of(timed), "PK154").effect is Effect.NOTE
    by_uuid = series(Metric.NVML_UTIL_PCT, [50.0] * 30, gpu=NO_DEVICE, entity="gpu GPU-7")
    assert not checks(log_of(by_uuid))["PK154"].fired
    assert "PK154" not in checks(log_of(series(Metric.POWER_W, [1.0])))


def test_pk155_utilisation_over_reading() -> None:
    alone = fired(log_of(util([100.0] * 30)), "PK155")
    assert (alone.effect, alone.message) == (Effect.NOTE, "NVML util 100.0 %, SM active: not measured")
    empty = log_of(util([100.0] * 30), series(SM, [0.1] * 30))
    assert fired(empty, "PK155").message == "NVML util 100.0 %, SM active 10.0 %"
    assert fired(log_of(series(GR, [0.95] * 30)), "PK155").message.startswith("GR active 95.0 %")
    assert not checks(STEADY)["PK155"].fired
    assert not checks(log_of(util([50.0] * 30)))["PK155"].fired
    assert "PK155" not in checks(log_of(series(SM, [0.1] * 30)))


def test_pk156_utilisation_without_memory() -> None:
    log = log_of(util([100.0, 0.0, 0.0]), series(MEMORY, [0.0, 0.0, 0.0]))
    found = fired(log, "PK156")
    assert found.effect is Effect.DIRECTIONAL and found.message.startswith(
        "1 sample with utilisation above 0"
    )
    assert not checks(STEADY)["PK156"].fired
    assert "PK156" not in checks(log_of(util([100.0] * 3)))


def test_pk157_idle_edges_decide() -> None:
    log = log_of(util([0.0] * 30 + [95.0] * 30))
    found = fired(log, "PK157")
    assert found.effect is Effect.NOTE
    assert (
        "95.0 % from the first to the last sample above 0 (n = 30), 47.5 % of the whole log" in found.message
    )
    assert not checks(log_of(util([0.0] * 3 + [95.0] * 60)))["PK157"].fired
    assert "PK157" not in checks(log_of(util([0.0] * 30)))


@pytest.mark.parametrize(
    ("known", "missing", "effect"),
    [
        (100, 0, None),
        (96, 4, Effect.NOTE),
        (94, 6, Effect.DIRECTIONAL),
        (40, 60, Effect.DIRECTIONAL),
        (39, 61, Effect.VOID),
    ],
)
def test_pk182_readings_without_value(known: int, missing: int, effect: Effect | None) -> None:
    half = missing // 2
    readings = series(Metric.NVML_UTIL_PCT, [30.0] * known, missing=missing - half, out_of_range=half)
    found = checks(log_of(readings))["PK182"]
    assert (found.fired, found.effect if found.fired else None) == (effect is not None, effect)
    assert found.message.startswith(f"utilization.gpu: {known} of 100 readings have a value" * found.fired)


def test_pk182_looks_at_every_field_and_voids_by_the_one_that_judges() -> None:
    half_known = log_of(series(GR, [0.95] * 60), series(SM, [0.9] * 10, missing=50))
    found = fired(half_known, "PK182")
    assert (found.effect, found.message) == (
        Effect.DIRECTIONAL,
        "SMACT: 10 of 60 readings have a value (16.7 %)",
    )
    assert "PK141" in {code for code, guard in checks(half_known).items() if guard.fired}
    absent = log_of(series(GR, [0.95] * 60), series(SM, [], missing=60))
    assert fired(absent, "PK182").effect is Effect.NOTE
    assert "PK182" not in checks(log_of(series(GR, [], missing=60)))
