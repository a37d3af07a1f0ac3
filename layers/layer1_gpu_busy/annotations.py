"""The names under which inference engines and profilers mark a step, and what those names say.

An annotation is a step marker when a pattern of this table matches its name. The families are in order of
trust: engines say what a step computed (decode or prefill, how many requests and tokens), perfkit's own tags
carry the batch that the user asked for, `ProfilerStep#N` only counts. Kinds are put in one vocabulary:
`decode`, `extend` (prefill, with or without cached prefix), `mixed`, `step`, and the engine's own word for
anything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from layers.layer1_gpu_busy.model import StepKind


@dataclass(frozen=True, slots=True)
class StepTag:
    """What the name of one step marker says; `batch_size` counts requests. None: it does not say."""

    kind: str
    batch_size: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """Step markers of one origin. `read` turns a match into what it says; `examples` are such names.

    `free_names` marks a family whose names are free, so that several ranges of one step may bear the tag.
    """

    name: str
    pattern: re.Pattern[str]
    read: Callable[[re.Match[str]], StepTag]
    examples: tuple[str, ...]
    free_names: bool = False


KIND_OF_WORD = {"prefill": StepKind.EXTEND, "eager_decode": StepKind.DECODE}


def _kind_of_counts(context: int, generation: int) -> str:
    if context and generation:
        return StepKind.MIXED
    return StepKind.EXTEND if context else StepKind.DECODE


def _vllm(match: re.Match[str]) -> StepTag:
    context, generation = int(match["context"]), int(match["generation"])
    tokens = match["tokens"] or int(match["context_tokens"]) + int(match["generation_tokens"])
    return StepTag(_kind_of_counts(context, generation), context + generation, int(tokens))


def _fields(match: re.Match[str]) -> StepTag:
    """`WORD bs=4 toks=12 …`: SGLang writes `toks`, ATOM `tok` and `bs=real/padded`."""
    said = {key: int(value) for key, value in re.findall(r"\b(\w+)=(\d+)", match["fields"])}
    word = match["word"].lower()
    tokens = said.get("toks", said.get("tok"))
    if tokens is None and ("c_sq" in said or "g_sq" in said):
        tokens = said.get("c_sq", 0) + said.get("g_sq", 0)
    return StepTag(KIND_OF_WORD.get(word, word), said.get("bs"), tokens)


FAMILIES: tuple[Family, ...] = (
    Family(
        "vLLM-style",
        re.compile(
            r"^execute_(?:(?P<tokens>\d+)_)?context_(?P<context>\d+)\((?:sq)?(?P<context_tokens>\d+)[^)]*\)"
            r"_generation_(?P<generation>\d+)\((?:sq)?(?P<generation_tokens>\d+)[^)]*\)"
        ),
        _vllm,
        (
            "execute_context_2(6144)_generation_3(3)",
            "execute_6147_context_2(sq6144sk7144sqsq20971520sqsk23019520)_generation_3(sq3sk6144sqsq3sqsk6144)",
        ),
    ),
    Family(
        "SGLang",
        re.compile(r"^step\[(?P<word>[A-Z_]+)\b(?P<fields>[^\]]*)\]"),
        _fields,
        (
            "step[DECODE bs=64]",
            "step[EXTEND bs=2 toks=14721]",
            "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 g_sq=1 g_sk=12]",
        ),
    ),
    Family(
        "ATOM",
        re.compile(r"^(?P<word>prefill|(?:eager_)?decode)\[(?P<fields>bs=.*)\]"),
        _fields,
        (
            "prefill[bs=2 tok=14721 ctx=[7803, 6918]]",
            "decode[bs=117/128 tok=117 d=117]",
            "eager_decode[bs=32 tok=32]",
        ),
    ),
    Family(
        "perfkit tag",
        re.compile(r"^(?P<name>[^\[\]]+)\[batch=(?P<batch>\d+)\]$"),
        lambda match: StepTag(match["name"], int(match["batch"])),
        ("forward[batch=8]",),
        free_names=True,
    ),
    Family(
        "ProfilerStep",
        re.compile(r"^ProfilerStep#\d+$"),
        lambda _: StepTag(StepKind.STEP),
        ("ProfilerStep#12",),
    ),
)
"""Formats: vLLM `gpu_worker`, SGLang `step_span_utils.build_step_span_name`, ATOM `model_runner` (all 2026);
the detailed forms add `sq`/`sk` sums of query and key lengths."""


def is_step_marker(name: str) -> bool:
    """Whether a name can only be that of a step. Tags with free names may be phases too, so they are not."""
    return any(family.pattern.search(name) for family in FAMILIES if not family.free_names)


def read_tag(family: Family, name: str) -> StepTag | None:
    """What a name says under one family's convention; None when it is not of that family."""
    match = family.pattern.search(name)
    return family.read(match) if match else None
