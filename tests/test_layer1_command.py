"""`perfkit layer1` as it is typed: how files are named, what is refused, recorded, and compared."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from layers.evidence.store import Investigation
from layers.layer1_gpu_busy.collect import find_trace_files
from parsers.errors import UnreadableInput
from perfkit.cli import app
from tests.layer1_traces import DEVICE_BOUND_NS, host_only, steady
from tests.writers.chrome import TraceBuilder
from tests.writers.decode_loop import decode_loop

SECOND_NS = 1_000_000_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty; faults would be logged beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def traces(folder: Path) -> Callable[..., None]:
    """Writes small traces under these names, no two of the same bytes."""

    def write(*names: str) -> None:
        for number, name in enumerate(names):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            steady(start_ns=(number + 1) * SECOND_NS).write(Path(name))

    return write


Write = Callable[..., None]
Output = pytest.CaptureFixture[str]


def layer1(*arguments: str) -> int:
    return app.main(["layer1", *arguments])


def document(capsys: Output, *arguments: str) -> dict[str, Any]:
    layer1("--json", "--no-record", *arguments)
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


# Naming files


def test_files_are_read_in_the_order_of_their_names(traces: Write) -> None:
    traces("b.json", "a.json", "c.json.gz")
    assert find_trace_files(["b.json", "c.json.gz", "a.json"]) == ["b.json", "c.json.gz", "a.json"]


def test_a_folder_stands_for_all_traces_below_it_sorted(traces: Write, folder: Path) -> None:
    traces("run/2.json", "run/deep/1.json.gz", "run/notes.txt", "run/3.json")
    Path("run/folder.json").mkdir()
    assert find_trace_files(["run"]) == ["run/2.json", "run/3.json", "run/deep/1.json.gz"]


def test_a_quoted_pattern_stands_for_what_matches(traces: Write) -> None:
    traces("rank1.json", "rank0.json", "other.json", "deep/er/rank2.json")
    assert find_trace_files(["rank*.json"]) == ["rank0.json", "rank1.json"]
    assert find_trace_files(["**/rank*.json"]) == ["deep/er/rank2.json", "rank0.json", "rank1.json"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(traces: Write) -> None:
    traces("t[1].json", "t1.json")
    assert find_trace_files(["t[1].json"]) == ["t[1].json"]


def test_a_file_named_twice_in_any_way_is_read_once_where_it_was_named_first(traces: Write) -> None:
    traces("a.json", "b.json")
    Path("link.json").symlink_to("a.json")
    assert find_trace_files(["a.json", "b.json", "./a.json", "link.json"]) == ["a.json", "b.json"]
    assert find_trace_files(["link.json", "."]) == ["link.json", "b.json"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("empty", r"empty: no \*.json or \*.json.gz or \*.sqlite in this folder"),
        ("none*.json", r"none\*.json: no file matches this pattern"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused(name: str, complaint: str) -> None:
    Path("empty").mkdir()
    with pytest.raises(UnreadableInput, match=complaint):
        find_trace_files([name])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--trace", "a.json", "--trace", "b.json"],
        ["--trace", "a.json", "b.json"],
        ["a.json", "b.json"],
        ["--trace", "*.json"],
        ["."],
    ],
    ids=["repeated", "shell-expanded", "plain", "pattern", "folder"],
)
def test_every_way_to_name_two_files_reads_both(arguments: list[str], traces: Write, capsys: Output) -> None:
    traces("a.json", "b.json")
    assert [t["path"] for t in document(capsys, *arguments)["traces"]] == ["a.json", "b.json"]


# What is refused, in one line


def assert_refused(capsys: Output, code: int, *words: str) -> None:
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("perfkit: ") and err.count("\n") == 1
    assert all(word in err for word in words), err
    assert code == 2


def test_no_file_at_all(capsys: Output) -> None:
    assert_refused(capsys, layer1(), "name a trace", "perfkit layer1 --trace FILE")


@pytest.mark.parametrize(
    "name",
    ["gone.json", "none*.json", ".", "x" * 5_000, "a/" * 2_500 + "b"],
    ids=["gone", "no match", "empty folder", "long", "deep"],
)
def test_a_name_that_stands_for_no_file(name: str, capsys: Output) -> None:
    assert_refused(capsys, layer1(name), name[:100], name[-60:])


def test_files_none_of_which_can_be_read(capsys: Output) -> None:
    for number in range(5):
        Path(f"{number}.json").write_text("no trace")
    assert_refused(capsys, layer1("."), "0.json", "2.json", "; and 2 more")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_may_not_be_entered(capsys: Output) -> None:
    Path("closed").mkdir(mode=0)
    assert_refused(capsys, layer1("closed/a.json"), "closed/a.json")


@pytest.mark.parametrize("share", ["0.95", "1.5", "nan"])
def test_thresholds_that_cannot_be(share: str, traces: Write, capsys: Output) -> None:
    traces("a.json")
    assert_refused(capsys, layer1("a.json", "--host-bound", share), "shares from 0 to 1")


def test_an_offset_that_is_none_is_refused_without_any_log(traces: Write, capsys: Output) -> None:
    traces("a.json")
    assert_refused(capsys, layer1("a.json", "--utc-offset", "x"), "--utc-offset x: give it as +HH:MM")


def test_a_measured_tpot_without_parameters_is_refused_before_anything_is_read(capsys: Output) -> None:
    for option in (("--measured-tpot", "12"), ("--batch", "4"), ("--kv-heads", "8")):
        assert_refused(capsys, layer1("gone.json", *option), "roofline options need --params")


def test_two_traces_to_compare_with_one_are_refused_before_they_are_read(capsys: Output) -> None:
    Path("a.json").write_text("no trace")
    Path("b.json").write_text("no trace")
    assert_refused(capsys, layer1(".", "--compare", "c.json"), "--compare takes one trace to compare, not 2")


# A part of the files


@pytest.mark.parametrize("bad", ["gone.json", "bad.json"])
def test_a_bad_file_among_good_ones_costs_only_itself_and_opens_the_verdict(
    bad: str, traces: Write, capsys: Output
) -> None:
    traces("a.json", "b.json")
    Path("bad.json").write_text("no trace")
    assert layer1("a.json", bad, "b.json", "--no-record") == 3
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("HOST-BOUND?")
    assert f"PK130 unreadable-file: directional. 1 of 3 files could not be read: {bad}" in shown


def test_no_finding_is_more_than_a_hint_where_a_file_could_not_be_read(traces: Write, capsys: Output) -> None:
    traces("a.json", "b.json")
    layer1("a.json", "b.json", "--no-record", "--json")
    assert "medium" in {one["strength"] for one in json.loads(capsys.readouterr().out)["findings"]}
    layer1("a.json", "gone.json", "b.json", "--no-record", "--json")
    assert {one["strength"] for one in json.loads(capsys.readouterr().out)["findings"]} == {"weak"}


# What is recorded


def runs() -> list[Any]:
    with Investigation.open(Path("perfkit-investigation"), create=False) as investigation:
        return investigation.runs()


def test_a_run_is_recorded_with_its_command_and_its_document(
    traces: Write, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces("a.json")
    monkeypatch.setattr("sys.argv", ["perfkit", "layer1", "a.json"])
    assert layer1("a.json") == 0
    assert "recorded as run 1 in perfkit-investigation" in capsys.readouterr().err
    [run] = runs()
    assert run.call.command_line == "perfkit layer1 a.json"
    assert run.call.started <= run.call.ended
    assert run.document["verdict"]["word"] == "host-bound"
    assert run.document == document(capsys, "a.json")


def test_a_void_run_is_recorded_too_with_the_file_that_it_read(capsys: Output, folder: Path) -> None:
    host_only().write(Path("void.json"))
    assert layer1("void.json") == 4
    [run] = runs()
    assert run.document["verdict"]["word"] == "void"
    with Investigation.open(Path("perfkit-investigation")) as investigation:
        rows = investigation._database.query(
            "SELECT path FROM artifacts JOIN run_artifacts ON artifact_id = id"
        )
    assert [row["path"] for row in rows] == [str(folder / "void.json")]


def test_no_record_leaves_no_trace(traces: Write, capsys: Output, folder: Path) -> None:
    traces("a.json")
    assert layer1("a.json", "--no-record") == 0
    assert os.listdir(folder) == ["a.json"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_what_was_found_is_shown_even_where_it_cannot_be_recorded(
    form: list[str], traces: Write, capsys: Output
) -> None:
    traces("a.json")
    Path("file").write_text("no folder")
    assert layer1("a.json", "--investigation", "file", *form) == 4
    out, err = capsys.readouterr()
    assert out.startswith("HOST-BOUND") or json.loads(out)["verdict"]["word"] == "host-bound"
    assert err.startswith("perfkit: file") and err.count("\n") == 1


# Extras


def slower_decode() -> TraceBuilder:
    return decode_loop(steps=6)


def test_compare_puts_the_earlier_trace_first(capsys: Output) -> None:
    decode_loop().write(Path("before.json"))
    slower_decode().write(Path("after.json"))
    found = document(capsys, "after.json", "--compare", "before.json")["comparison"]
    assert (found["a"]["label"], found["b"]["label"]) == ("before.json", "after.json")
    assert layer1("after.json", "--compare", "before.json", "--no-record") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "compared per decode step: after.json (n = 6) against before.json (n = 8)" in shown


def test_a_comparison_comes_right_after_the_verdict_and_says_its_order(capsys: Output) -> None:
    decode_loop().write(Path("before.json"))
    slower_decode().write(Path("after.json"))
    assert layer1("after.json", "--compare", "before.json", "--no-record") == 0
    lines = capsys.readouterr().out.splitlines()
    at = {line.split("  ")[0]: number for number, line in reversed(list(enumerate(lines)))}
    assert at["compared"] < at["in all"] < at["kernel, most changed first"] < at["ratio"]


def test_sides_of_one_name_are_told_apart_by_their_folders(capsys: Output) -> None:
    for folder, trace in (("old", decode_loop()), ("new", slower_decode())):
        Path(folder).mkdir()
        trace.write(Path(folder) / "trace.json")
    found = document(capsys, "new/trace.json", "--compare", "old/trace.json")["comparison"]
    assert (found["a"]["label"], found["b"]["label"]) == ("old/trace.json", "new/trace.json")


def test_other_work_than_before_is_said_first(traces: Write, capsys: Output) -> None:
    decode_loop().write(Path("before.json"))
    traces("a.json")
    layer1("a.json", "--compare", "before.json", "--no-record")
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert next(line for line in lines if line.startswith(("beware", "compared"))).startswith("beware")
    assert any("PK195 unlike-work: 0 of" in line for line in lines)


def test_the_guards_of_a_comparison_are_beside_it_and_not_those_of_the_new_trace(
    traces: Write, capsys: Output
) -> None:
    decode_loop().write(Path("before.json"))
    traces("a.json")
    made = document(capsys, "a.json", "--compare", "before.json")
    assert {(g["code"], g["fired"]) for g in made["comparison"]["guards"]} >= {("PK195", True)}
    assert "PK195" not in {guard["code"] for guard in made["guards"]}


def test_the_exit_code_is_that_of_the_new_trace(capsys: Output) -> None:
    steady(operations=10).write(Path("few.json"))
    steady().write(Path("good.json"))
    assert layer1("good.json", "--compare", "few.json", "--no-record") == 0
    assert layer1("few.json", "--compare", "good.json", "--no-record") == 3


def test_a_trace_compared_with_itself_is_refused(traces: Write, capsys: Output) -> None:
    traces("a.json")
    Path("b.json").write_bytes(Path("a.json").read_bytes())
    Path("c.json.gz").write_bytes(gzip.compress(Path("a.json").read_bytes()))
    for other in ("a.json", "b.json", "c.json.gz"):
        code = layer1("a.json", "--compare", other, "--no-record")
        assert_refused(capsys, code, f"--compare {other}: the same events as in a.json")


def cut(path: Path) -> None:
    """Damage a gzip file in the middle."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + b"\xff" * 8 + data[len(data) // 2 + 8 :])


