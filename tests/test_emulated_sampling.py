"""Sampling the bundled engine's emulated device from outside: its documented block, found by process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.gpu import emulated_block as outside
from layers.collectors.gpu.emulated_block import Block, find_blocks
from layers.collectors.gpu.emulated_source import NAME, CountersProbe, EmulatedSource, busy_share
from layers.collectors.gpu.source import Entity, EntityLost, SourceUnavailable
from layers.evidence.verdict import Exit
from perfkit.cli.app import main
from sample_engine.emulated.host import device as host_device
from sample_engine.emulated.shared import block as inside
from sample_engine.emulated.shared.block import SharedBlock, Sizes, State, Word, create_block
from sample_engine.emulated.shared.counters import read_counters
from tests import fake_nvml

BUDGET_BYTES = 1 << 20
STEP_NS = 2_000_000

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def block() -> Iterator[SharedBlock]:
    """A block as the engine makes it, in this process, which plays both of its processes."""
    made = create_block(Sizes(BUDGET_BYTES, pinned_bytes=4096, log_slots=16))
    made.words[Word.WORKER_PID] = os.getpid()
    made.words[Word.STATE] = State.READY
    yield made
    made.words[Word.STATE] = State.FAILED
    made.close_files()


def path_of(block: SharedBlock) -> Path:
    return Path(f"/proc/{os.getpid()}/fd/{block.fd}")


@pytest.fixture
def working(block: SharedBlock) -> Iterator[Callable[[float], None]]:
    """Lets the device be busy for a share of the time, from the call on."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def work(share: float) -> None:
        began_ns = time.monotonic_ns()
        while not over.wait(STEP_NS / 1e9):
            block.words[Word.BUSY_NS] = round(share * (time.monotonic_ns() - began_ns))
            block.words[Word.KERNELS] += 1

    def start(share: float) -> None:
        threads.append(threading.Thread(target=work, args=(share,)))
        threads[-1].start()

    yield start
    over.set()
    for thread in threads:
        thread.join()


def test_reader_and_engine_agree_on_the_table() -> None:
    assert {word.name: word.value for word in outside.Word}.items() <= {
        word.name: word.value for word in Word
    }.items()
    assert int.from_bytes(outside.VERSION, sys.byteorder) == inside.MAGIC
    assert (outside.PAGE_BYTES, outside.STREAMS) == (inside.PAGE_BYTES, inside.STREAMS)
    assert (outside.FAILED, NAME) == (State.FAILED, host_device.NAME)


