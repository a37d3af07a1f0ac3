"""Live sampling end to end: real sampler processes, the real pynvml, and a driver library that plays GPUs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layers.collectors.gpu import live as live_module
from layers.collectors.gpu import smi_source
from layers.collectors.gpu.live import LiveSampling, free_path
from layers.collectors.gpu.readings import Recording, read_recording
from parsers.errors import UnreadableInput, UsageError
from parsers.series_model import FailureKind, Metric, Series
from tests import fake_nvml
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.alone

Play = Callable[..., LiveSampling]

SMI = """#!/bin/sh
case "$*" in *-lms*) while :; do
  echo '0, 97, 40, 2048, 300.5, 1980, 2619, 55'
  echo '1, [N/A], [N/A], 0, [Not Supported], 345, 2619, 31'
  echo 'Unable to determine the device handle'
  sleep 0.05; done;;
*) echo '0, GPU-a, Board A'; echo '1, GPU-b, Board B';; esac
"""

DCGMI = """#!/bin/sh
echo '#Entity   GRACT        SMACT        SMOCC        TENSO        DRAMA        '
echo 'ID'
echo 'GPU 0     N/A          N/A          N/A          N/A          N/A          '
while :; do
  echo 'GPU 0     0.912        0.455        0.250        0.125        0.333        '
  sleep 0.05; done
"""

DCGMI_BROKEN = (
    "#!/bin/sh\necho 'Error: unable to establish a connection to the specified host: localhost'\nexit 255\n"
)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str], None]:
    """Puts a shell script on the PATH under the name of a vendor's tool; without it there is none."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def add(name: str, script: str) -> None:
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)

    return add


@pytest.fixture
def prepare(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    library: Path,
    programs: Callable[[str, str], None],
) -> Play:
    """A sampling, not yet begun, of what the library plays by these settings."""

    def call(period_ms: float = 50, devices: Sequence[int] = (), **settings: str) -> LiveSampling:
        fake_nvml.play(monkeypatch, library, **{"gpm": "1", **settings})
        return LiveSampling(tmp_path, period_ms, devices)

    return call


@pytest.fixture
def play(prepare: Play) -> Play:
    """The same, begun and ended after some time."""

    def call(seconds: float = 0.3, **settings: Any) -> LiveSampling:
        return sample_for(seconds, prepare(**settings))

    return call


def sample_for(seconds: float, live: LiveSampling) -> LiveSampling:
    """Sample for a while and nothing else; the same object, ended."""
    with live:
        time.sleep(seconds)
    return live


def series(recording: Recording, entity: str, field: str) -> Series:
    (found,) = [s for s in recording.file.series if (s.entity, s.field) == (entity, field)]
    return found


def one(live: LiveSampling) -> Recording:
    (recording,) = live.recordings
    return recording


def test_two_gpus_give_their_series_in_the_units_of_their_metrics(play: Play) -> None:
    recording = one(play(util="90,0", memory="2048,0"))
    assert recording.start.source == "nvml"
    assert recording.start.models == {0: "Fake GPU", 1: "Fake GPU"}
    assert recording.start.without_sm == ()
    expected = {
        "utilization.gpu": (Metric.NVML_UTIL_PCT, 90),
        "memory.used": (Metric.MEMORY_USED_BYTES, 2 << 30),
        "power.draw": (Metric.POWER_W, 250.5),
        "GPM sm_util": (Metric.SM_ACTIVE_RATIO, 0.45),
        "GPM any_tensor_util": (Metric.TENSOR_ACTIVE_RATIO, 0.225),
    }
    for field, (metric, value) in expected.items():
        found = series(recording, "gpu 0", field)
        assert found.metric is metric and found.device == 0
        assert len(found.values) and found.values == pytest.approx(value)
    assert not series(recording, "gpu 1", "utilization.gpu").values.any()


def test_a_gpm_metric_with_an_error_of_its_own_has_no_value(play: Play) -> None:
    recording = one(play(util="90"))
    absent = series(recording, "gpu 0", "GPM dram_bw_util")
    assert len(absent.values) == 0 < absent.missing
    assert "gpu 0: GPM dram_bw_util has no value: Not Supported" in "; ".join(recording.file.notes)


