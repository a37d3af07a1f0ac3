"""The key layer: properties of a key function that runs as a program, each broken by the nearest fault."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layers.collectors import bounded
from layers.evidence.result import Result
from layers.evidence.verdict import Exit
from layers.layer5_regression import key_command, key_rows
from layers.layer5_regression.key_checks import Keys, broken, poisson_interval, properties_of, self_test
from layers.layer5_regression.key_judge import KeyFacts, judge_keys
from layers.layer5_regression.key_rows import KeySpec, rows_for
from parsers.errors import InvalidMeasurement
from parsers.trace_model import I64
from perfkit.cli.app import main
from tests.process_trees import tree_ids, wait_until_gone

SPEC = KeySpec(channels=5, values=64, range=20_011, reserved=(20_013,))
KeyOf = Callable[[list[int]], int]


def horner(row: list[int]) -> int:
    """A good one: polynomial, folded; a reserved id stays."""
    if row[0] in SPEC.reserved:
        return row[0]
    key = 0
    for value in row:
        key = (key * 1_000_000_007 + value + 1) % (2**31 - 1)
    return key % SPEC.range


def keys_by(key_of: KeyOf, spec: KeySpec = SPEC) -> I64:
    return np.array([key_of(row) for row in rows_for(spec).all.tolist()], np.int64)


def looked_at(first: I64, again: I64 | None = None) -> KeyFacts:
    """What is judged of these keys."""
    rows, keys = rows_for(SPEC), Keys(first, first if again is None else again)
    n = len(rows.random)
    expected = n * (n - 1) / 2 / SPEC.range
    properties = tuple(properties_of(SPEC, rows, keys))
    planted = tuple(self_test(SPEC, rows, keys))
    return KeyFacts("program", SPEC, len(rows.all), expected, properties, planted)


def judged(first: I64) -> Result:
    return judge_keys(looked_at(first))


def broken_by(first: I64, again: I64 | None = None) -> list[str]:
    return [one.name for one in broken(looked_at(first, again).properties)]


def test_a_good_hash_holds_all_and_every_planted_fault_is_caught() -> None:
    result = judged(keys_by(horner))
    assert (result.verdict.word, result.verdict.exit_code) == ("equivalent", Exit.OK)
    assert [g.code for g in result.guards if g.fired] == []
    assert len(result.sections["key_layer"]["control"]) == 5 and result.sections["first_divergence"] is None
    assert result.findings[0].strength == "strong"


def sum_of(row: list[int]) -> int:
    return row[0] if row[0] in SPEC.reserved else sum(row) % SPEC.range


def first_four(row: list[int]) -> int:
    return horner([*row[:4], 0])


def masked(row: list[int]) -> int:
    key = horner(row)
    return key if key in SPEC.reserved else key & ~7


def lost_reserved(row: list[int]) -> int:
    return horner([1, *row[1:]] if row[0] in SPEC.reserved else row)


def too_wide(row: list[int]) -> int:
    return horner(row) if row[0] in SPEC.reserved else horner(row) + 1000


@pytest.mark.parametrize(
    ("key_of", "names"),
    [
        (sum_of, ["collisions", "order-matters"]),
        (first_four, ["channels-matter"]),
        (masked, ["channels-matter", "collisions"]),
        (lost_reserved, ["reserved-kept"]),
        (too_wide, ["in-range"]),
    ],
)
def test_a_fault_breaks_the_property_that_names_it(key_of: KeyOf, names: list[str]) -> None:
    found = broken_by(keys_by(key_of))
    assert set(names) <= set(found)
    result = judged(keys_by(key_of))
    assert (result.verdict.word, result.verdict.exit_code) == ("different", Exit.FAILED)


def test_keys_that_depend_on_the_process_or_the_order_are_found() -> None:
    again = keys_by(horner)
    again[7] = (again[7] + 1) % SPEC.range
    assert broken_by(keys_by(horner), again) == ["deterministic"]


def test_an_ordinary_row_must_not_take_a_reserved_id() -> None:
    keys = keys_by(horner)
    keys[3] = SPEC.reserved[0]
    assert set(broken_by(keys)) == {"in-range", "reserved-free"}


def test_pk580_a_check_that_did_not_find_a_planted_fault_leaves_no_result() -> None:
    result = judge_keys(replace(looked_at(keys_by(horner)), planted=(("order ignored", False),)))
    assert (result.verdict.word, result.verdict.exit_code) == ("invalid", Exit.INVALID)
    assert [g.code for g in result.guards if g.fired] == ["PK580"] and result.findings == []
    assert "PK580" not in [g.code for g in judged(keys_by(horner)).guards if g.fired]


def test_pk581_a_range_so_large_that_no_collision_says_nothing() -> None:
    facts = replace(looked_at(keys_by(horner)), expected_collisions=19.0)
    assert [g.code for g in judge_keys(facts).guards if g.fired] == ["PK581"]
    assert "PK581" not in [g.code for g in judged(keys_by(horner)).guards if g.fired]


def test_the_interval_is_that_of_poisson() -> None:
    low, high = poisson_interval(60.0)
    drawn = np.random.default_rng(3).poisson(60.0, 20_000)
    assert np.mean((drawn >= low) & (drawn <= high)) == pytest.approx(0.99, abs=0.004)


def test_rows_are_what_they_are_to_show() -> None:
    rows = rows_for(SPEC)
    assert len(np.unique(rows.random, axis=0)) == len(rows.random)
    assert ((rows.base != rows.changed).sum(axis=1) == 1).all()
    assert (np.sort(rows.base, axis=1) == np.sort(rows.permuted, axis=1)).all()
    assert (rows.base != rows.permuted).any(axis=1).all()
    assert set(rows.reserved[:, 0].tolist()) == set(SPEC.reserved)
    assert rows_for(KeySpec(1, 100, 50)).permuted.shape[1] == 1


PROGRAM = """
import json, sys
print(json.dumps({{"channels": 3, "values": 256, "range": 65537, "reserved": [70000]}}))
for line in sys.stdin:
    row = json.loads(line)["row"]
    print(json.dumps({{"key": {key}}}))
