"""`perfkit stages`: events in, one verdict out, in the terminal, as JSON and in the investigation."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.evidence.store import Investigation
from perfkit.cli.stages_view import BAR_WIDTH, bar
from tests.command_runs import document, run
from tests.stage_builders import asr_run, plain_csv, written


def test_the_document_has_the_names_of_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = document(capsys, "stages", written(tmp_path / "e.jsonl", asr_run(80, queue=100.0)))
    assert made["command"] == "stages" and made["verdict"]["word"] == "scheduling-bound"
    assert (made["shed"], made["residual_share"]) == (0, pytest.approx(0))
    (queue,) = [s for s in made["stages"] if (s["interval"], s["part"]) == ("queue", "admission")]
    assert (queue["stage"], queue["n"], queue["share"]) == ("asr", 80, pytest.approx(100 / 190))
    assert (queue["mean_ms"], queue["p50_ms"], queue["p95_ms"]) == (100, 100, 100)
    assert {s["interval"] for s in made["stages"]} == {"queue", "build", "hop", "first_forward", "decode"}
    assert {"findings", "guards", "guards_clear", "measurements", "runs", "lost"} <= made.keys()


def test_a_quantile_that_n_does_not_allow_is_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = document(capsys, "stages", written(tmp_path / "e.jsonl", asr_run(71)))
    assert all("p50_ms" in s and "p95_ms" not in s for s in made["stages"])


def test_the_terminal_names_the_verdict_first_and_fits_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "e.jsonl", [*asr_run(30, run="a"), *asr_run(60, 5, run="b", queue=100.0)])
    code, out, err = run(capsys, "stages", path, "--no-record")
    assert out.startswith("SCHEDULING-BOUND  queue share 52.6 %") and (code, err) == (0, "")
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 80
    for said in ("unaccounted", "end to end", "PK403", "grows most: 10 to 100 ms", "in flight", "strength"):
        assert said in " ".join(out.split())


def test_bars_show_the_shares_in_their_order() -> None:
    shown = bar({"queue_share": 0.5, "hop_share": 0.1, "residual_share": 0.2})
    assert shown == "." * 15 + ">" * 3 + "#" * 6 + "?" * 6 and len(shown) == BAR_WIDTH
    assert bar({"queue_share": 0, "hop_share": 0, "residual_share": 0}) == "#" * BAR_WIDTH
    assert bar({"queue_share": 0.9, "hop_share": 0.1, "residual_share": 0}) == "." * 27 + ">" * 3


def test_what_it_found_is_recorded_with_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "investigation"
    log = written(tmp_path / "e.jsonl", asr_run())
    _, _, err = run(capsys, "stages", log, "--investigation", str(folder))
    assert "recorded as run 1" in err
    with Investigation.open(folder, create=False) as opened:
        (recorded,) = opened.runs()
    assert recorded.document["command"] == "stages" and recorded.document["stages"]


def test_a_folder_is_read_whole_and_what_is_no_log_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "e.jsonl", asr_run())
    (tmp_path / "notes.txt").write_text("nothing of note\n", encoding="utf-8")
    made = document(capsys, "stages", str(tmp_path))
    assert len(made["lost"]) == 1 and "notes.txt" in made["lost"][0]
    assert [g["code"] for g in made["guards"]] == ["PK409"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "name files of stage events"),
        (("nowhere.jsonl",), "nowhere.jsonl"),
        (("*.nothing",), "no file matches"),
        (("FILE", "--intended", "asr"), "say STAGE=MS"),
        (("FILE", "--intended", "asr=-1"), "say STAGE=MS"),
        (("FILE", "--intended", "tts=5"), "no such stage"),
        (("FILE", "--run", "other"), "no such run; there is r"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "e.jsonl", asr_run())
    code, out, err = run(capsys, "stages", *(path if a == "FILE" else a for a in arguments), "--no-record")
    assert (code, out, len(err.splitlines())) == (2, "", 1) and says in err


def test_hostile_names_are_shown_and_not_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("\x1b[31mred", "<script>", "a → b", "[bold]x")
    rows = [
        f'{n},"{name}",{e},{n * 10 + at}'
        for n in range(25)
        for name in names
        for e, at in (("start", 0), ("end", 9))
    ]
    _, out, _ = run(capsys, "stages", plain_csv(tmp_path / "l.csv", rows), "--no-record")
    assert "\x1b" not in out and "[bold]x" in out and "<script>" in out


@pytest.mark.real_data
def test_the_published_ledger_of_the_asr_knee(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Residuals and shares as found by hand; 29 requests wait at 64 at a time (Little)."""
    made = document(capsys, "stages", str(data_dir / "sglang_omni" / "asr_knee_tables.json"))
    assert made["verdict"]["word"] == "scheduling-bound"
    runs = {one["concurrency"]: one for one in made["runs"]}
    residuals = {c: round(one["residual_share"] * one["e2e_ms"]["mean"], 1) for c, one in runs.items()}
    assert residuals == {1: 0.3, 8: 10.2, 16: 15.3, 32: 32.6, 64: 34.9}
    assert {c: round(100 * one["queue_share"], 1) for c, one in runs.items() if c >= 32} == {
        32: 1.2,
        64: 45.4,
    }
    shares = {s["interval"]: round(100 * s["share"], 1) for s in made["stages"]}
    assert (shares["queue"], shares["decode"]) == (45.4, 43.1)
    (queue,) = [s for s in made["stages"] if s["interval"] == "queue"]
    assert round(queue["held"], 1) == 29.0 and "p50_ms" not in queue and "n" not in queue
