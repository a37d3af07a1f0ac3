"""What `perfkit layer2` prints, whole: a thread in two modes, a void capture, two sets compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.collectors.stacks.recording import LoadEvidence, Mode, ThreadCpu
from layers.layer2_stacks.judge import judge
from parsers.stack_model import Stack, ThreadName
from perfkit.cli.layer2_view import show_layer2
from tests.command_runs import run
from tests.golden_text import assert_golden
from tests.stack_builders import capture, captures, recording, said, stack, write_raw

LOOP = "Scheduler.event_loop_normal /srv/app/scheduler.py 646"
ITEM = f"{LOOP};Sampler.next_tokens /srv/app/sampler.py 88"
HASH = f"{LOOP};Batch.keys /srv/app/batch.py 31"
QUEUE = f"{LOOP};Inbox.take /srv/app/inbox.py 12;Queue.get queue.py 171;Condition.wait threading.py 327"
WATCHDOG = ThreadName("8", "watchdog")
WATCH = "Watchdog.run /srv/app/watchdog.py 9;Event.wait threading.py 629;Condition.wait threading.py 331"


def written(name: str, *stacks: Stack, lag_s: float = 0.0) -> str:
    """In the working folder, so that no path of this machine is printed."""
    lines = [f"py-spy> {lag_s:.2f}s behind in sampling, results may be inaccurate."] if lag_s else []
    log = said(sum(of.count for of in stacks), *lines, name=name)
    Path(name).with_suffix(".log").write_text(log, encoding="utf-8")
    return write_raw(Path(name), stacks)


def idle(name: str, item: int, keys: int, lag_s: float = 0.0) -> str:
    rest = 499 - item - keys - 60
    hashes = [stack(HASH, keys)] if keys else []
    stacks = (stack(ITEM, item), *hashes, stack(QUEUE, 60), stack(LOOP, rest))
    return written(name, *stacks, stack(WATCH, 499, WATCHDOG), lag_s=lag_s)


def active(name: str, item: int, keys: int) -> str:
    return written(name, stack(ITEM, item), stack(HASH, keys), stack(LOOP, 24), stack(WATCH, 3, WATCHDOG))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    _, out, _ = run(capsys, "layer2", *arguments, "--no-record")
    assert max(map(len, out.splitlines())) <= 80
    return out


def test_a_thread_in_two_modes(capsys: pytest.CaptureFixture[str]) -> None:
    looks = [idle(f"idle_{n}.raw", 230 + 4 * n, 125 - 3 * n, lag_s=1.5 * (n == 4)) for n in range(1, 5)]
    runs = [active(f"active_{n}.raw", 14 + n, 118 - 2 * n) for n in range(1, 4)]
    shown = printed(capsys, *looks, *runs, "--mode", "idle", "--mode", "active=active_*")
    assert_golden("layer2_two_modes.txt", shown)


def test_a_capture_without_a_sample(capsys: pytest.CaptureFixture[str]) -> None:
    assert_golden("layer2_void.txt", printed(capsys, written("active_1.raw"), "--mode", "active"))


def test_two_sets_compared(capsys: pytest.CaptureFixture[str]) -> None:
    before = [idle(f"before_{n}.raw", 230, 125 + n) for n in range(3)]
    after = [idle(f"after_{n}.raw", 232 + n, 0) for n in range(3)]
    shown = printed(capsys, *after, "--compare", *before, "--mode", "idle")
    assert_golden("layer2_compared.txt", shown)


def test_the_wait_for_a_cpu_stands_beside_its_time_and_ten_ticks_make_no_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours = ThreadCpu(7, "MainThread", 2.0, 11.0, 25.0)
    how = recording(load=LoadEvidence("the server's counters", 40, 8.0, None), threads=(ours,))
    looks = captures(3, stack(ITEM, 400), stack(QUEUE, 99), recording=how)
    lock = capture(stack(HASH, 10), mode=Mode.GIL, recording=how, log=said(10))
    show_layer2(judge([*looks, lock]))
    out, _ = capsys.readouterr()
    words = " ".join(out.split())
    assert "waits for a CPU 44.0 %, on one 8.0 % (the kernel's count, 4 captures)" in words
    assert "10 ticks where it holds the interpreter's lock (--gil): too few for its lines" in words
    assert "batch.py:31" not in words and "sampler.py:88" in words
    assert "PK234" in words and "ruled out" not in words


def test_long_paths_lose_whole_folders_and_the_lock_has_its_own_column(
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = "/home/me/work/tree/engine/server/channel.py"
    of = stack(f"Link.run {own} 9;wait_for /home/me/work/tree/engine/emulated/host/waiting.py 61", 499)
    show_layer2(judge([*captures(3, of), *captures(3, of, mode=Mode.GIL)]))
    out, _ = capsys.readouterr()
    assert "…/host/waiting.py:61" in out and "…/engine/server/channel.py:9" in out
    assert "…mulated" not in out and "/home/me" not in out
    assert " lock " in out.split("n = ")[0] and "on CPU" not in out