"""
GOOD = "row[0] if row[0] == 70000 else ((row[0] * 257 + row[1]) * 65003 + row[2] * 9973 + 7) * 40503 % 65537"


def program(tmp_path: Path, key: str) -> str:
    path = tmp_path / "keys.py"
    path.write_text(PROGRAM.format(key=key), encoding="utf-8")
    return f"{sys.executable} {path}"


def test_a_program_of_its_own_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("regress", "--key-layer", program(tmp_path, GOOD), "--json", "--no-record")
    code = main(list(asked))
    made = json.loads(capsys.readouterr().out)
    assert (code, made["verdict"]["word"]) == (0, "equivalent")
    names = {one["name"] for one in made["key_layer"]["properties"]}
    assert names >= {"deterministic", "collisions", "order-matters"}
    code = main(["regress", "--key-layer", program(tmp_path, "hash(str(row)) % 65537"), "--no-record"])
    out = capsys.readouterr().out
    assert code == 1 and "BROKEN     deterministic" in out and max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("key", "code", "says"),
    [
        ("1/0", 4, "ZeroDivisionError"),
        ("'x'", 4, "no line of this protocol"),
        ("2**70", 4, "no line of this protocol"),
    ],
)
def test_a_program_that_does_not_answer_is_told_in_one_line(
    key: str, code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["regress", "--key-layer", program(tmp_path, key), "--no-record"]) == code
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1 and says in err


@pytest.mark.parametrize("command", ["", "nowhere-at-all", "'half"])
def test_a_command_that_is_none_is_usage(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["regress", "--key-layer", command, "--no-record"]) == 2
    assert main(["regress", "--key-layer", "x", "--vs", "a=b", "--no-record"]) == 2
    assert "leave out --vs" in capsys.readouterr().err


def test_a_description_that_tells_nothing_apart_is_refused() -> None:
    with pytest.raises(InvalidMeasurement, match="nothing to tell apart"):
        KeySpec(0, 2, 2)


@pytest.mark.parametrize("where", ["device", "host"])
def test_the_keys_of_the_bundled_engine_hold(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As its step makes them: a kernel on the emulated device, or blake2b on the host."""
    pytest.importorskip("torch")
    command = f"{sys.executable} -m sample_engine.radix_keys --device emulated --where {where}"
    assert main(["regress", "--key-layer", command, "--json", "--no-record"]) == 0
    made = json.loads(capsys.readouterr().out)["key_layer"]
    assert made["spec"] == {"channels": 13, "values": 1024, "range": 151_643, "reserved": [151_645]}
    assert all(one["holds"] for one in made["properties"]) and all(one["caught"] for one in made["control"])


