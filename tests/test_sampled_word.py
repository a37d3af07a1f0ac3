"""What samples alone conclude: a low utilisation does, a high one alone does not, and SM active decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.layer1_gpu_busy.sampled_word import SM_EFFECTIVE, read_shares
from layers.layer1_gpu_busy.thresholds import Thresholds, Word
from parsers.series_model import Metric

UTIL, GR, SM = Metric.NVML_UTIL_PCT, Metric.GR_ACTIVE_RATIO, Metric.SM_ACTIVE_RATIO
HOST, DEVICE, OPEN = Word.HOST_BOUND, Word.DEVICE_BOUND, Word.UNDECIDED
DEFAULT = Thresholds()


@pytest.mark.parametrize(
    ("shares", "word"),
    [
        ({UTIL: 0.30}, HOST),
        ({UTIL: 0.60}, HOST),
        ({UTIL: 0.61}, OPEN),
        ({UTIL: 1.00}, OPEN),
        ({GR: 0.30}, HOST),
        ({GR: 0.99}, OPEN),
        ({UTIL: 0.30, GR: 0.95}, OPEN),
        ({UTIL: 1.00, SM: 0.10}, OPEN),
        ({UTIL: 1.00, SM: 0.79}, OPEN),
        ({UTIL: 1.00, SM: 0.80}, DEVICE),
        ({UTIL: 0.95, GR: 0.95, SM: 0.85}, DEVICE),
        ({UTIL: 0.89, SM: 0.85}, OPEN),
        ({SM: 0.90}, DEVICE),
        ({SM: 0.30}, OPEN),
        ({SM: 0.05}, OPEN),
        ({UTIL: 0.30, SM: 0.25}, HOST),
        ({UTIL: 0.30, SM: 0.95}, OPEN),
    ],
)
def test_the_word(shares: dict[Metric, float], word: Word) -> None:
    assert read_shares(shares, DEFAULT).word is word


@pytest.mark.parametrize(
    ("shares", "because"),
    [
        ({UTIL: 0.30}, "NVML util 30.0 %: no kernel for the rest of the time"),
        (
            {UTIL: 1.00},
            "NVML util 100.0 %: some kernel ran nearly all the time, which does not say how full the device "
            "was",
        ),
        (
            {UTIL: 0.97, SM: 0.10},
            "NVML util 97.0 %, SM active 10.0 %: kernels ran nearly all the time and left SMs without work "
            "(full is from 80 % on)",
        ),
        ({UTIL: 0.30, SM: 0.95}, "not one card at one time: an active SM has a kernel"),
        ({UTIL: 0.30, GR: 0.95}, "the readings of the resident time differ"),
        ({SM: 0.30}, "few SMs had work, by idle time or by small kernels"),
        ({UTIL: 0.75}, "NVML util 75.0 %: between the thresholds"),
    ],
)
def test_why(shares: dict[Metric, float], because: str) -> None:
    assert because in read_shares(shares, DEFAULT).because


def test_thresholds_are_settable() -> None:
    assert read_shares({UTIL: 0.70}, Thresholds(host_bound=0.75)).word is HOST
    assert read_shares({UTIL: 0.80, SM: 0.80}, Thresholds(device_bound=0.80)).word is DEVICE


@pytest.mark.parametrize(
    ("shares", "where"),
    [({UTIL: 1.0}, "dcgmi dmon -e"), ({UTIL: 1.0, SM: 0.1}, "larger batches"), ({UTIL: 0.3}, "a trace")],
)
def test_where_it_leads(shares: dict[Metric, float], where: str) -> None:
    assert where in read_shares(shares, DEFAULT).next_step


@given(util=st.floats(0, 1), sm=st.floats(0, 1))
def test_no_device_is_full_with_idle_sms_and_no_host_is_slow_with_busy_ones(util: float, sm: float) -> None:
    word = read_shares({UTIL: util, SM: sm}, DEFAULT).word
    assert word is not DEVICE or (sm >= SM_EFFECTIVE and util >= DEFAULT.host_bound)
    assert word is not HOST or (util <= DEFAULT.host_bound and sm <= util + 0.11)