@pytest.mark.parametrize(
    ("earlier", "why", "what_it_takes"),
    [
        ("gone.json", "gone.json: cannot be opened", "No such file"),
        ("none.json", "none.json: PK104 no-device-activity", "Record with device activities"),
        ("lost.json.gz", "lost.json.gz: PK106 damaged-file", "Copy or record the file again."),
    ],
)
def test_an_earlier_trace_that_says_nothing_costs_the_comparison_alone(
    earlier: str, why: str, what_it_takes: str, capsys: Output
) -> None:
    """It says why and what it would take; the new trace has its result, its record and its exit code."""
    decode_loop().write(Path("new.json"))
    host_only().write(Path("none.json"))
    cut(slower_decode().write(Path("lost.json.gz")))
    assert layer1("lost.json.gz", "--no-record") == layer1("none.json", "--no-record") == 4
    capsys.readouterr()
    found = document(capsys, "new.json", "--compare", earlier)
    assert found["verdict"]["word"] == "host-bound" and found["verdict"]["exit_code"] == 0
    assert "comparison" not in found and found["not_compared"]["earlier"] == earlier
    [reason] = found["not_compared"]["why"]
    assert reason.startswith(why) and what_it_takes in reason
    assert layer1("new.json", "--compare", earlier) == 0
    shown = capsys.readouterr()
    assert f"compared   not with {earlier}:" in shown.out and "recorded as run 1" in shown.err
    assert app.main(["report", "--no-figures"]) == 0
    assert f"Not compared with {earlier}" in Path("perfkit-investigation/report.md").read_text()