@pytest.mark.parametrize(
    "told",
    [
        {"range": 2**63},
        {"range": 2**64},
        {"values": 2**63},
        {"channels": 10**9},
        {"reserved": (2**70,)},
        {"reserved": tuple(range(63))},
    ],
)
def test_a_description_of_more_than_can_be_asked_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(InvalidMeasurement):
        replace(SPEC, **told)


@pytest.mark.parametrize(
    "spec",
    [
        KeySpec(1, 256, 65_537, (7,)),
        KeySpec(2, 256, 65_537, (7,)),
        KeySpec(3, 1000, 65_537, tuple(range(998))),
        KeySpec(3, 256, 2**63 - 1, tuple(range(1000, 60_000))),
        KeySpec(1024, 2**62, 2**63 - 1, (-5,)),
    ],
)
def test_every_description_that_is_taken_gives_rows_that_show_something(spec: KeySpec) -> None:
    rows = rows_for(spec)
    assert len(rows.random) and len(rows.base) == len(rows.changed)
    assert ((rows.base != rows.changed).sum(axis=1) == 1).all()
    ordinary = np.concatenate([rows.random, rows.base, rows.changed, rows.permuted])
    assert not np.isin(ordinary[:, 0], np.array(spec.reserved, np.int64)).any()
    assert ordinary.min() >= 0 and ordinary.max() < spec.values
    assert set(rows.reserved[:, 0].tolist()) == set(spec.reserved)
    assert all(getattr(rows, name).size <= 20_000_000 for name in ("random", "reserved"))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("while True: sys.stdout.write('y\\n' * 4096)", "it printed more than"),
        ("while True: sys.stderr.write('y' * 4096)", "it printed more than"),
        ("print('[' * 50_000)", "no line of this protocol"),
        ("""print('{"x":' + '[' * 9000 + ']' * 9000 + '}')""", "no line of this protocol"),
        ("sys.stdout.buffer.write(b'\\xff\\xfe\\n')", "no line of this protocol"),
    ],
)
def test_a_program_that_prints_garbage_or_without_end_is_told_in_one_line(
    body: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bounded, "MAX_OUTPUT_BYTES", 1 << 20)
    path = tmp_path / "keys.py"
    path.write_text(f"import sys\n{body}\n", encoding="utf-8")
    assert main(["regress", "--key-layer", f"{sys.executable} {path}", "--no-record"]) == 4
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1 and says in err


def test_a_program_that_hangs_is_stopped_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(key_command, "TIMEOUT_S", 2.0)
    started = tmp_path / "started"
    path = tmp_path / "keys.sh"
    path.write_text(f"sleep 1000 & echo $! $$ > {started}.part; mv {started}.part {started}; wait\n")
    assert main(["regress", "--key-layer", f"sh {path}", "--no-record"]) == 4
    assert "no answer in 2 s" in capsys.readouterr().err
    wait_until_gone(tree_ids(started))


def test_keys_take_no_option_of_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    for given in (["--b", "x"], ["--aa", "x"], ["--resume"], ["--vs-server", "http://x"], ["--tolerant"]):
        assert main(["regress", "--key-layer", "x", *given, "--no-record"]) == 2
        assert f"leave out {given[0]}" in capsys.readouterr().err


def test_a_hash_of_63_bits_can_be_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """No collision can be expected of its keys; whether some would be found is tried on fewer of them."""
    monkeypatch.setattr(key_rows, "MOST_ROWS", 5000)
    spec = KeySpec(3, 256, 2**63 - 1)
    rows = rows_for(spec)
    mixed = [hash(tuple(row)) % spec.range for row in rows.all.tolist()]
    keys = Keys(*2 * (np.array(mixed, np.int64),))
    assert broken(properties_of(spec, rows, keys)) == []
    planted = dict(self_test(spec, rows, keys))
    assert len(planted) == 4 and all(planted.values())
    few = KeySpec(3, 2, 65_537)
    keys = Keys(*2 * (4001 * np.arange(len(rows_for(few).all)),))
    assert not dict(self_test(few, rows_for(few), keys))["a quarter of the keys used"]
