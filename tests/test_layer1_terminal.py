"""What `perfkit layer1` prints: two whole outputs in 80 columns, and names out of files that stay inert."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from perfkit.cli import app
from perfkit.cli.layer1_many import RANKS_SHOWN
from perfkit.cli.output import WIDTH
from tests.golden_text import assert_golden
from tests.layer1_traces import (
    DEVICE_BOUND_NS,
    FIRST_NS,
    HOST_BOUND_NS,
    PERIOD_NS,
    add_steady,
    host_only,
    steady,
)
from tests.writers.chrome import TraceBuilder
from tests.writers.decode_loop import decode_loop

Show = Callable[..., str]

WINDOW_NS = 200 * PERIOD_NS


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    """What the command prints for these traces, each written under its name into the current folder."""
    monkeypatch.chdir(tmp_path)

    def layer1(*options: str, **traces: TraceBuilder) -> str:
        paths = [str(trace.write(Path(f"{name}.json"))) for name, trace in traces.items()]
        app.main(["layer1", "--no-record", *paths, *options])
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return layer1


def rank(number: int, busy_ns: int, all_reduce_ns: int) -> TraceBuilder:
    """One of two ranks; it waits in its collectives for as long as the other one is late."""
    trace = TraceBuilder()
    trace.distributed(number, 2)
    end_ns = add_steady(trace, busy_ns)
    for step in range(5):
        at_ns = FIRST_NS + step * WINDOW_NS // 5
        trace.annotation(f"ProfilerStep#{step}", at_ns - 500, WINDOW_NS // 5)
        call_ns = end_ns + PERIOD_NS + step * 2 * all_reduce_ns
        trace.launch(
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            call_ns=call_ns,
            start_ns=call_ns + 1_000,
            dur_ns=all_reduce_ns,
            stream=20,
        )
    return trace


def test_a_host_bound_decode_loop(show: Show) -> None:
    assert_golden("layer1_decode_loop.txt", show(decode_loop=decode_loop()))


def test_two_ranks_one_of_which_is_late(show: Show) -> None:
    ranks = {"rank0": rank(0, HOST_BOUND_NS, 40_000), "rank1": rank(1, DEVICE_BOUND_NS, 4_000)}
    assert_golden("layer1_ranks.txt", show(**ranks))


def test_a_void_trace(show: Show) -> None:
    assert_golden("layer1_void.txt", show(cpu=host_only()))


def blind() -> TraceBuilder:
    """Host-bound by what was recorded, with one replay of which nothing was."""
    trace = steady()
    trace.graph_launch(FIRST_NS - 500, [], call_dur_ns=100)
    return trace


def test_a_void_trace_shows_its_ratios_and_nothing_that_follows_from_them(show: Show) -> None:
    text = show(blind=blind())
    assert text.startswith("VOID") and "device-op time" in text
    assert "→ record again with graph nodes visible" in text
    for part in ("where the idle time is", "Look next", "Usual cause", "it lies", "launches   "):
        assert part not in text


def test_what_explains_is_what_decided(show: Show) -> None:
    few_of_one_rank = steady(operations=50)
    few_of_one_rank.distributed(0, 2)
    assert "explain    perfkit explain PK105\n" in show(a=few_of_one_rank)
    one_rank = steady(DEVICE_BOUND_NS)
    one_rank.distributed(0, 2)
    shown = show(b=one_rank)  # notes alone
    assert "PK131" in shown and "\nexplain " not in shown


def test_a_trace_of_training_is_called_one(show: Show) -> None:
    trace = steady()
    trace.annotation("Optimizer.step#SGD.step", FIRST_NS, 1_000)
    assert "training   backward passes or optimizer steps are in this trace" in show(t=trace)
    assert "training " not in show(t=steady())


def test_exposed_time_and_a_symptom_that_just_misses_are_shown(show: Show) -> None:
    trace = steady(DEVICE_BOUND_NS)
    trace.memcpy("DtoH", FIRST_NS + WINDOW_NS + 200, 100_000)
    text = show(t=trace)
    assert "exposed    copies and sets outside kernels 100 µs, 4.8 % of the window\n" in text
    assert "close      S12 copies on the critical path: exposed copies 4.8 % against 5.0 %\n" in text


def test_a_run_of_many_ranks_shows_those_that_kept_the_others_waiting(show: Show) -> None:
    ranks = {f"rank{n:02}": many_ranks(n) for n in range(RANKS_SHOWN + 2)}
    text = show(**ranks)
    shown = text.partition("last to join, of 5\n")[2].partition("and 2 ranks")[0]
    assert shown.count("\n") == RANKS_SHOWN and shown.startswith("rank 5 ")
    assert "and 2 ranks that caused less: --json lists all\n" in text
    assert "straggler  rank 5: last to arrive at 5 of 5 collectives" in text


def many_ranks(number: int) -> TraceBuilder:
    """One of several ranks, of which rank 5 is late."""
    trace = TraceBuilder()
    trace.distributed(number, RANKS_SHOWN + 2)
    for step in range(5):
        length_ns = 5_000 if number == 5 else 50_000
        trace.kernel("ncclDevKernel_AllReduce", FIRST_NS + step * 100_000, length_ns)
    return trace


@pytest.mark.parametrize("name", ["layer1_decode_loop.txt", "layer1_ranks.txt", "layer1_void.txt"])
def test_80_columns_are_enough(name: str) -> None:
    text = (Path(__file__).parent / "golden" / name).read_text("utf-8")
    assert max(map(len, text.splitlines())) <= WIDTH


# Names out of files

HOSTILE = "[bold red]k\x1b[31m\x07\r\n\u202eernel\x9b1m[/] :fire: {0} %s"
INERT = r"[bold red]k\x1b[31m\x07\r\n\u202eernel\x9b1m[/] :fire: {0} %s"
LONG = HOSTILE + "x" * 10_000


def hostile_everywhere() -> TraceBuilder:
    """Every name that a file gives is hostile and 10,000 characters long."""
    trace = TraceBuilder()
    trace.header["deviceProperties"] = [{"id": 0, "name": LONG}]
    trace.distributed(0, 2)
    for number in range(20):
        at_ns = FIRST_NS + number * 100_000
        trace.python_function(LONG, at_ns, 30_000)
        trace.annotation("ProfilerStep#1" + LONG, at_ns, 90_000)
        trace.annotation(LONG, at_ns, 90_000)
        trace.cpu_op(LONG, at_ns + 30_000, 20_000)
        trace.launch(LONG, call_ns=at_ns + 40_000, start_ns=at_ns + 50_000, dur_ns=5_000)
    trace.kernel(LONG, FIRST_NS + 5_000_000, 3_000_000)
    trace.memcpy(LONG, FIRST_NS + 9_000_000, 300)
    trace.complete(LONG, LONG, FIRST_NS, 2, args={"device": 0})
    trace.name_process(0, LONG)
    return trace


@pytest.mark.parametrize("options", [[], ["--busy-only"]], ids=["whole", "busy only"])
def test_hostile_names_are_shown_inert_and_short(options: list[str], show: Show) -> None:
    text = show(*options, t=hostile_everywhere())
    assert all(line.isprintable() for line in text.splitlines())
    assert max(map(len, text.splitlines())) <= WIDTH
    assert options or INERT.partition(" :")[0] in " ".join(text.split())
    assert "x" * 100 not in text.replace("\n", "").replace(" ", "")


def test_hostile_names_are_inert_in_a_comparison_and_in_a_void_verdict(show: Show) -> None:
    void = host_only()
    void.complete(LONG, LONG, FIRST_NS, 2, args={"device": 0})
    before = hostile_everywhere()
    before.kernel(LONG + "another", FIRST_NS + 9_500_000, 700)
    before.write(Path("before.json"))
    for text in (show(void=void), show("--compare", "before.json", after=hostile_everywhere())):
        assert all(line.isprintable() for line in text.splitlines())
        assert max(map(len, text.splitlines())) <= WIDTH


def test_a_hostile_file_name_is_inert_wherever_it_is_shown(show: Show) -> None:
    name = "a\x1b[31m[red]\u202e"
    text = show(**{name: steady(), "b": steady(start_ns=2 * FIRST_NS)})
    assert all(line.isprintable() for line in text.splitlines())
    assert r"a\x1b[31m[red]\u202e.json" in text