def test_a_new_trace_that_is_void_is_compared_with_nothing(capsys: Output) -> None:
    decode_loop().write(Path("before.json"))
    cut(slower_decode().write(Path("new.json.gz")))
    assert layer1("new.json.gz", "--compare", "before.json", "--json", "--no-record") == 4
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"]["word"] == "void"
    assert [reason[:18] for reason in found["not_compared"]["why"]] == ["new.json.gz: PK106"]


def test_directional_guards_of_both_sides_are_told_with_their_side(capsys: Output) -> None:
    steady(operations=10).write(Path("few.json"))
    steady().write(Path("good.json"))
    for after, before in (("good.json", "few.json"), ("few.json", "good.json")):
        layer1(after, "--compare", before, "--json", "--no-record")
        found = json.loads(capsys.readouterr().out)["comparison"]
        assert [text[:27] for text in found["weakened"]] == ["few.json: PK105 few-samples"]
        layer1(after, "--compare", before, "--no-record")
        assert "only hints  few.json: PK105" in capsys.readouterr().out


def test_a_measured_tpot_is_set_against_the_gpu_that_the_trace_names(traces: Write, capsys: Output) -> None:
    traces("a.json")
    asked = ("a.json", "--measured-tpot", "12", "--params", "1.7e9")
    found = document(capsys, *asked)
    assert found["verdict"]["word"] == "host-bound"
    assert "H100" in json.dumps(found["roofline"])
    assert layer1(*asked, "--no-record") == 0
    assert "decode step" in capsys.readouterr().out