def test_a_block_is_found_once_among_the_open_files_of_its_processes(block: SharedBlock) -> None:
    again = os.dup(block.fd)
    heir = subprocess.Popen(
        [sys.executable, "-c", "input()"],
        pass_fds=[block.fd],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        (found,) = find_blocks([os.getpid(), heir.pid, 4194399])
        assert found.stat().st_ino == os.fstat(block.fd).st_ino
    finally:
        os.close(again)
        heir.communicate(b"\n")


def test_blocks_of_devices_that_are_gone_count_only_where_none_lives(block: SharedBlock) -> None:
    gone = create_block(Sizes(BUDGET_BYTES, pinned_bytes=4096, log_slots=16))
    gone.words[Word.STATE] = State.FAILED
    (found,) = find_blocks([os.getpid()])
    assert found.stat().st_ino == os.fstat(block.fd).st_ino
    block.words[Word.STATE] = State.FAILED
    assert os.fstat(gone.fd).st_ino in {path.stat().st_ino for path in find_blocks([os.getpid()])}
    gone.close_files()


def test_reader_and_engine_read_the_same_counters(block: SharedBlock) -> None:
    for value, word in enumerate((Word.BUSY_NS, Word.KERNELS, Word.RESERVED_BYTES, Word.COPIES), 1):
        block.words[word] = 1000 * value
    theirs, ours = read_counters(path_of(block)), Block(path_of(block)).words()
    assert theirs.busy_ns == ours[outside.Word.BUSY_NS] == 1000
    assert theirs.kernels == ours[outside.Word.KERNELS] == 2000
    assert theirs.reserved_bytes == ours[outside.Word.RESERVED_BYTES] == 3000
    assert theirs.budget_bytes == ours[outside.Word.BUDGET_BYTES] == BUDGET_BYTES


@pytest.mark.parametrize("content", [b"emudev02" + bytes(4088), b"", b"something else"])
def test_another_version_and_another_file_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "block"
    file.write_bytes(content)
    with pytest.raises(SourceUnavailable, match="no emulated device of this version"):
        EmulatedSource([str(file)])


def probe_of(block: SharedBlock) -> CountersProbe:
    return CountersProbe(Entity(NAME, 0), Block(path_of(block)))


def test_the_first_look_has_no_share_and_the_next_ones_say_what_came_between(block: SharedBlock) -> None:
    probe = probe_of(block)
    block.words[Word.BUSY_NS] = 10**15
    block.words[Word.RESERVED_BYTES] = 4096
    (first,) = probe.read()
    assert first.values == {"memory.used": 4096, "queued": 0}
    block.words[Word.KERNELS], block.words[Word.REPLAYS] = 7, 2
    block.words[Word.ISSUED], block.words[Word.COMPLETED] = 9, 4
    (second,) = probe.read()
    assert (second.values["kernels"], second.values["replays"], second.values["queued"]) == (7, 2, 5)
    assert second.values["device.busy"] == 0.0


def test_a_look_at_counters_that_are_being_written_says_nothing(block: SharedBlock) -> None:
    """Half written, a counter reads less than before; what it grew by is in the look after."""
    probe = probe_of(block)
    block.words[Word.BUSY_NS] = 10**10
    probe.read()
    block.words[Word.BUSY_NS] = 5
    (torn,) = probe.read()
    assert torn.values == {} and list(torn.missing) == ["device.busy"]
    block.words[Word.BUSY_NS] = 10**10
    (after,) = probe.read()
    assert after.values["device.busy"] == 0.0


def test_a_look_that_read_too_much_is_forgotten_after_two(block: SharedBlock) -> None:
    probe = probe_of(block)
    probe.read()
    block.words[Word.BUSY_NS] = 10**15
    probe.read()
    block.words[Word.BUSY_NS] = 5
    looks = [probe.read()[0] for _ in range(3)]
    assert [look.values.get("device.busy") for look in looks] == [None, None, 0.0]


@given(grown=st.lists(st.integers(0, 300), min_size=1, max_size=20))
def test_shares_stay_below_one_and_lose_nothing(grown: list[int]) -> None:
    """What a long command brings at its end is spread over the looks that follow; the rest is still owed."""
    shown_ns, owed_ns = 0.0, 0
    for busy_ns in grown:
        share, owed_ns = busy_share(busy_ns + owed_ns, 100)
        assert 0 <= share <= 1
        shown_ns += 100 * share
    assert shown_ns + owed_ns == pytest.approx(sum(grown))


@pytest.mark.parametrize(
    ("state", "worker"),
    [(State.FAILED, os.getpid()), (State.READY, 4194399)],
    ids=["it failed", "its process is gone"],
)
def test_a_device_that_is_gone_is_lost_and_not_idle(block: SharedBlock, state: State, worker: int) -> None:
    probe = probe_of(block)
    probe.read()
    block.words[Word.STATE], block.words[Word.WORKER_PID] = state, worker
    with pytest.raises(EntityLost):
        probe.read()


def live(capsys: Captured, *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["layer1", "--live", "3", "--pid", str(os.getpid()), "--no-record", "--json", *arguments])
    return code, json.loads(capsys.readouterr().out or "{}")


@pytest.mark.alone
@pytest.mark.parametrize(("share", "word"), [(0.3, "host-bound"), (0.97, "device-bound")])
def test_the_engines_device_is_sampled_where_the_service_has_one(
    working: Callable[[float], None], capsys: Captured, share: float, word: str
) -> None:
    working(share)
    _, document = live(capsys)
    assert document["verdict"]["word"] == word
    (device,) = document["devices"]
    assert (device["method"], device["device_name"], device["scope"]) == ("emulated", NAME, NAME)
    assert device["device_op_ratio"] == pytest.approx(share, abs=0.1)
    assert "one operation at a time" in document["verdict"]["because"]
    assert not {"PK155", "PK163"} & {guard["code"] for guard in document["guards"]}, "it has no SMs"
    assert document["sampling"]["gpus"] == [{"index": 0, "name": NAME, "uuid": ""}]


@pytest.mark.alone
def test_the_cpu_time_of_service_and_samplers_is_measured(
    working: Callable[[float], None], capsys: Captured
) -> None:
    working(0.3)
    _, document = live(capsys)
    found = {(m["name"], m["scope"]): m for m in document["measurements"]}
    service = found["service_cpu", "host"]
    assert service["unit"] == "cores" and service["n"] == len(service["raw"]) >= 2
    assert found["host_cpu_busy", "host"]["value"] > 0
    assert {scope for name, scope in found if name == "sampler_cpu"} == {
        "sampler emulated",
        "sampler host-watch",
    }


@pytest.mark.alone
def test_the_terminal_names_the_device_and_what_the_cpus_did(
    working: Callable[[float], None], capsys: Captured
) -> None:
    working(0.3)
    main(["layer1", "--live", "2.5", "--pid", str(os.getpid()), "--no-record"])
    shown = capsys.readouterr().out
    assert f"device     {NAME}" in shown and "emulated every 100 ms for" in shown
    assert "cpu        service: " in shown and "watch      who else uses the machine: host-watch" in shown


@pytest.mark.alone
def test_cards_that_are_named_are_sampled_whatever_the_service_runs_on(
    working: Callable[[float], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    fake_nvml.play(monkeypatch, fake_nvml.build(tmp_path), util="40", memory="2500", gpm="1")
    working(0.3)
    _, document = live(capsys, "--gpu-index", "0")
    assert {device["method"] for device in document["devices"]} == {"nvml"}


@pytest.mark.parametrize(
    "option", [["--pid", "4194399", "--live", "1"], ["--pid", "1"], ["--server", "http://x"]]
)
def test_what_names_a_service_goes_with_live(option: list[str], capsys: Captured) -> None:
    assert main(["layer1", *option, "--no-record"]) == Exit.USAGE
    said = capsys.readouterr().err
    assert "no such process here" in said or "go with --live" in said


def test_a_real_device_is_read_as_it_reads_itself() -> None:
    pytest.importorskip("torch")
    from tests.engine_builders import number, small_device
    from tests.engine_kernels import fill

    with small_device() as device:
        (found,) = find_blocks([os.getpid()])
        assert found.stat().st_ino == device.block_path.stat().st_ino
        probe = CountersProbe(Entity(NAME, 0), Block(found))
        buffer = number(device)
        probe.read()
        before = device.counters()
        for _ in range(50):
            device.streams[0].launch(fill, (buffer,), (1,))
        device.synchronize()
        (values,) = probe.read()
        now = device.counters()
        assert values.values["kernels"] == now.kernels - before.kernels == 50
        assert values.values["device.busy"] > 0 and values.values["queued"] == 0
        device.close()
        with pytest.raises(EntityLost):
            probe.read()
