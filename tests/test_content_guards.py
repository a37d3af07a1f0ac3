"""Was what was asked new to the server, was as much answered, and was it right? Facts, and guards on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layers.collectors.load.item import Item
from layers.collectors.load.records import Audio, Outcome, RequestRecord, Usage
from layers.evidence.guard import Checked, Effect, apply_guards
from layers.layer3_sweep.content import Asked, ContentFacts, Least, Tokens, content_facts
from layers.layer3_sweep.guards_content import CONTENT_GUARDS, allowed_loss
from layers.layer3_sweep.model import Accuracy
from tests.sweep_builders import record

TOKENS = Tokens(
    served=100, counted=100, mean=64.0, asked_mean=64.0, events=6400, tokens_of_events=6400, contradicting=0
)
SOUND = ContentFacts(
    requests=100,
    items=100,
    recurring=False,
    marked=False,
    hit_share=0.0,
    cached_share=0.0,
    warmup_shared=0,
    tokens=TOKENS,
    least_tokens_mean=64.0,
    accuracy=Accuracy("wer", 0.0122, 100, 0),
    least_accuracy=Accuracy("wer", 0.0122, 100, 0),
    audio_ratio=1.0,
    audio_items=100,
    audio_cut=0,
)


def fired(**other: Any) -> list[tuple[str, Effect]]:
    return [(c.code, c.effect) for c in checks(replace(SOUND, **other)) if c.fired]


def checks(facts: ContentFacts) -> list[Checked]:
    return apply_guards(CONTENT_GUARDS, facts)


def exact(value: float, items: int = 100, left_out: int = 0) -> Accuracy:
    return Accuracy("exact-match", value, items, left_out)


def wer(value: float, items: int = 100, left_out: int = 0) -> Accuracy:
    return Accuracy("wer", value, items, left_out)


D, N = Effect.DIRECTIONAL, Effect.NOTE


def test_a_sound_pass_raises_nothing_and_is_asked_everything() -> None:
    assert fired() == [] and len(checks(SOUND)) == len(CONTENT_GUARDS)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"hit_share": 0.009}, []),
        ({"hit_share": 0.02}, [("PK316", N)]),
        ({"cached_share": 0.5}, [("PK316", D)]),
        ({"cached_share": 0.5, "recurring": True}, [("PK316", N)]),
        ({"cached_share": 0.5, "recurring": True, "marked": True}, [("PK316", D)]),
        ({"warmup_shared": 1}, [("PK317", D)]),
        ({"warmup_shared": 1, "marked": True}, []),
        ({"least_tokens_mean": 61.1}, []),
        ({"least_tokens_mean": 50.0}, [("PK318", D)]),
        ({"least_tokens_mean": 70.0}, [("PK318", D)]),
        ({"tokens": replace(TOKENS, asked_mean=128.0)}, [("PK318", N)]),
        ({"tokens": replace(TOKENS, counted=99)}, [("PK319", N)]),
        ({"tokens": replace(TOKENS, contradicting=2)}, []),
        ({"tokens": replace(TOKENS, contradicting=3)}, [("PK319", D)]),
        ({"tokens": replace(TOKENS, tokens_of_events=6700)}, []),
        ({"tokens": replace(TOKENS, tokens_of_events=12800)}, [("PK320", N)]),
        ({"audio_ratio": 0.985}, []),
        ({"audio_ratio": 0.97}, [("PK322", D)]),
        ({"audio_ratio": 1.03}, [("PK322", D)]),
        ({"audio_cut": 1}, [("PK322", D)]),
        ({"items": 19, "requests": 19}, [("PK323", N)]),
        ({"requests": 101}, [("PK323", N)]),
        ({"requests": 101, "marked": True}, []),
    ],
)
def test_each_trap_is_told_by_its_guard(facts: dict[str, Any], expected: list[tuple[str, Effect]]) -> None:
    assert fired(**facts) == expected


@pytest.mark.parametrize(
    ("here", "least", "expected"),
    [
        (wer(0.12), wer(0.018), [("PK321", D)]),
        (wer(0.0127), wer(0.0122), []),
        (wer(0.0122, 3165, 99), wer(0.0122, 3264), [("PK321", N)]),
        (wer(0.010, 3165, 9), wer(0.0122, 3264), []),
        (exact(0.80), exact(1.0), [("PK321", D)]),
        (exact(0.985, 64), exact(1.0, 64), []),
        (exact(1.0), exact(0.5), []),
        (exact(0.9, 90, 10), None, [("PK321", N)]),
        (exact(0.9), None, []),
        (exact(0.2), wer(0.0), []),
        (None, wer(0.0), []),
    ],
)
def test_accuracy_that_falls_is_told_and_chance_is_not(
    here: Accuracy | None, least: Accuracy | None, expected: list[tuple[str, Effect]]
) -> None:
    assert fired(accuracy=here, least_accuracy=least) == expected


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 5000), st.integers(1, 5000))
def test_what_chance_may_do_shrinks_with_n_and_never_below_its_floor(
    here: float, least: float, n: int, more: int
) -> None:
    few = allowed_loss(exact(here, n), exact(least, n))
    many = allowed_loss(exact(here, n + more), exact(least, n + more))
    assert 0.01 <= many <= few <= 1.96


def test_what_was_not_measured_is_not_judged() -> None:
    nothing = Tokens(0, 0, None, None, 0, 0, 0)
    bare = replace(
        SOUND,
        hit_share=None,
        cached_share=None,
        tokens=nothing,
        least_tokens_mean=None,
        accuracy=None,
        least_accuracy=None,
        audio_ratio=None,
    )
    assert [checked.code for checked in checks(bare)] == ["PK317", "PK323"]


def test_messages_hold_the_numbers() -> None:
    told = {c.code: c.message for c in checks(replace(SOUND, requests=250, accuracy=wer(0.5, 90, 10)))}
    assert told["PK323"] == "100 items for 250 requests, each asked 2.5 times as it is"
    assert told["PK321"] == (
        "wer 0.5000 over 90 answers; 10 more had none to judge; at the least load 0.0122 over 100"
    )
    assert told["PK318"] == "64.0 tokens an answer, 64.0 at the least load, 64.0 asked for"


def answered(sequence: int, tokens: int | None, events: int, **other: Any) -> RequestRecord:
    usage = Usage(10, tokens, other.pop("cached", None))
    stamps = tuple(range(events))
    return record(sequence, 0, 1, usage=usage, event_ns=stamps, **other)


def items(*texts: str, max_tokens: int | None = None) -> list[Item]:
    return [Item(f"i{n}", text=text, max_tokens=max_tokens) for n, text in enumerate(texts)]


def test_facts_of_a_pass_count_what_its_records_hold() -> None:
    asked = Asked(items("one", "two", max_tokens=8), items("one"), recurring=True, marked=False)
    records = [
        answered(0, 8, 8, cached=5),
        answered(1, 4, 2, cached=0, event_tokens=(1, 3)),
        answered(2, 3, 4, item="i0"),
        answered(3, None, 4, item="i1"),
        answered(4, None, 0, outcome=Outcome.SHED, item="i0"),
    ]
    least = Least([answered(0, 8, 8), answered(1, 6, 6)], wer(0.1))
    facts = content_facts(records, asked, hit_share=0.3, accuracy=wer(0.2), least=least)
    assert (facts.requests, facts.items, facts.warmup_shared) == (5, 2, 1)
    assert facts.cached_share == pytest.approx(0.25) and facts.hit_share == 0.3
    assert facts.tokens == Tokens(
        served=4, counted=3, mean=5.0, asked_mean=8.0, events=14, tokens_of_events=15, contradicting=1
    )
    assert facts.least_tokens_mean == 7.0 and facts.least_accuracy == wer(0.1)
    assert facts.audio_ratio is None and facts.audio_items == 0


def test_the_least_load_has_nothing_beside_it() -> None:
    facts = content_facts([answered(0, 8, 8)], Asked(items("one"), [], recurring=False, marked=True))
    assert (facts.least_tokens_mean, facts.least_accuracy, facts.audio_ratio) == (None, None, None)
    assert facts.cached_share is None and facts.marked


def test_speech_that_was_cut_is_found_item_by_item() -> None:
    def spoken(sequence: int, seconds: float) -> RequestRecord:
        return record(sequence, 0, 1, audio=Audio(seconds, 24000, 1, "x", None), event_ns=(1,))

    asked = Asked(items("one", "two"), [], recurring=True, marked=False)
    least = Least([spoken(0, 2.0), spoken(1, 2.0)])
    facts = content_facts([spoken(0, 2.0), spoken(1, 1.0)], asked, least=least)
    assert (facts.audio_ratio, facts.audio_items, facts.audio_cut) == (0.75, 2, 1)
    assert facts.tokens.events == 0


def test_speech_of_fresh_items_is_compared_by_its_text() -> None:
    def spoken(item: str, seconds: float) -> RequestRecord:
        return record(0, 0, 1, item=item, audio=Audio(seconds, 24000, 1, "x", None), event_ns=(1,))

    asked = Asked([Item("a", text="x" * 20)], [], recurring=False, marked=False)
    least = Least([spoken("b", 1.0)], items=[Item("b", text="x" * 10)])
    facts = content_facts([spoken("a", 1.0)], asked, least=least)
    assert (facts.audio_ratio, facts.audio_items) == (0.5, 0)