@pytest.mark.parametrize("busy_only", [(), ("--busy-only",)])
def test_another_card_than_the_traces_is_told_and_decides_no_ratio(
    busy_only: tuple[str, ...], traces: Write, capsys: Output
) -> None:
    traces("a.json")
    own = document(capsys, "a.json", *busy_only)
    other = document(capsys, "a.json", "--gpu", "A100-80GB-SXM", "--params", "1.7e9", *busy_only)
    [told] = [guard for guard in other["guards"] if guard["name"] == "another-card-named"]
    assert told["effect"] == "note"
    assert told["message"] == "--gpu A100-80GB-SXM, and the trace names NVIDIA H100 80GB HBM3"
    assert other["verdict"] == own["verdict"]
    assert other["roofline"]["verdict"]["directional"] is True
    same = document(capsys, "a.json", "--gpu", "H100-SXM", "--params", "1.7e9", *busy_only)
    assert "another-card-named" in [guard["name"] for guard in same["guards_clear"]]
    assert same["roofline"]["verdict"]["directional"] is False


def test_ratios_alone_are_shown_without_anatomy(traces: Write, capsys: Output) -> None:
    traces("a.json")
    assert layer1("a.json", "--busy-only", "--no-record") == 3
    shown = capsys.readouterr().out
    assert "device-op time  30.00 %" in shown and "where the idle time is" not in shown


def test_thresholds_move_the_word(capsys: Output) -> None:
    steady(DEVICE_BOUND_NS).write(Path("a.json"))
    assert layer1("a.json", "--no-record") == 0
    assert layer1("a.json", "--no-record", "--device-bound", "0.96") == 3
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines() if "device busy" in line] == [
        "DEVICE-BOUND",
        "UNDECIDED",
    ]
