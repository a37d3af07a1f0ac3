"""`perfkit roofline` as it is typed: text, JSON document, exit codes, and the page that shows it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from layers.evidence.verdict import Exit
from layers.layer1_gpu_busy.roofline.gpu_table import GPUS
from perfkit.cli.app import main
from tests.conftest import REPOSITORY

PAGE = (REPOSITORY / "docs" / "roofline.md").read_text(encoding="utf-8")

EXAMPLES = re.findall(r"^```console\n\$ perfkit (.*?[^\\])\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

BASE = "roofline --gpu H100-SXM --params 1.7e9 --dtype bf16 --context 4096 --batch 16"

Run = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process: exit code, stdout, stderr."""

    def call(line: str) -> tuple[int, str, str]:
        code = main(shlex.split(line))
        out, err = capsys.readouterr()
        return code, out, err

    return call


def document(run: Run, line: str) -> dict[str, Any]:
    _, out, _ = run(line + " --json")
    read: dict[str, Any] = json.loads(out)
    return read


def test_the_answer_stands_first(run: Run) -> None:
    code, out, err = run(BASE)
    assert (code, err) == (Exit.OK, "")
    assert out.startswith("BOUND      a decode step of 16 rows on H100-SXM cannot be faster than 1.01 ms")


def test_the_page_has_its_examples() -> None:
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_the_page_shows_what_the_command_prints(run: Run, command: str, shown: str) -> None:
    _, out, _ = run(command.replace("\\\n", " "))
    assert [line.rstrip() for line in out.splitlines()] == shown.splitlines()


def test_the_document_keeps_the_common_contract(run: Run) -> None:
    read = document(run, BASE + " --measured-tpot 1.5")
    assert {"schema_version", "command", "verdict", "guards", "measurements", "findings"} <= read.keys()
    assert read["measurements"] == []  # a computed bound is none, and the TPOT is the user's
    assert read["roofline"]["measured"] == {
        "tpot_ms": 1.5,
        "given_by": "user",
        "times_the_bound": pytest.approx(1.5 / (3.4e9 / 3.35e12 * 1e3)),
        "mbu_share": pytest.approx(3.4e9 / 3.35e12 / 1.5e-3),
        "mfu_share": pytest.approx(5.44e10 / 989.4e12 / 1.5e-3),
        "winnable_share": pytest.approx(1 - 3.4e9 / 3.35e12 / 1.5e-3),
        "near_up_to_times": pytest.approx(1 / 0.6),
        "far_above_times": 2.0,
    }


@pytest.mark.parametrize(
    ("options", "word", "code"),
    [
        ("", "bound", Exit.OK),
        ("--measured-tpot 1.1", "near-bound", Exit.OK),
        ("--measured-tpot 1.8", "undecided", Exit.NO_CONCLUSION),
        ("--measured-tpot 50", "far-from-bound", Exit.NO_CONCLUSION),
        ("--kv-bytes-per-token 114688 --measured-tpot 50", "far-from-bound", Exit.OK),
        ("--measured-tpot 0.1", "below-bound", Exit.INVALID),
        ("--gpu H100", "ambiguous-gpu", Exit.NO_CONCLUSION),
        ("--gpu abacus", "unknown-gpu", Exit.NO_CONCLUSION),
    ],
)
def test_each_word_has_its_exit_code(run: Run, options: str, word: str, code: Exit) -> None:
    assert document(run, f"{BASE} {options}")["verdict"]["word"] == word
    assert run(f"{BASE} {options}")[0] == code


@pytest.mark.parametrize("number", ["-1", "0", "nan", "inf", "-inf", "1e400", "1e300", "ten", ""])
@pytest.mark.parametrize(
    "option", ["--params", "--batch", "--context", "--tp", "--bandwidth-tb-s", "--measured-tpot"]
)
def test_hostile_numbers_are_usage_errors_in_one_line(run: Run, option: str, number: str) -> None:
    code, out, err = run(f"{BASE} {option}={number!r}")
    assert (code, out) == (Exit.USAGE, "")
    assert err.count("\n") == 1
    assert option in err


@pytest.mark.parametrize(
    ("line", "missing"), [("roofline --gpu L40S", "--params"), ("roofline --params 1e9", "--gpu")]
)
def test_what_a_question_cannot_do_without_is_asked_for(run: Run, line: str, missing: str) -> None:
    code, _, err = run(line)
    assert code == Exit.USAGE
    assert err.startswith(f"perfkit: {missing} is missing")


def test_a_hostile_name_is_shown_and_not_obeyed(run: Run) -> None:
    for line in (
        "roofline --params 1e9 --gpu '\x1b[31mred'",
        BASE + " --bandwidth-tb-s 1 --gpu '\x1b[31mred'",
    ):
        _, out, err = run(line)
        assert "\x1b" not in out + err
        assert r"\x1b[31mred" in out


def test_every_card_of_the_table_is_listed(run: Run) -> None:
    code, out, _ = run("roofline --list-gpus")
    assert code == Exit.OK
    assert [line.split()[0] for line in out.splitlines()[1:] if line[:1].isalnum()][:-1] == [
        g.name for g in GPUS
    ]
    assert [gpu["name"] for gpu in document(run, "roofline --list-gpus")["gpus"]] == [g.name for g in GPUS]


def test_a_mixture_shows_the_floor_beside_uniform_routing(run: Run) -> None:
    line = BASE.replace("1.7e9", "30e9") + " --moe-experts 128 --moe-topk 8 --dense-params 2e9"
    _, out, _ = run(line)
    assert "everything overlaps, uniform routing" in out
    assert "all rows take the same experts" in out


def test_terms_on_request_have_a_row_each(run: Run) -> None:
    extra = "--prefill-tokens 512 --cached-tokens 64 --kernels-per-step 1300 --launch-us 4 --frame-rate 12.5"
    _, out, _ = run(f"{BASE} {extra}")
    names = [line.split("  ")[0] for line in out.splitlines()]
    assert {"prefill 512 after 64", "host", "RTF"} <= set(names)
    assert "launches: binds" in out