def test_samples_stand_in_time_order_on_the_wall_clock_of_the_run(play: Play) -> None:
    before_ns = time.time_ns()
    recording = one(play(util="90", slow_us="60000"))
    at_ns = series(recording, "gpu 0", "utilization.gpu").at_ns
    assert at_ns is not None
    assert (np.diff(at_ns) > 0).all()
    assert before_ns < at_ns[0] and at_ns[-1] < time.time_ns()


def test_the_drivers_own_buffer_is_a_series_beside_the_polled_one(play: Play) -> None:
    recording = one(play(util="90,0"))
    buffered = series(recording, "gpu 0", "utilization.gpu buffer")
    assert buffered.metric is Metric.NVML_UTIL_PCT and set(buffered.values) == {90}
    assert not [s for s in recording.file.series if s.entity == "gpu 1" and "buffer" in s.field]


def test_calls_of_340_ms_leave_the_cadence_alone(play: Play) -> None:
    seconds, call_s = 1.5, 0.34
    recording = one(play(seconds, period_ms=100, util="90,0", slow_us=str(int(call_s * 1e6))))
    one_after_the_other = seconds / call_s
    for gpu in ("gpu 0", "gpu 1"):
        assert len(series(recording, gpu, "utilization.gpu").values) > 1.5 * one_after_the_other
    for probe in recording.cost.probes:
        assert probe.ticks >= probe.calls + probe.missed
    slow = [probe for probe in recording.cost.probes if probe.probe == "utilization"]
    assert all(probe.p50_ns > call_s * 1e9 for probe in slow)


def test_a_gpu_lost_during_the_run_costs_its_own_samples_alone(play: Play) -> None:
    recording = one(play(util="90,80", lost="1:3", seconds=0.6))
    (lost,) = recording.lost
    assert (lost.entity, lost.why) == ("gpu 1", "GPU is lost")
    alive, dead = (series(recording, f"gpu {n}", "utilization.gpu") for n in (0, 1))
    assert len(dead.values) < 3 < len(alive.values)
    assert alive.at_ns is not None and alive.at_ns[-1] > lost.wall_ns
    assert "gpu 1 was lost: GPU is lost" in recording.file.notes


def test_a_call_that_never_returns_hangs_neither_the_run_nor_the_other_gpu(play: Play) -> None:
    live = play(util="90,80", hang="1")
    recording = one(live)
    assert live.problems == []
    assert len(series(recording, "gpu 0", "utilization.gpu").values) > 3
    assert not [s for s in recording.file.series if (s.entity, s.field) == ("gpu 1", "utilization.gpu")]


def test_mig_has_instances_and_no_utilisation(play: Play) -> None:
    recording = one(play(util="90", memory="512", mig="0"))
    whole = series(recording, "gpu 0", "utilization.gpu")
    assert (len(whole.values), whole.missing) == (0, 1)
    assert recording.file.mig_devices == (0,)
    for instance in ("gpu 0 instance 7", "gpu 0 instance 8"):
        assert len(series(recording, instance, "GPM sm_util").values)
        assert series(recording, instance, "memory.used").device == 0


def test_a_field_without_support_is_asked_once_and_noted(play: Play) -> None:
    recording = one(play(util="90", no_power="1", seconds=0.8))
    power = series(recording, "gpu 0", "power.draw")
    assert (len(power.values), power.missing) == (0, 1)
    assert len(series(recording, "gpu 0", "clocks.sm").values) > 1


def test_gpm_that_only_claims_to_work_is_left_out_and_said(play: Play) -> None:
    recording = one(play(util="90", gpm="", gpm_lies="1"))
    assert recording.start.without_sm == (0,)
    assert "gpu 0: GPM: Not Supported" in recording.file.notes


def test_the_sampler_measures_its_own_cost(play: Play) -> None:
    cost = one(play(util="90,0")).cost
    assert cost.cpu_share is not None and cost.cpu_share > 0
    assert {(p.probe, p.entity) for p in cost.probes} >= {("utilization", "gpu 0"), ("memory", "gpu 1")}
    assert all(probe.max_ns >= probe.p50_ns > 0 for probe in cost.probes if probe.calls)


def test_without_sm_activity_in_nvml_dcgmi_runs_beside_it(
    play: Play, programs: Callable[[str, str], None]
) -> None:
    programs("dcgmi", DCGMI)
    live = play(util="90", gpm="")
    nvml, dcgm = live.recordings
    assert (nvml.start.source, dcgm.start.source) == ("nvml", "dcgmi")
    active = series(dcgm, "gpu 0", "SMACT")
    assert active.metric is Metric.SM_ACTIVE_RATIO
    assert set(active.values) == {0.455} and active.missing == 1


