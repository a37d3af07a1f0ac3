"""`perfkit regress`: two files of outputs in, one verdict out, with the exit code that a CI goes by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layers.evidence.store import Investigation
from tests.command_runs import document, run
from tests.output_builders import lines, rows, wav


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Two runs of A, and three of what may be B."""
    return {
        "a": lines(tmp_path / "a.jsonl", rows()),
        "aa": lines(tmp_path / "aa.jsonl", rows()),
        "same": lines(tmp_path / "same.jsonl", rows()),
        "other": lines(tmp_path / "other.jsonl", rows(40, {3: "answer number 3 of another model"})),
        "short": lines(tmp_path / "short.jsonl", rows(39)),
    }


@pytest.mark.parametrize(
    ("b", "repeat", "word", "code"),
    [
        ("same", True, "identical", 0),
        ("same", False, "equivalent", 0),
        ("other", True, "different", 1),
        ("other", False, "different", 3),
        ("short", True, "invalid", 4),
    ],
)
def test_each_word_has_its_exit_code(
    b: str, repeat: bool, word: str, code: int, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    again = ("--aa", files["aa"]) if repeat else ()
    made = document(capsys, "regress", "--a", files["a"], "--b", files[b], *again)
    verdict = made["verdict"]
    assert (verdict["word"], verdict["exit_code"], verdict["directional"]) == (word, code, code == 3)


def test_the_document_has_the_names_of_the_contract(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    made = document(capsys, "layer5", "--a", files["a"], "--aa", files["aa"], "--b", files["other"])
    assert made["command"] == "regress" and len(made["samples"]) == 40
    first: dict[str, Any] = made["first_divergence"]
    assert (first["item"], first["what"], first["at"]) == ("i3", "length", 19)
    assert first["b"] == "…wer number 3 of |another model"
    assert {"cells", "control", "accuracy", "lost", "findings", "guards", "measurements"} <= made.keys()


def test_the_terminal_names_the_verdict_first_and_fits_80_columns(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = ("--a", files["a"], "--aa", files["aa"], "--b", files["other"])
    code, out, err = run(capsys, "regress", *arms, "--no-record")
    assert out.startswith("DIFFERENT  1 of 40 samples differ") and (code, err) == (1, "")
    assert max(len(line) for line in out.splitlines() if str(tmp_path) not in line) <= 80
    for said in ("A/A differ", "bytes", "differ i3: length", "self-test", "strength strong", "0 of 40"):
        assert said in " ".join(out.split())


def test_what_it_found_is_recorded_with_the_files_of_all_arms(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "investigation"
    arms = ("--a", files["a"], "--aa", files["aa"], "--b", files["same"])
    _, _, err = run(capsys, "regress", *arms, "--investigation", str(folder))
    assert "recorded as run 1" in err
    with Investigation.open(folder, create=False) as opened:
        (recorded,) = opened.runs()
    assert recorded.document["samples"] and recorded.document["verdict"]["word"] == "identical"


def test_folders_of_sounds_are_compared_by_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "aa", "b"):
        (tmp_path / name).mkdir()
        for number in range(24):
            samples = bytes(range(number, number + 100)) * 2
            (tmp_path / name / f"{number}.wav").write_bytes(wav(samples))
    made = document(capsys, "regress", *(w for n in ("a", "aa", "b") for w in (f"--{n}", str(tmp_path / n))))
    assert made["verdict"]["word"] == "identical" and made["compared"] == 24


def test_a_shift_of_a_sound_is_told_as_one_and_another_sound_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noise = np.random.default_rng(1).integers(-9000, 9000, (3, 2400)).astype("<i2")
    shifted = np.concatenate([np.zeros(7, "<i2"), noise[0]])[:2400]
    for name, sounds in (("a", noise), ("aa", noise), ("b", [shifted, noise[2], noise[1]])):
        (tmp_path / name).mkdir()
        for number, one in enumerate(sounds):
            (tmp_path / name / f"{number}.wav").write_bytes(wav(one.tobytes()))
    arms = (word for name in ("a", "aa", "b") for word in (f"--{name}", str(tmp_path / name)))
    code, out, _ = run(capsys, "regress", *arms, "--no-record")
    said = " ".join(out.split())
    assert code == 1 and "B is later by 7 frames (then" in said and said.count("B is ") == 1


def test_a_file_that_was_cut_is_no_pass(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Also where both were cut at the same place: what is left agrees, and that says nothing."""
    for name in ("a", "aa", "same"):
        path = Path(files[name])
        path.write_bytes(path.read_bytes()[:-20])
    made = document(capsys, "regress", "--a", files["a"], "--aa", files["aa"], "--b", files["same"])
    assert made["verdict"]["word"] == "invalid" and "PK555" in {g["code"] for g in made["guards"]}
    assert len(made["lost"]) == 3 and made["different"] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "say what to compare"),
        (("--a", "FILE"), "name the outputs of both sides"),
        (("--a", "nowhere.jsonl", "--b", "FILE"), "nowhere.jsonl"),
        (("--a", "EMPTY", "--b", "FILE"), "no outputs in it"),
        (("--a", "FILE", "--b", "FILE", "--margin", "0"), "--margin 0"),
        (("--a", "FILE", "--b", "FILE", "--max-lsb", "-1"), "--max-lsb -1"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: tuple[str, ...],
    says: str,
    files: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    named = {"FILE": files["a"], "EMPTY": str(tmp_path / "empty")}
    code, out, err = run(capsys, "regress", *(named.get(a, a) for a in arguments), "--no-record")
    assert (code, out, len(err.splitlines())) == (2, "", 1) and says in err


def test_hostile_texts_are_shown_and_not_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = lines(tmp_path / "a.jsonl", rows(30, {1: "\x1b[31mred [bold]x"}))
    b = lines(tmp_path / "b.jsonl", rows(30, {1: "\x1b[32mgreen <script>"}))
    aa = lines(tmp_path / "aa.jsonl", rows(30, {1: "\x1b[31mred [bold]x"}))
    _, out, _ = run(capsys, "regress", "--a", a, "--aa", aa, "--b", b, "--no-record")
    assert "\x1b" not in out and "<script>" in out


@pytest.mark.real_data
def test_published_transcripts_are_as_right_as_themselves(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """2 errors in 221 words; the file counts 3, since it takes a typographic apostrophe for one."""
    published = (data_dir / "sglang_omni" / "omni_wer_results_en_20.json").read_bytes()
    arms = [tmp_path / f"{name}.json" for name in ("a", "aa", "b")]
    for path in arms:
        path.write_bytes(published)
    made = document(capsys, "regress", *(word for path in arms for word in (f"--{path.stem}", str(path))))
    assert made["verdict"]["word"] == "identical"
    assert made["accuracy"]["error_rates"]["a"] == pytest.approx(2 / 221)


def test_an_item_that_a_does_not_answer_takes_no_other_from_the_comparison_by_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else one failure in a thousand would let a difference pass as too small to matter."""
    failed = [{"id": "i0", "error": "too long"}, *rows(1000)[1:]]
    a, aa = (lines(tmp_path / f"{name}.jsonl", failed) for name in ("a", "aa"))
    b = lines(tmp_path / "b.jsonl", [*failed[:500], {**rows(1000)[500], "text": "another"}, *failed[501:]])
    made = document(capsys, "regress", "--a", a, "--b", b, "--aa", aa)
    assert made["verdict"]["word"] == "different" and made["first_divergence"]["item"] == "i500"
    more = lines(tmp_path / "more.jsonl", rows(1000))
    made = document(capsys, "regress", "--a", a, "--b", more, "--aa", aa)
    assert (made["verdict"]["word"], made["verdict"]["exit_code"]) == ("different", 1)
    assert made["first_divergence"]["what"] == "ended"


def test_a_hard_link_is_the_same_file(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link.jsonl").hardlink_to(files["a"])
    made = document(capsys, "regress", "--a", files["a"], "--b", str(tmp_path / "link.jsonl"))
    assert "PK574" in {guard["code"] for guard in made["guards"]} and made["verdict"]["word"] == "invalid"


@pytest.mark.parametrize(
    "given", [["--max-lsb", "inf"], ["--max-lsb", "nan"], ["--set", "a=b"], ["--resume"]]
)
def test_recorded_outputs_take_no_option_that_would_be_ignored(
    given: list[str], files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "regress", "--a", files["a"], "--b", files["same"], *given)
    assert code == 2 and given[0] in err


def test_an_array_of_records_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their bytes do not say of what type their fields are, nor whether one of them is NaN."""
    np.save(tmp_path / "x.npy", np.zeros(3, [("r", "f4")]))
    code, _, err = run(capsys, "regress", "--a", str(tmp_path / "x.npy"), "--b", str(tmp_path / "x.npy"))
    assert code == 2 and "an array of records" in err
