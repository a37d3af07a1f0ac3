"""Two snapshots: what differs, what was declared, and what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.evidence.result import to_document
from layers.evidence.verdict import Exit
from layers.preflight import snapshot as snapshots
from layers.preflight.compare import compare, flat
from layers.preflight.facts import Fact, Gathering, Section, gather_all
from layers.preflight.judge_difference import judge_difference
from layers.preflight.snapshot import Snapshot, from_file, to_section
from parsers.errors import UnreadableInput


def snapshot(facts: dict[str, Fact], unavailable: dict[str, str] | None = None) -> Snapshot:
    return Snapshot("2026-08-05T10:00:00+00:00", (Section("machine", facts, unavailable or {}),))


BEFORE = snapshot({"kernel": "6.1", "cpus": 8, "cgroup.throttled_periods": 1})


def test_nothing_but_a_counter_moved() -> None:
    after = snapshot({"kernel": "6.1", "cpus": 8, "cgroup.throttled_periods": 9})
    result = judge_difference(BEFORE, after)
    assert (result.verdict.word, result.verdict.exit_code) == ("same", Exit.OK)


def test_an_undeclared_difference_fails_the_pair() -> None:
    result = judge_difference(BEFORE, snapshot({"kernel": "6.2", "cpus": 8}))
    assert (result.verdict.word, result.verdict.exit_code) == ("different", Exit.FAILED)
    assert "machine.kernel" in result.verdict.because
    assert [guard.code for guard in result.guards if guard.fired] == ["PK020"]


@pytest.mark.parametrize("declared", ["machine.kernel", "machine.*", "*kernel"])
def test_a_declared_difference_is_what_the_pair_is_about(declared: str) -> None:
    after = snapshot({"kernel": "6.2", "cpus": 8, "cgroup.throttled_periods": 1})
    result = judge_difference(BEFORE, after, [declared])
    assert (result.verdict.word, result.verdict.exit_code) == ("declared-only", Exit.OK)
    assert not [guard for guard in result.guards if guard.fired]


def test_a_fact_that_one_side_does_not_have_is_a_difference() -> None:
    (gone,) = compare(snapshot({"cpus": 8, "kernel": "6.1"}), snapshot({"cpus": 8}, {"kernel": "no answer"}))
    assert (gone.before, gone.after) == ("6.1", "unavailable: no answer")
    (new,) = compare(snapshot({}), snapshot({"cpus": 8}))
    assert (new.before, new.after) == ("(absent)", 8)


def test_a_snapshot_is_read_back_from_the_document_that_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "before.json"
    path.write_text(json.dumps({"command": "preflight", "snapshot": to_section(BEFORE)}))
    assert from_file(path) == BEFORE


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"snapshot": 3}', '{"snapshot": {"taken": 1}}', "[" * 10_000]
)
def test_a_file_without_a_snapshot_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(UnreadableInput, match=r"other\.json: no"):
        from_file(path)


def test_a_file_larger_than_any_snapshot_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MAX_DOCUMENT_BYTES", 1 << 20)
    path = tmp_path / "large.json"
    path.write_text(json.dumps({"snapshot": to_section(BEFORE), "more": " " * (1 << 20)}))
    with pytest.raises(UnreadableInput, match="more than 1 MiB"):
        from_file(path)


def test_the_document_of_a_difference_is_plain_json() -> None:
    json.dumps(to_document(judge_difference(BEFORE, snapshot({"cpus": 1}))), allow_nan=False)


facts = st.dictionaries(st.text("abc", min_size=1), st.none() | st.integers(-9, 9) | st.text("xy"))


@given(facts, facts)
def test_differences_are_those_of_the_flat_facts(before: dict[str, Fact], after: dict[str, Fact]) -> None:
    a, b = snapshot(before), snapshot(after)
    found = {one.name for one in compare(a, b)}
    assert found == {f"machine.{key}" for key in before.keys() ^ after.keys()} | {
        f"machine.{key}" for key in before.keys() & after.keys() if before[key] != after[key]
    }
    assert {one.name for one in compare(b, a)} == found
    assert compare(a, a) == [] and len(flat(a)) == len(before)


def test_a_probe_that_fails_costs_its_own_fact() -> None:
    def fail() -> Fact:
        raise FileNotFoundError(2, "No such file or directory", "/x")

    gathering = Gathering("section")
    gathering.take("broken", fail)
    gathering.take("fine", lambda: 1)
    section = gathering.section()
    assert section == Section("section", {"fine": 1}, {"broken": "/x: No such file or directory"})


def test_a_section_that_hangs_is_unavailable_and_holds_up_nobody() -> None:
    import threading

    release = threading.Event()

    def hang() -> Section:
        release.wait()
        return Section("slow", {})

    slow, fast = gather_all([("slow", hang), ("fast", lambda: Section("fast", {"a": 1}))], timeout_s=0.5)
    release.set()
    assert slow.unavailable == {"everything": "no answer in 0.5 s"}
    assert fast.facts == {"a": 1}


def test_a_fault_in_a_section_is_not_hidden() -> None:
    def broken() -> Section:
        raise KeyError("a fault of perfkit")

    with pytest.raises(KeyError):
        gather_all([("broken", broken)])


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("machine.kernl", "machine.kernl is no fact of either"),
        ("machine.cpus", "machine.cpus is the same in both"),
        ("machine.kernel", None),
        ("machine.k*", None),
    ],
)
def test_a_declared_name_without_effect_is_noted_PK026(declared: str, said: str | None) -> None:
    result = judge_difference(BEFORE, snapshot({"kernel": "6.2", "cpus": 8}), [declared])
    fired = [c.message for c in result.guards if c.fired and c.code == "PK026"]
    assert fired == ([] if said is None else [said])