def test_a_source_that_was_asked_for_runs_beside_the_others(
    prepare: Play, programs: Callable[[str, str], None], tmp_path: Path
) -> None:
    programs("dcgmi", DCGMI)
    prepare(util="90")
    live = sample_for(0.3, LiveSampling(tmp_path, also={"dcgmi": ["0"]}))
    assert [recording.start.source for recording in live.recordings] == ["nvml", "dcgmi"]


def test_a_dcgmi_that_fails_says_why_and_costs_nothing(
    play: Play, programs: Callable[[str, str], None]
) -> None:
    programs("dcgmi", DCGMI_BROKEN)
    live = play(util="90", gpm="")
    notes = "; ".join(live.recordings[1].file.notes)
    assert "unable to establish a connection" in notes and "exit code 255" in notes
    assert live.recordings[1].file.failures[0].kind is FailureKind.NO_HOST_ENGINE
    assert len(series(live.recordings[0], "gpu 0", "utilization.gpu").values)


def test_nvidia_smi_takes_over_where_nvml_cannot_be_used(
    play: Play, programs: Callable[[str, str], None]
) -> None:
    programs("nvidia-smi", SMI)
    live = play(util="90", init="18")
    recording = one(live)
    assert recording.start.source == "nvidia-smi"
    assert series(recording, "gpu 0", "utilization.gpu").values[0] == 97
    assert series(recording, "gpu 0", "memory.used").values[0] == 2 << 30
    unknown = series(recording, "gpu 1", "utilization.gpu")
    assert len(unknown.values) == 0 < unknown.missing
    assert "nvidia-smi: Unable to determine the device handle" in recording.file.notes
    assert "the driver was updated" in live.problems[0]


def test_without_any_gpu_there_are_reasons_and_no_recording(
    tmp_path: Path, programs: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    with LiveSampling(tmp_path) as live:
        pass
    if live.recordings:
        pytest.skip("this machine has a GPU")
    assert live.problems == [
        "nvml: NVML Shared Library Not Found",
        "nvidia-smi: nvidia-smi is not on the PATH",
    ]


def test_a_driver_that_hangs_at_the_start_is_given_up(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "START_TIMEOUT_S", 0.5)
    monkeypatch.setattr(live_module, "STOP_TIMEOUT_S", 0.5)
    live = play(util="90", init="-1", seconds=0)
    assert live.recordings == ()
    assert live.problems[0] == "nvml: no answer in 0.5 s"


def test_an_index_that_no_gpu_has_is_said(play: Play) -> None:
    live = play(seconds=0, util="90,0", devices=[2])
    assert "nvml: no GPU 2; the indexes are 0 to 1" in live.problems[0]


def test_only_the_chosen_device_is_sampled(play: Play) -> None:
    recording = one(play(util="90,0", devices=[1]))
    assert {s.device for s in recording.file.series} == {1}


def test_a_killed_sampler_leaves_what_it_recorded(prepare: Play) -> None:
    with prepare(util="90") as live:
        time.sleep(0.3)
        live._samplers[0]._process.kill()
    assert live.problems == ["nvml: the sampler ended with code -9: no words"]
    assert one(live).cost.elapsed_ns > 0
    assert len(series(one(live), "gpu 0", "utilization.gpu").values)


def test_a_full_disk_is_a_problem_of_the_sampler_and_not_of_the_run(prepare: Play) -> None:
    with prepare(util="90") as live:
        time.sleep(0.2)
        limit_file_size(live._samplers[0]._process.pid)
        time.sleep(0.3)
    assert "a record was not written (File too large)" in live.problems[0]
    assert len(series(one(live), "gpu 0", "utilization.gpu").values)


def test_a_listing_that_hangs_does_not_outlive_the_sampling(
    play: Play, programs: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "START_TIMEOUT_S", 2)
    monkeypatch.setattr(live_module, "STOP_TIMEOUT_S", 0.5)
    deaf = f"trap '' TERM INT\necho $$ > {tmp_path}/pid\nwhile :; do sleep 1; done\n"
    programs("nvidia-smi", f"#!/bin/sh\n{deaf}")
    live = play(util="90", init="18", seconds=0)
    assert live.problems[-1] == "nvidia-smi: no answer in 2 s"
    assert ended(int((tmp_path / "pid").read_text()))


def test_a_listing_gives_up_before_the_sampler_is_given_up() -> None:
    assert smi_source.LIST_TIMEOUT_S < live_module.START_TIMEOUT_S


def test_a_line_without_end_costs_the_line_and_not_the_sampler(
    play: Play, programs: Callable[[str, str], None]
) -> None:
    endless = "head -c 300000 /dev/zero | tr '\\0' x"
    programs("nvidia-smi", SMI.replace("echo 'Unable to determine the device handle'", f"{endless}; echo"))
    live = play(util="90", init="18")
    assert len(live.problems) == 1
    assert len(series(one(live), "gpu 0", "utilization.gpu").values) > 1
    assert max(map(len, one(live).file.notes)) < 1000


def test_values_that_a_metric_cannot_have_are_left_out_and_counted(
    play: Play, programs: Callable[[str, str], None]
) -> None:
    programs("nvidia-smi", SMI.replace("'0, 97, 40,", "'0, 250, -40,"))
    recording = one(play(util="90", init="18"))
    for field in ("utilization.gpu", "utilization.memory"):
        impossible = series(recording, "gpu 0", field)
        assert len(impossible.values) == 0 < impossible.out_of_range
    assert series(recording, "gpu 0", "power.draw").out_of_range == 0


def limit_file_size(pid: int) -> None:
    """From now on the process cannot make a file longer than this, as on a disk that is full."""
    import resource

    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1024, 1024))


