"""Which reader a log gets, what is refused and what to run instead, and files that nobody should have
made."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import sampling, text_lines
from parsers.errors import UnreadableInput
from parsers.sampled_file import read_sampled
from parsers.series_model import FailureKind
from tests.writers.samplers import (
    DCGM_4_0,
    SMI_DMON_HEADER,
    dcgm_dmon,
    rows,
    smi_csv,
    write,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


DMON_ROW = "    0    631     63     57    100     10      0      0      0      0   2619   1980 \n"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (dcgm_dmon(DCGM_4_0, ("SMACT",), [("GPU 0", ("0.1",))]), "dcgm"),
        (smi_csv(rows([1])), "nvidia-smi"),
        (SMI_DMON_HEADER + DMON_ROW, "nvidia-smi dmon"),
        ('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 1\n', "dcgm-exporter"),
        ("# TYPE vllm:x gauge\nvllm:x 1\n", "prometheus"),
    ],
)
def test_the_format_is_told_by_the_content_whatever_stands_before(path: Path, text: str, source: str) -> None:
    assert read_sampled(write(path, text)).source == source
    assert read_sampled(write(path, "started monitor at noon\n\n" + text)).source == source


SMI_TABLE = """\
Tue Jul 14 08:12:38 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |
+-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:00:09.0 Off |                    0 |
| N/A   41C    P0             69W /  700W |       0MiB /  81559MiB |      0%      Default |
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SMI_TABLE, "nvidia-smi's table, which is made for people"),
        (
            "==============NVSMI LOG==============\n\nTimestamp : now\n",
            "nvidia-smi -q, which is made for people",
        ),
        ("2025/07/01 23:00:36.000, 0, 97 %, 5 MiB\n", "nvidia-smi's csv without its header"),
        ("timestamp,gpu_power_w\n2025-07-03T08:43:07,4939.00\n", "no sampler's log that perfkit knows"),
        ("Fri 21 Nov 2025 11:41:31 PM EST", "it begins with 'Fri 21 Nov 2025 11:41:31 PM EST'"),
        ("\n\n\n", "it holds no line that can be read"),
        ("x" * 1_000_000, "it holds no line that can be read"),
        ("x\n" * 5_000, "it begins with 'x'"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_command_that_can(path: Path, text: str, why: str) -> None:
    with pytest.raises(UnreadableInput) as caught:
        read_sampled(write(path, text))
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and why in message
    assert "nvidia-smi --query-gpu=timestamp,index,utilization.gpu" in message and "\n" not in message


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"", "the file is empty"), (b"\x00\x01" * 100, "binary data"), (b"\x28\xb5\x2f\xfd123", "zstd")],
)
def test_no_text_is_refused(path: Path, data: bytes, why: str) -> None:
    path.write_bytes(data)
    with pytest.raises(UnreadableInput, match=why):
        read_sampled(str(path))


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    for name in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UnreadableInput, match="cannot be opened"):
            read_sampled(str(name))


@pytest.mark.parametrize(
    ("text", "source", "kind"),
    [
        ("Error: Unable to connect to host engine.\n", "dcgm", FailureKind.NO_HOST_ENGINE),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
            "nvidia-smi",
            FailureKind.DRIVER,
        ),
        ("Failed to initialize NVML: Driver/library version mismatch\n", "nvidia-smi", FailureKind.DRIVER),
        ("No devices were found\n", "nvidia-smi", FailureKind.DRIVER),
        ('Field "sm.util" is not a valid field to query.\n', "nvidia-smi", FailureKind.NOT_SUPPORTED),
    ],
)
def test_a_log_of_nothing_but_a_failure_is_read(
    path: Path, text: str, source: str, kind: FailureKind
) -> None:
    file = read_sampled(write(path, text))
    assert (file.source, file.series) == (source, ())
    assert [(f.kind, f.text) for f in file.failures] == [(kind, text.strip())]


def test_the_file_is_hashed_whole(path: Path) -> None:
    text = smi_csv(rows(range(100)))
    file = read_sampled(write(path, text))
    assert file.sha256 == hashlib.sha256(text.encode()).hexdigest() and file.size_bytes == len(text)


def test_more_series_than_any_machine_has_are_not_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MAX_SERIES", 3)
    lines = [f"GPU-{number}, {number} %" for number in range(5)]
    file = read_sampled(write(path, "uuid, utilization.gpu [%]\n" + "\n".join(lines) + "\n"))
    assert [s.values.tolist() for s in file.series] == [[0.0], [1.0], [2.0]]
    assert [loss.what for loss in file.losses] == ["2 lines from line 5 on: a series beyond 3: not kept"]


def test_more_notes_than_anybody_reads_are_counted_instead(path: Path) -> None:
    text = smi_csv(rows([1])) + "".join(f"remark number {n}\n" for n in range(sampling.MAX_NOTES + 5))
    file = read_sampled(write(path, text))
    assert len(file.notes) == sampling.MAX_NOTES
    assert [loss.what for loss in file.losses] == ["5 lines from line 23 on: a line that is no sample"]


LOGS = (
    dcgm_dmon(DCGM_4_0, ("GPUTL", "SMACT"), [("GPU 0", ("97", "0.1")), ("GPU-I 3", ("N/A", ""))] * 3),
    smi_csv(rows([1, 50, 100])),
    SMI_DMON_HEADER + DMON_ROW * 3,
    '# TYPE a gauge\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} 1 1751410836250\na{b="c"} 2\n',
)
ODD = ("", "\n", ",", '"', "N/A", "nan", "-inf", "1e999", "GPU 9", "#", "9" * 30, "9999/12/31 00:00:00.000")
Cut = st.tuples(st.integers(0, 400), st.integers(0, 8), st.sampled_from(ODD))


@given(log=st.sampled_from(LOGS), cuts=st.lists(Cut, max_size=6))
def test_damage_is_lost_or_refused_and_never_a_fault(
    log: str, cuts: list[tuple[int, int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    for at, length, odd in cuts:
        log = log[:at] + odd + log[at + length :]
    path = tmp_path_factory.getbasetemp() / "damaged"
    try:
        file = read_sampled(write(path, log))
    except UnreadableInput as error:
        assert "\n" not in str(error)
        return
    for series in file.series:
        assert np.isfinite(series.values).all() and series.line is not None
        assert len(series.line) == len(series.values)
        assert series.at_ns is None or len(series.at_ns) == len(series.values)


def test_a_long_log_costs_a_few_numbers_a_row(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "READ_BYTES", 4_096)
    write(path, smi_csv(rows([50.0] * 20_000)))
    tracemalloc.start()
    file = read_sampled(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = sum(s.values.nbytes for s in file.series) * 3
    assert [len(s.values) for s in file.series] == [20_000] * 3
    assert peak < 3 * kept + 500_000
