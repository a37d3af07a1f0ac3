"""The guards on a tagged run: a range that was never made is no phase of a trace."""

from __future__ import annotations

from layers.collectors.tags.plan import Tag
from layers.collectors.tags.tagging import NO_RANGES, Count, TaggedRun
from layers.evidence.guard import Checked, apply_guards
from layers.layer1_gpu_busy.judge_tags import TAG_GUARDS, TagFacts

STEP = Tag("step", "engine", "Engine.step", "len(batch)")
CALLED = Count("step", 7, 10, "torch", 0, "")


def checked(*counts: Count, tag: Tag = STEP) -> dict[str, Checked]:
    facts = TagFacts((tag,), TaggedRun(0, counts), None)
    return {c.code: c for c in apply_guards(TAG_GUARDS, facts)}


def test_a_run_whose_tags_were_called_with_ranges_and_batches_is_clear() -> None:
    assert [code for code, found in checked(CALLED).items() if found.fired] == []


def test_a_tag_without_a_call_is_named() -> None:
    found = checked()["PK170"]
    assert (found.fired, found.message) == (True, "step (engine:Engine.step)")


def test_a_process_that_counted_calls_and_made_no_range_is_told() -> None:
    bare = Count("step", 8, 10, NO_RANGES, 0, "")
    found = checked(CALLED, bare)["PK171"]
    assert (found.fired, found.message) == (True, "step")


def test_failed_batches_are_counted_and_not_asked_of_a_tag_without_an_expression() -> None:
    failed = Count("step", 7, 10, "torch", 3, "name 'batch' is not defined")
    assert "3 of 10 calls: name 'batch'" in checked(failed)["PK172"].message
    assert "PK172" not in checked(CALLED, tag=Tag("step", "engine", "Engine.step"))