def test_a_sampler_ends_with_the_process_that_started_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: Path, programs: Callable[[str, str], None]
) -> None:
    fake_nvml.play(monkeypatch, library, util="90")
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom layers.collectors.gpu.live import Sampler\n"
        "sampler = Sampler('nvml', Path(sys.argv[1]), 50_000_000, ())\nsampler.wait_ready(20)\n"
        "print(sampler._process.pid, flush=True)\ntime.sleep(60)"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "samples.log")],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    sampler = int(starter.stdout.readline())
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    assert ended(sampler)


def ended(pid: int, patience_s: float = 60.0) -> bool:
    """Whether a process that is nobody's child here goes away (or is a zombie that nobody reaps)."""
    give_up = time.monotonic() + patience_s
    while time.monotonic() < give_up:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_second_sampling_in_one_folder_keeps_the_first(play: Play, tmp_path: Path) -> None:
    first, second = one(play(util="90", seconds=0.1)), one(play(util="10", seconds=0.1))
    assert first.file.path != second.file.path
    assert series(read_recording(Path(first.file.path)), "gpu 0", "utilization.gpu").values[0] == 90


def test_two_samplings_at_once_in_one_folder_have_files_of_their_own(prepare: Play) -> None:
    first, second = prepare(util="90"), prepare(util="90")
    with first, second:
        time.sleep(0.3)
    paths = {one(live).file.path for live in (first, second)}
    assert len(paths) == 2 and all(one(live).start.source == "nvml" for live in (first, second))
    assert one(first).file.losses == one(second).file.losses == ()


def test_names_are_taken_at_once_and_given_back_where_nothing_is_recorded(play: Play, tmp_path: Path) -> None:
    assert [free_path(tmp_path, "x").name for _ in range(3)] == [
        "samples-x.log",
        "samples-x-2.log",
        "samples-x-3.log",
    ]
    assert play(util="90", init="18").recordings == ()
    assert not list(tmp_path.glob("samples-nvml*.log"))


def test_a_damaged_line_is_a_loss_and_the_rest_is_read(play: Play) -> None:
    path = Path(one(play(util="90", seconds=0.2)).file.path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1].replace(b":", b";"), *lines[2:]]))
    recording = read_recording(path)
    assert len(recording.file.losses) == 1
    assert recording.file.series


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.log"
    path.write_text("something else\n")
    with pytest.raises(UnreadableInput, match="no recording of a sampler"):
        read_recording(path)


def test_a_period_that_repeats_the_drivers_values_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="5 ms"):
        LiveSampling(tmp_path, period_ms=5)


def test_what_holds_the_clocks_back_is_sampled(play: Play) -> None:
    recording = one(play(util="90", reasons="64", seconds=0.8))
    held = series(recording, "gpu 0", "clocks.event_reasons")
    assert len(held.values) and set(held.values) == {64.0}
