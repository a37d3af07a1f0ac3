"""What `perfkit layer2` writes beside its result: where, of which captures, and what it never overwrites."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from layers.evidence.store import Investigation
from layers.layer2_stacks.collect import collect_captures
from layers.layer2_stacks.weigh import weigh
from parsers.pyspy_speedscope import read_speedscope
from parsers.stack_model import ThreadName
from reports.stack_pictures import flame_pictures
from tests.command_runs import run
from tests.flame_reading import drawn, words
from tests.stack_builders import LOOP, said, stack, write_raw

OTHER = ThreadName("8", "watchdog")
WAITS = f"{LOOP};Queue.get queue.py 171"
BURNS = f"{LOOP};burn engine.py 14"


def capture(folder: Path, name: str, waits: int, burns: int = 99, samples: int = 998) -> str:
    """The thread of the loop beside another one, which looks as often."""
    mine = [stack(text, n) for text, n in ((WAITS, waits), (BURNS, burns)) if n]
    path = write_raw(folder / name, [*mine, stack("watch engine.py 3", 499, OTHER)])
    Path(path).with_suffix(".log").write_text(said(samples, name=name), encoding="utf-8")
    return path


def idle_three(folder: Path, start: str = "idle", waits: int = 400) -> list[str]:
    return [capture(folder, f"{start}_{n}.raw", waits, 499 - waits) for n in range(3)]


def test_a_flame_graph_is_of_the_thread_of_the_verdict_or_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.svg"
    code, _, err = run(capsys, "layer2", *idle_three(tmp_path), "--flame", str(out), "--no-record")
    assert (code, err) == (3, f"wrote {out}\n")
    assert "n = 1,497 ticks of 3 captures" in words(out.read_text())
    assert drawn(out.read_text())[0].label == "MainThread in event_loop_normal"
    run(capsys, "layer2", *idle_three(tmp_path), "--flame", str(out), "--no-record", "--all-threads")
    assert [b.label for b in drawn(out.read_text()) if b.row < 2] == [
        "all threads",
        "MainThread in event_loop_normal",
        "watchdog in watch",
    ]


def test_modes_are_never_mixed_each_has_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    active = [capture(tmp_path, f"active_{n}.raw", 0, 95, samples=594) for n in range(3)]
    asked = [
        "--flame",
        f"{tmp_path}/a.svg",
        "--speedscope",
        f"{tmp_path}/b.json",
        "--folded",
        f"{tmp_path}/c",
    ]
    run(capsys, "layer2", *idle_three(tmp_path), *active, "--mode", "active=active_*", *asked, "--no-record")
    assert drawn((tmp_path / "a.svg").read_text())[0].counts == [1_497]
    assert drawn((tmp_path / "a-active.svg").read_text())[0].counts == [285]
    assert read_speedscope(f"{tmp_path}/b.json").samples == 2_994
    assert read_speedscope(f"{tmp_path}/b-active.json").samples == 1_782
    assert (tmp_path / "c-active").read_text().count("\n") == 2


def test_void_captures_are_in_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = Path(capture(tmp_path, "late.raw", 400))
    behind = "py-spy> 1.32s behind in sampling, results may be inaccurate. Try reducing the sampling rate\n"
    late.with_suffix(".log").write_text(behind + late.with_suffix(".log").read_text())
    svg, text = tmp_path / "a.svg", tmp_path / "a.txt"
    asked = ["--flame", str(svg), "--folded", str(text), "--no-record"]
    assert run(capsys, "layer2", *idle_three(tmp_path), str(late), *asked)[0] == 3
    assert drawn(svg.read_text())[0].counts == [1_497]
    svg.unlink()
    code, _, err = run(capsys, "layer2", str(late), *asked)
    assert (code, err) == (4, "no picture and no export: every capture is void\n")
    assert not svg.exists()


def test_the_difference_is_drawn_to_what_was_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.svg"
    before = [part for path in idle_three(tmp_path, "old", waits=300) for part in ("--compare", path)]
    run(capsys, "layer2", *idle_three(tmp_path), *before, "--difference", str(out), "--no-record")
    looks = {box.tooltip[0]: box.look for box in drawn(out.read_text())}
    assert looks["Queue.get (queue.py:171)"] == "more3"
    assert looks["burn (engine.py:14)"] == "less3"
    assert "Before: n = 1,497 ticks, 3 captures." in words(out.read_text())


def test_sides_that_do_not_compare_are_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.svg"
    other = write_raw(tmp_path / "other.raw", [stack("help b.py 1", 499, OTHER)])
    asked = ["--compare", other, "--difference", str(out), "--no-record", "--mode", "idle"]
    code, shown, err = run(capsys, "layer2", *idle_three(tmp_path), *asked)
    assert (code, out.exists()) == (2, False)
    assert "the two sides do not compare" in err and "PK24" in shown


def test_the_tree_is_printed_in_80_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "layer2", *idle_three(tmp_path), "--icicle", "--no-record")
    tree = out.partition("All ticks: where is it blocked?")[2].splitlines()
    assert tree[2] == "100.0 %  1,497  ██████████ MainThread in event_loop_normal"
    assert max(map(len, tree)) <= 80


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--difference", "a.svg"], "--compare FILE"),
        (["--icicle", "--json"], "--icicle prints text"),
        (["--flame", "a.png"], "--flame a.png: writes a file that ends in .svg"),
        (["--speedscope", "a.raw"], "--speedscope a.raw: writes a file that ends in .json"),
        (["--folded", "idle_1.raw"], "--folded idle_1.raw: is a capture to read"),
        (["--folded", "old.raw"], "--folded old.raw: is a capture to read"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    options: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    captures = [*idle_three(tmp_path), capture(tmp_path, "old-active.raw", 400)]
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = run(capsys, "layer2", *captures, *options, "--no-record")
    assert code == 2 and said in err + out
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "no" / "out.svg"
    _, shown, err = run(capsys, "layer2", *idle_three(tmp_path), "--flame", str(out), "--no-record")
    assert shown.startswith("BLOCKED")
    assert err.startswith(f"perfkit: {out}: No such file or directory") and err.count("\n") == 1


def test_what_is_recorded_has_its_pictures_in_the_investigation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "investigation"
    for _ in range(2):
        run(capsys, "layer2", *idle_three(tmp_path), "--investigation", str(folder))
    with Investigation.open(folder, create=False) as opened:
        first, second = (run.document["pictures"][0] for run in opened.runs())
    assert (first["kind"], first["mode"], first["n"]) == ("flame", "idle", 1_497)
    assert first["file"] == "artifacts/layer2-flame-idle.svg"
    assert second["file"] == "artifacts/layer2-flame-idle-2.svg"
    assert hashlib.sha256((folder / first["file"]).read_bytes()).hexdigest() == first["sha256"]


def test_the_pictures_of_a_void_verdict_say_so(tmp_path: Path) -> None:
    captures = collect_captures(idle_three(tmp_path)).captures
    pictures = flame_pictures(weigh(captures), all_threads=False, void=True)
    assert [words(picture.svg).startswith("VOID, concludes nothing:") for picture in pictures] == [True]


def test_json_has_one_document_whatever_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = run(
        capsys, "layer2", *idle_three(tmp_path), "--json", "--flame", f"{tmp_path}/a.svg", "--no-record"
    )
    assert json.loads(made[1])["command"] == "layer2"
