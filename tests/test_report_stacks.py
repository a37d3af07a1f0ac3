"""Layer 2 in the report: verdict, lines of the thread with intervals, other threads, captures, changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from parsers.stack_model import Stack, ThreadName
from perfkit.cli.app import main
from reports.figure_data import LeafPanels
from reports.html_page import html_page
from reports.layers_walked import LAYER_2, NONE_COUNTS
from reports.lint import faults
from reports.markdown_report import render
from reports.model import Layer, Paragraph, Report, Table, unfolded
from tests.report_builders import HOSTILE_NAMES, report_of
from tests.stack_builders import LOOP, said, stack, write_raw

QUEUE = f"{LOOP};Queue.get queue.py 171;Condition.wait threading.py 327"
IDLE = (
    stack(QUEUE, 400),
    stack(f"{LOOP};burn engine.py 14", 99),
    stack("watch engine.py 3", 499, ThreadName("8", "watchdog")),
)
ACTIVE = (stack(f"{LOOP};burn engine.py 14", 95),)


def written(folder: Path, name: str, *stacks: Stack, lag: bool = False) -> str:
    path = write_raw(folder / name, stacks)
    lines = ["py-spy> 1.50s behind in sampling, results may be inaccurate."] if lag else []
    log = said(sum(of.count for of in stacks), *lines, name=name)
    Path(path).with_suffix(".log").write_text(log, encoding="utf-8")
    return path


def reported(tmp_path: Path, *arguments: str) -> Report:
    folder = tmp_path / "investigation"
    main(["layer2", *arguments, "--investigation", str(folder)])
    return report_of(folder, commands=("layer1", "layer2"))


def section(report: Report) -> Layer:
    (layer,) = [layer for layer in report.layers if layer.title == LAYER_2.title]
    return layer


def table(report: Report, title: str) -> Table:
    blocks = unfolded(section(report).blocks)
    return next(b for b in blocks if isinstance(b, Table) and b.title.startswith(title))


def rows(report: Report, title: str) -> list[list[str]]:
    return [[str(getattr(cell, "text", cell)) for cell in row] for row in table(report, title).rows]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    idle = [written(tmp_path, f"idle_{n}.raw", *IDLE, lag=n == 3) for n in range(4)]
    active = [written(tmp_path, f"active_{n}.raw", *ACTIVE) for n in range(3)]
    return reported(tmp_path, *idle, *active, "--mode", "active=active_*")


def test_stacks_make_a_sound_report_with_their_verdict_first(report: Report) -> None:
    assert faults(report) == []
    (verdict,) = report.verdicts
    assert verdict.verdict.word == "blocked"
    assert verdict.basis is not None and (verdict.basis.n, verdict.basis.n_unit) == (3 * 499, "ticks")
    assert section(report).why_not_run == "" and section(report).strength.startswith("weak: directional")
    page = render(report, lambda figure: figure.name)
    assert "waits for 80.2 %" in page and "never pooled" in page


def test_lines_have_their_share_interval_and_that_of_all_samples(report: Report) -> None:
    first, second = rows(report, "Where it is at all looks")
    assert first[:2] == ["threading.py:327", "wait"] and first[2] == "80.2 %" and first[3].startswith("[78.")
    assert first[4:] == [
        "1,497",
        "40.1 %",
        "none seen",
        "queue",
        "Scheduler.event_loop_normal (engine.py:53)",
    ]
    assert second[0] == "engine.py:14" and second[6] == "19.0 %"
    assert rows(report, "Where it is on a CPU")[0][2] == "100.0 %"


def test_the_lock_alone_is_no_cpu(tmp_path: Path) -> None:
    idle = [written(tmp_path, f"idle_{n}.raw", *IDLE) for n in range(3)]
    lock = [written(tmp_path, f"gil_{n}.raw", *ACTIVE) for n in range(3)]
    report = reported(tmp_path, *idle, *lock, "--mode", "gil=gil_*")
    columns = [column.title for column in table(report, "Where it is at all looks").columns]
    assert "with the lock" in columns and "on a CPU" not in columns
    assert rows(report, "Where it is at all looks")[1][6] == "19.0 %"


def test_single_ticks_of_a_mode_beside_the_verdicts_are_no_table_and_no_panel(tmp_path: Path) -> None:
    idle = [written(tmp_path, f"idle_{n}.raw", *IDLE) for n in range(3)]
    lock = written(tmp_path, "gil.raw", stack(f"{LOOP};burn engine.py 14", 4))
    report = reported(tmp_path, *idle, lock, "--mode", "gil=gil*")
    page = render(report, lambda figure: figure.name)
    assert "4 ticks, too few for shares of its lines: one below 53 % would not have been seen" in page
    (data,) = [figure.data for figure in report.figures if isinstance(figure.data, LeafPanels)]
    assert len(data.panels) == 1 and faults(report) == []
    assert "| samples |" in page and "samples (samples)" not in page


def test_paths_are_from_the_package_on_and_captures_by_their_file(tmp_path: Path) -> None:
    own, site = (
        "/home/me/src/engine/stages/staging.py",
        "/opt/lib/python3.11/site-packages/torch/cuda/streams.py",
    )
    looks = written(tmp_path, "one.raw", stack(f"run {own} 9;synchronize {site} 227", 499))
    report = reported(tmp_path, looks, "--mode", "idle")
    (line,) = rows(report, "Where it is at all looks")
    assert (line[0], line[-1]) == ("torch/cuda/streams.py:227", "run (…/engine/stages/staging.py:9)")
    assert rows(report, "Captures")[0][0] == "one.raw"


def test_other_threads_and_left_out_captures_are_listed(report: Report) -> None:
    assert [r[:3] for r in rows(report, "Other threads")] == [["watchdog in watch", "1,497", "0.0 %"]]
    captures = rows(report, "Captures")
    assert len(captures) == 7
    (late,) = [r for r in captures if r[0].endswith("idle_3.raw")]
    assert late[6:] == ["1.50 s", "left out: PK202 profiler-fell-behind"]


def test_the_figure_has_a_panel_a_mode(report: Report) -> None:
    (data,) = [figure.data for figure in report.figures if isinstance(figure.data, LeafPanels)]
    assert len(data.panels) == 2


def test_a_comparison_is_a_table_with_its_intervals(tmp_path: Path) -> None:
    before = [written(tmp_path, f"b{n}.raw", *IDLE) for n in range(3)]
    after = [written(tmp_path, f"a{n}.raw", stack(QUEUE, 200), stack(LOOP, 299)) for n in range(3)]
    options = [option for path in before for option in ("--compare", path)]
    report = reported(tmp_path, *after, *options, "--mode", "idle")
    assert faults(report) == []
    changed = {r[0]: r for r in rows(report, "Compared with")}
    assert changed["threading.py:327"][4] == "-40.1" and changed["threading.py:327"][6] == "yes"


def test_sides_that_cannot_be_compared_are_told(tmp_path: Path) -> None:
    before = written(tmp_path, "b.raw", stack(f"{QUEUE};sem_wait libc.so", 499))
    report = reported(tmp_path, written(tmp_path, "a.raw", *IDLE), "--compare", before, "--mode", "idle")
    told = [b for b in unfolded(section(report).blocks) if isinstance(b, Paragraph)]
    assert any("cannot be compared" in b.plain for b in told) and faults(report) == []


def test_void_captures_have_no_figure_and_say_why(tmp_path: Path) -> None:
    report = reported(tmp_path, written(tmp_path, "empty.raw"), "--mode", "active")
    assert report.figures == () and faults(report) == []
    assert "0 samples" in render(report, lambda figure: figure.name)
    assert report.verdicts[0].basis is None
    assert section(report).why_not_run in ("", NONE_COUNTS)


def test_hostile_names_are_text(tmp_path: Path) -> None:
    names = [name.replace(";", "").replace(" ", "") for name in HOSTILE_NAMES if len(name) < 100]
    stacks = [
        stack(f"{name.splitlines()[0]} a.py {n}", 50) for n, name in enumerate(names, 1) if name.strip()
    ]
    report = reported(tmp_path, written(tmp_path, "h.raw", *stacks), "--mode", "idle")
    page = html_page(render(report, lambda figure: figure.name), lambda path: "")
    assert faults(report) == [] and "\x1b" not in page
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
