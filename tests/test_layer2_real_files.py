"""`perfkit layer2` on real captures: totals as a plain script counts them, each known trap with its guard."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.command_runs import document, run

pytestmark = pytest.mark.real_data

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(data_dir: Path) -> Path:
    return data_dir / "pyspy"


def fired(made: dict[str, Any], code: str) -> list[dict[str, Any]]:
    return [g for g in made["guards"] if g["code"] == code]


def chosen(made: dict[str, Any], mode: str = "idle") -> dict[str, Any]:
    (scope,) = [s for s in made["scopes"] if s["chosen"] and s["mode"] == mode]
    return dict(scope)


def plain_total(path: Path) -> int:
    return sum(int(count) for count in re.findall(r" (\d+)$", path.read_text("utf-8"), re.MULTILINE))


def plain_ticks(path: Path, thread: str) -> int:
    """Of one thread, by the text of its frame."""
    lines = [line for line in path.read_text("utf-8").splitlines() if f"): {thread};" in line]
    return sum(int(line.rsplit(" ", 1)[1]) for line in lines)


def test_every_raw_file_has_the_samples_of_its_last_column(folder: Path, capsys: Captured) -> None:
    files = [*sorted(folder.rglob("*.raw")), *sorted((folder / "vllm").glob("*_raw_*.txt"))]
    made = document(capsys, "layer2", *map(str, files), "--mode", "idle")
    assert {c["file"]: c["samples"] for c in made["captures"]} == {str(f): plain_total(f) for f in files}
    assert made["lost"] == [] and len(files) > 30


def test_every_capture_that_fell_behind_is_left_out_and_said(folder: Path, capsys: Captured) -> None:
    made = document(capsys, "layer2", str(folder / "lag"))
    assert (made["verdict"]["word"], made["verdict"]["exit_code"]) == ("void", 4)
    assert len(made["captures"]) == 5 and all(c["lagged"] and c["void"] for c in made["captures"])
    assert all("PK202 profiler-fell-behind" in c["why_void"] for c in made["captures"])
    slow = next(c for c in made["captures"] if c["file"].endswith("lag_t200_r20_blocking.raw"))
    assert (slow["largest_lag_s"], slow["expected_ticks"]) == (17.06, 99)
    assert made["findings"] == [] and made["scopes"] == []


def test_lagged_repeats_are_left_out_of_those_that_kept_up(folder: Path, capsys: Captured) -> None:
    made = document(capsys, "layer2", str(folder / "repeats" / "idle_*.raw"))
    void = [Path(c["file"]).name for c in made["captures"] if c["void"]]
    assert void == ["idle_4.raw", "idle_6.raw"]
    assert chosen(made)["ticks_by_capture"] == [239] * 6


def test_idle_and_active_captures_give_two_answers(folder: Path, capsys: Captured) -> None:
    repeats = folder / "repeats"
    files = [*repeats.glob("idle_?.raw"), *repeats.glob("noidle_?.raw")]
    made = document(capsys, "layer2", *map(str, sorted(files)), "--mode", "active=noidle*")
    assert {s["mode"] for s in made["scopes"] if s["chosen"]} == {"idle", "active"}
    lines = {Path(leaf["where"]).name: leaf for leaf in chosen(made)["leaves"]}
    burns, blocks = lines["engine.py:14"], lines["engine.py:45"]
    assert burns["on_cpu"]["share"] > 0.9 * burns["share"], "the loop of arithmetic works"
    assert blocks["on_cpu"]["high"] < blocks["low"], "the line that sleeps does not"
    assert made["thread"]["on_cpu"]["n"] == 3 * 239


@pytest.mark.parametrize("version", ["pidns_pyspy_0.4.3", "pidns_pyspy-v0.4.2"])
def test_another_pid_namespace_is_void_without_idle(version: str, folder: Path, capsys: Captured) -> None:
    path = str(folder / "ns" / f"{version}.raw")
    made = document(capsys, "layer2", path, "--mode", "active")
    assert made["verdict"]["word"] == "void" and fired(made, "PK211")
    with_idle = document(capsys, "layer2", str(folder / "ns" / f"{version}--idle.raw"), "--mode", "idle")
    assert not fired(with_idle, "PK211") and with_idle["captures"][0]["samples"] == 792


def test_sound_captures_without_idle_are_no_namespace(folder: Path, capsys: Captured) -> None:
    for path in [*(folder / "repeats").glob("noidle_*.raw"), folder / "engine" / "a_noidle_child.raw"]:
        assert not fired(document(capsys, "layer2", str(path), "--mode", "active"), "PK211")


def test_messages_among_stacks(folder: Path, capsys: Captured) -> None:
    mixed = folder / "traps" / "dev_stdout_mixed.txt"
    made = document(capsys, "layer2", str(mixed), "--mode", "idle")
    assert fired(made, "PK205") and made["captures"][0]["samples"] == 7
    assert any("39 samples" in text for text in made["lost"])
    clean = document(capsys, "layer2", str(folder / "traps" / "fork_in_loop.raw"), "--mode", "idle")
    assert not fired(clean, "PK205")


def test_a_helper_forked_in_the_loop_is_cut_off_and_told(folder: Path, capsys: Captured) -> None:
    made = document(capsys, "layer2", str(folder / "traps" / "fork_in_loop.raw"), "--mode", "idle")
    (told,) = fired(made, "PK213")
    assert "helper_main, process 31178: 59 ticks" in told["message"]
    assert (chosen(made)["ticks"], chosen(made)["entry"]) == (59, "event_loop_normal")
    spawned = str(folder / "engine" / "b_parent_idle_sub_threads.raw")
    assert not fired(document(capsys, "layer2", spawned), "PK213")


def test_samples_inside_imports_are_told(folder: Path, capsys: Captured) -> None:
    made = document(capsys, "layer2", str(folder / "traps" / "churn.raw"), "--mode", "idle")
    (told,) = fired(made, "PK212")
    assert "2 of 377 samples inside an import" in told["message"]
    assert not fired(document(capsys, "layer2", str(folder / "repeats" / "idle_1.raw")), "PK212")


def test_a_capture_of_the_start_alone_is_void(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    """Its lines of imports, as py-spy wrote them."""
    lines = (folder / "traps" / "churn.raw").read_text("utf-8").splitlines()
    importing = [line for line in lines if "_find_and_load (<frozen importlib._bootstrap>" in line]
    path = tmp_path / "start.raw"
    path.write_text("\n".join(importing) + "\n", encoding="utf-8")
    made = document(capsys, "layer2", str(path), "--mode", "idle")
    assert made["verdict"]["word"] == "void" and "inside an import (100.0 %)" in made["verdict"]["because"]


def test_the_front_process_is_not_the_engine(folder: Path, capsys: Captured) -> None:
    engine = folder / "engine"
    made = document(capsys, "layer2", str(engine / "b_parent_idle_nosub_threads.raw"))
    assert fired(made, "PK222") and made["verdict"]["directional"]
    both = document(capsys, "layer2", str(engine / "b_parent_idle_sub_threads.raw"))
    assert not fired(both, "PK222") and "event_loop_normal" in both["thread"]["scope"]
    assert (chosen(both)["ticks"], chosen(both)["of_all"]) == (79, 0.125)


def test_threads_that_were_not_recorded_are_told(folder: Path, capsys: Captured) -> None:
    made = document(capsys, "layer2", str(folder / "engine" / "a_idle_child.raw"), "--mode", "idle")
    assert [g["effect"] for g in fired(made, "PK214")] == ["note"]
    assert chosen(made)["ticks"] == 99


def test_the_engine_core_of_vllm_with_its_dilution(folder: Path, capsys: Captured) -> None:
    (path,) = (folder / "vllm").glob("*_raw_enginecore.txt")
    made = document(capsys, "layer2", str(path))
    core = chosen(made)
    assert made["thread"]["scope"] == "MainThread in run_busy_loop" and made["thread"]["others"] == 4
    assert core["ticks"] == plain_ticks(path, "MainThread") == 5999
    top = [(leaf["where"], leaf["function"], leaf["hits"]) for leaf in core["leaves"][:3]]
    assert top == [
        ("zmq/sugar/poll.py:106", "poll", 4944),
        ("vllm/distributed/utils.py:48", "sched_yield", 558),
        ("vllm/distributed/device_communicators/shm_broadcast.py:629", "timeout_ms", 119),
    ]
    for leaf in core["leaves"][:3]:
        assert leaf["low"] < leaf["share"] < leaf["high"] and leaf["n"] == 5999
        assert leaf["of_all"] == leaf["hits"] / 29995
    assert (made["verdict"]["word"], made["verdict"]["directional"]) == ("blocked", True)
    assert {g["code"] for g in made["guards"]} >= {"PK210", "PK218", "PK224"}


def test_a_worker_of_vllm_spins_for_work(folder: Path, capsys: Captured) -> None:
    (path,) = (folder / "vllm").glob("*Worker_TP0.txt")
    made = document(capsys, "layer2", str(path), "--mode", "active")
    assert fired(made, "PK224") and chosen(made, "active")["entry"] == "worker_busy_loop"
    assert chosen(made, "active")["waiting"]["share"] == pytest.approx(967 / 1612)


def test_two_halves_of_the_repeats_do_not_differ(folder: Path, capsys: Captured) -> None:
    repeats = folder / "repeats"
    before = [option for n in (1, 2, 3) for option in ("--compare", str(repeats / f"idle_{n}.raw"))]
    made = document(capsys, "layer2", *(str(repeats / f"idle_{n}.raw") for n in (5, 7, 8)), *before)
    compared = made["comparison"]
    assert not compared["void"] and compared["lines"]
    assert [line["where"] for line in compared["lines"] if line["clear"]] == []


def test_sides_of_other_switches_are_not_compared(folder: Path, capsys: Captured) -> None:
    made = document(
        capsys,
        *("layer2", str(folder / "repeats" / "idle_1.raw"), "--mode", "idle"),
        *("--compare", str(folder / "engine" / "b_native.raw")),
    )
    assert made["comparison"]["void"] and fired(made, "PK240")


def test_the_terminal_shows_the_shares_with_their_intervals(folder: Path, capsys: Captured) -> None:
    (path,) = (folder / "vllm").glob("*_raw_enginecore.txt")
    code, out, _ = run(capsys, "layer2", str(path), "--no-record")
    text = " ".join(out.split())
    assert code == 3 and text.startswith("BLOCKED? MainThread in run_busy_loop waits for 99.7 % [99.5, 99.8]")
    assert "82.4 % [81.4, 83.4] 16.5 % select" in text
