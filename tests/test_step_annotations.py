"""What the names of step markers say."""

from __future__ import annotations

import pytest

from layers.layer1_gpu_busy.annotations import FAMILIES, StepTag, is_step_marker, read_tag


def tag_of(name: str) -> StepTag | None:
    tags = [tag for family in FAMILIES if (tag := read_tag(family, name)) is not None]
    return tags[0] if tags else None


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("execute_context_2(6144)_generation_3(3)", StepTag("mixed", 5, 6147)),
        ("execute_context_2(6144)_generation_0(0)", StepTag("extend", 2, 6144)),
        ("execute_context_0(0)_generation_64(64)", StepTag("decode", 64, 64)),
        (
            "execute_15360_context_15(sq15360sk15360sqsq15728640sqsk15728640)_generation_0(sq0sk0sqsq0sqsk0)",
            StepTag("extend", 15, 15360),
        ),
        (
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
            StepTag("decode", 32, 32),
        ),
        ("step[DECODE bs=64]", StepTag("decode", 64, None)),
        ("step[DECODE bs=2 g_sq=4 g_sqsq=2 g_sqsk=30 g_sk=30]", StepTag("decode", 2, 4)),
        ("step[EXTEND bs=15 toks=15360]", StepTag("extend", 15, 15360)),
        ("step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 g_sq=1 g_sk=12]", StepTag("mixed", 2, 6)),
        ("step[TARGET_VERIFY bs=4]", StepTag("target_verify", 4, None)),
        ("prefill[bs=2 tok=14721 ctx=[7803, 6918]]", StepTag("extend", 2, 14721)),
        ("decode[bs=117/128 tok=117 d=117]", StepTag("decode", 117, 117)),
        ("eager_decode[bs=32 tok=32]", StepTag("decode", 32, 32)),
        ("schedule[batch=8]", StepTag("schedule", 8, None)),
        ("ProfilerStep#12", StepTag("step")),
    ],
)
def test_names_are_read(name: str, tag: StepTag) -> None:
    assert tag_of(name) == tag


@pytest.mark.parametrize(
    "name",
    [
        "## forward ##",
        "Optimizer.step#SGD.step",
        "capture_32_DECODE",
        "draft[1/3 bs=4]",
        "execute_model",
        "step[]",
    ],
)
def test_other_annotations_are_no_steps(name: str) -> None:
    assert tag_of(name) is None


def test_every_example_of_a_family_is_read_by_that_family_first() -> None:
    for family in FAMILIES:
        for example in family.examples:
            matching = [f.name for f in FAMILIES if f.pattern.search(example)]
            assert matching == [family.name], example


def test_a_tag_with_a_free_name_may_be_a_phase_as_well() -> None:
    assert is_step_marker("ProfilerStep#1")
    assert is_step_marker("step[DECODE bs=64]")
    assert not is_step_marker("schedule[batch=8]")
