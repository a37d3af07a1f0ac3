"""`perfkit ab`: recorded results of two arms in, a verdict, its yardsticks and its gates out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layers.collectors.load.plan import Extent, Load
from layers.evidence.store import Investigation
from layers.layer4_ab.collect import read_arm
from layers.layer4_ab.model import Arm, StartsAre
from parsers.errors import UnreadableInput, UsageError
from perfkit.cli.spread import spread_out
from tests.ab_builders import judged
from tests.command_runs import document, run
from tests.load_builders import whole
from tests.load_servers import Asked, Script
from tests.sweep_runs import REQUESTS, loaded, sweep_plan, swept
from tests.writers.load_results import table, tables, vllm, written

A_DATES = ("20260430-100000", "20260430-100300", "20260430-100400", "20260430-100700")
B_DATES = ("20260430-100100", "20260430-100200", "20260430-100500", "20260430-100600")
"""A B B A A B B A, a minute each."""
RATES = (8.0, 8.05, 7.98, 8.03)
NOISE = {"b": (1.0, 0.997, 1.002, 1.001), "again": (1.001, 0.998, 1.0, 1.002)}


def arm(
    folder: Path, name: str, by: float = 1.0, dates: tuple[str, ...] = A_DATES, **other: object
) -> list[str]:
    """Four result files; throughput and duration agree."""
    noise = NOISE.get(name, (1.0,) * 4)
    files = []
    for n, (rate, date, factor) in enumerate(zip(RATES, dates, noise, strict=True)):
        served = rate * by * factor
        tail = {"p90_e2el_ms": 1000 / served, "num_prompts": 80}
        told = {
            **tail,
            "request_throughput": served,
            "output_throughput": 10 * served,
            "duration": 80 / served,
        }
        made = vllm(8, date=date, **told, **other)
        files.append(written(folder / f"{name}{n}.json", made))
    return files


def both(folder: Path, by: float) -> list[str]:
    return ["--a", *arm(folder, "a"), "--b", *arm(folder, "b", by, B_DATES)]


def test_the_document_has_the_names_of_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = document(capsys, "ab", *both(tmp_path, 1.1))
    assert made["command"] == "ab" and made["verdict"]["word"] == "improvement"
    primary = made["primary"]
    assert primary.keys() >= {"metric", "ratio", "low", "high", "n_pairs", "n_starts", "floor_pct", "mde_pct"}
    assert (primary["metric"], primary["n_pairs"], primary["n_starts"]) == ("throughput_rps", 4, 8)
    assert primary["low"] < primary["ratio"] < primary["high"]
    assert made["treatment"] == {"ran": None, "evidence": []}
    assert made["gates"].keys() == {"startup", "accuracy", "performance"}
    assert made["gates"]["performance"]["state"] == "passed" and made["safe"] is False
    assert made["unblocked"] == []
    assert [pair["a_first"] for pair in made["pairs"]] == [True, False, True, False]


def test_the_alias_is_the_same_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, "layer4", *both(tmp_path, 0.9))["verdict"]["word"] == "regression"


@pytest.mark.parametrize(
    ("by", "more", "word", "code"),
    [
        (1.1, (), "IMPROVEMENT", 0),
        (0.9, (), "REGRESSION", 1),
        (1.0, ("--margin", "3"), "EQUIVALENT", 0),
        (1.0, (), "INCONCLUSIVE", 3),
    ],
)
def test_the_terminal_names_the_verdict_first_and_fits_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], by: float, more: tuple[str, ...], word: str, code: int
) -> None:
    exit_code, out, err = run(capsys, "ab", *both(tmp_path, by), *more, "--no-record")
    assert (out.split()[0], exit_code, err) == (word, code, "")
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 80
    for said in ("B/A", "A/A floor", "detectable", "gate", "safe", "PK524"):
        assert said in out


def test_two_variables_are_invalid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--a", *arm(tmp_path, "a"), "--b", *arm(tmp_path, "b", 1.1, B_DATES, model_id="n", backend="x")]
    code, out, _ = run(capsys, "ab", *files, "--no-record")
    assert code == 4 and out.startswith("INVALID") and "PK520" in out
    declared = ["--variable", "model", "--derived", "backend", "--no-record"]
    assert run(capsys, "ab", *files, *declared)[0] == 0


def test_a_file_that_holds_both_arms_is_parted_by_what_its_runs_were_made_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "revision": revision,
            "concurrency": 8,
            "round": n,
            "throughput_qps": rate,
            "latency_mean_s": 8 / rate,
        }
        for n in (1, 2, 3, 4)
        for revision, rate in (("base", 8.0 + n / 100), ("new", 9.0 + n / 90))
    ]
    path = tmp_path / "both.json"
    path.write_text(json.dumps({"samples_per_run": 100, "runs": rows}), encoding="utf-8")
    picked = ["--a-where", "revision=base", "--b-where", "revision=new", "--starts", "run"]
    made = document(capsys, "ab", "--a", str(path), "--b", str(path), *picked)
    assert made["verdict"]["word"] == "improvement" and made["primary"]["n_pairs"] == 4
    assert made["findings"][0]["statement"].startswith("revision base → new")
    code, _, err = run(capsys, "ab", "--a", str(path), "--b", str(path), "--a-where", "revision=none")
    assert code == 2 and "revision=base" in err


def test_what_starts_are_is_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = both(tmp_path, 1.1)
    made = document(capsys, "ab", *files, "--starts", "arm")
    assert (made["primary"]["n_pairs"], made["verdict"]["word"]) == (1, "inconclusive")
    assert "PK511" in {g["code"] for g in made["guards"]}


def test_a_result_is_recorded_and_its_floor_stays_on_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "investigation"
    floor = ["--aa", *arm(tmp_path, "again")]
    code, out, err = run(capsys, "ab", *both(tmp_path, 1.1), *floor, "--investigation", str(place))
    assert code == 0 and "recorded as run 1" in err and "a-a-runs of 4" in out
    with Investigation.open(place, create=False) as opened:
        (recorded,) = opened.runs()
        assert recorded.document["floors"][0]["runs"] == 4
        (kept,) = opened.measurements()[-1:]
        assert (kept.measurement.name, kept.measurement.n) == ("a_a_spread", 4)
    assert run(capsys, "ab", *both(tmp_path, 1.1), "--investigation", str(place))[0] == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--at", "16"), "--at 16"),
        (("--metric", "speed"), "--metric speed"),
        (("--margin", "0"), "--margin 0"),
        (("--starts", "server"), "--starts server"),
        (("--drop-first", "maybe"), "--drop-first maybe"),
        (("--stage", "vocoder=2"), "--stage vocoder=2"),
        (("--order", "ABBA"), "--order ABBA"),
        (("--ran", "async"), "--log-a"),
    ],
)
def test_what_is_not_understood_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
) -> None:
    code, out, err = run(capsys, "ab", *both(tmp_path, 1.0), *more, "--no-record")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err


def test_both_arms_are_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "ab", "--a", *arm(tmp_path, "a"))
    assert code == 2 and "both arms" in err


def test_a_file_that_cannot_be_read_is_lost_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text('{"backend": "vl', encoding="utf-8")
    made = document(capsys, "ab", *both(tmp_path, 1.1), str(cut))
    assert len(made["lost"]) == 1 and "cut.json" in made["lost"][0]
    with pytest.raises(UnreadableInput):
        read_arm(Arm.A, [str(cut)], (), StartsAre.FILE)


def test_arms_without_a_load_in_common_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (
        written(tmp_path / f"{n}.json", tables(table("t", "c | req/s", f"{n} | 10"))) for n in (8, 16)
    )
    code, _, err = run(capsys, "ab", "--a", one, "--b", other, "--no-record")
    assert code == 2 and "share no such load" in err


def test_options_take_what_a_shell_expands_behind_them() -> None:
    greedy = ("--a", "--b")
    assert spread_out(["ab", "--a", "x", "y", "--b", "z", "--json"], greedy) == [
        *("ab", "--a", "x", "--a", "y", "--b", "z", "--json")
    ]
    assert spread_out(["ab", "--margin", "2", "x", "--", "--a", "x", "y"], greedy) == [
        *("ab", "--margin", "2", "x", "--", "--a", "x", "y")
    ]


def answering(_: Asked) -> Script:
    return [0.003, *whole()]


def test_folders_of_sweeps_are_arms(tmp_path: Path) -> None:
    folders = []
    with loaded(answering) as server:
        for name in ("one", "other"):
            plan = sweep_plan(server.port, loads=(Load(2),))
            swept(tmp_path / name, plan)
            folders.append(str(tmp_path / name))
    a, b = (
        read_arm(arm, [folder], (), StartsAre.FILE)
        for arm, folder in zip((Arm.A, Arm.B), folders, strict=True)
    )
    assert [len(one.rounds) for one in (a, b)] == [2, 2]
    assert {one.start for one in a.rounds} == {folders[0]}
    assert a.rounds[0].facts == b.rounds[0].facts and "extent.requests" in a.rounds[0].facts
    begun = [one.begun_ns for one in (*a.rounds, *b.rounds)]
    assert None not in begun and begun == sorted(begun, key=lambda at: at or 0)
    assert len(a.rounds[0].ecdf_ms["e2e"]) > 10 and a.rounds[0].ecdf_ms["e2e"][-1][0] == 1.0
    assert a.starts_told is False  # the server was there before
    with pytest.raises(UsageError, match="no run is arm=control"):
        read_arm(Arm.A, folders, ["arm=control"], StartsAre.FILE)


def test_another_warm_up_in_one_arm_is_another_experiment(tmp_path: Path) -> None:
    with loaded(answering) as server:
        for name, warmup in (("one", 2), ("other", 6)):
            extent = Extent(requests=REQUESTS, warmup_requests=warmup, drain_s=5.0)
            swept(tmp_path / name, sweep_plan(server.port, loads=(Load(2),), repeats=1, extent=extent))
    a, b = (
        read_arm(arm, [str(tmp_path / name)], (), StartsAre.FILE)
        for arm, name in ((Arm.A, "one"), (Arm.B, "other"))
    )
    found = judged(a, b, variable="mode")
    assert found.verdict.word == "invalid" and "extent.warmup_requests: 2 against 6" in found.verdict.because


def test_a_table_of_two_arms_is_parted_by_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = table("both", "conc | current req/s | baseline req/s", "1 | 10 | 15", "2 | 20 | 50")
    path = written(tmp_path / "t.json", tables(made))
    picked = ["--a-where", "arm=control", "--b-where", "arm="]
    told = document(capsys, "ab", "--a", path, "--b", path, *picked)
    assert [one["name"] for one in told["differences"]] == ["arm"]
    assert (told["verdict"]["word"], told["primary"]["ratio"]) == ("inconclusive", pytest.approx(0.4))
