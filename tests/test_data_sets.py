"""Items of a sweep: alike for the same words, none of the warm-up's among the measured, length as asked."""

from __future__ import annotations

import json
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layers.collectors.load.item import Item, read_items, write_items
from layers.layer3_sweep.data_sets.beginnings import beginning, shared
from layers.layer3_sweep.data_sets.file_set import file_set
from layers.layer3_sweep.data_sets.lengths import Lengths, Shape
from layers.layer3_sweep.data_sets.options import FRESH, MARKED, RECURRING, Options
from layers.layer3_sweep.data_sets.registry import data_set
from layers.layer3_sweep.data_sets.sharegpt import fits
from parsers.errors import UnreadableInput, UsageError

AUDIO = "audio,seconds=0.1-0.4,items=5,warmup=2"
TEXT = "text,words=5-20,items=9,warmup=3"


def lines(path: Path, *items: object) -> str:
    path.write_text("".join(f"{json.dumps(item)}\n" for item in items))
    return f"jsonl:{path}"


@pytest.mark.parametrize("spec", [TEXT, f"{TEXT},same", f"{TEXT},nonce,seed=4", AUDIO, f"{AUDIO},fresh"])
def test_the_same_words_give_the_same_items(spec: str, tmp_path: Path) -> None:
    one, other = data_set(spec, tmp_path / "a"), data_set(spec, tmp_path / "a")
    for part in ("8/1", "64/3"):
        assert one.measured(part) == other.measured(part) and one.warmup(part) == other.warmup(part)
    assert (one.name, one.regime) == (other.name, other.regime)


@pytest.mark.parametrize("spec", [TEXT, f"{TEXT},same", AUDIO, f"{AUDIO},fresh"])
def test_measured_and_warmup_share_no_item_and_no_beginning(spec: str, tmp_path: Path) -> None:
    made = data_set(spec, tmp_path)
    for part in ("1/1", "2/1"):
        measured, warmup = made.measured(part), made.warmup(part)
        assert not {item.id for item in measured} & {item.id for item in warmup}
        assert shared(measured, warmup) == 0 and len({beginning(item) for item in measured}) == len(measured)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 60))
def test_made_up_text_never_begins_alike(seed: int, items: int, warmup: int) -> None:
    made = data_set(f"text,words=30-40,items={items},warmup={warmup},seed={seed}", Path())
    everything = [item for part in ("1/1", "1/2") for item in (*made.measured(part), *made.warmup(part))]
    assert len({beginning(item) for item in everything}) == len(everything)


@pytest.mark.parametrize("spec", [TEXT, f"{AUDIO},fresh"])
def test_fresh_items_are_other_ones_in_each_part_and_as_long(spec: str, tmp_path: Path) -> None:
    made = data_set(spec, tmp_path)
    assert not made.recurring and made.regime == MARKED if "audio" in spec else FRESH
    first, second = made.measured("8/1"), made.measured("8/2")
    assert not {beginning(item) for item in first} & {beginning(item) for item in second}
    assert not {item.id for item in first} & {item.id for item in second}
    assert [item.audio_seconds for item in first] == [item.audio_seconds for item in second]
    assert [len(item.text.split()) for item in first] == [len(item.text.split()) for item in second]


@pytest.mark.parametrize("spec", [f"{TEXT},same", AUDIO])
def test_the_same_items_come_in_each_part_where_that_is_asked_for(spec: str, tmp_path: Path) -> None:
    made = data_set(spec, tmp_path)
    assert made.recurring and made.measured("1/1") == made.measured("64/3")


def test_a_nonce_differs_between_parts_and_is_none_where_items_are_plain() -> None:
    marked, plain = data_set(f"{TEXT},nonce", Path()), data_set(TEXT, Path())
    assert marked.nonce("1/1") and marked.nonce("1/1") != marked.nonce("1/2") and marked.regime == MARKED
    assert plain.nonce("1/1") == "" and data_set(f"{TEXT},same", Path()).regime == RECURRING


def test_text_has_the_words_and_asks_for_the_tokens_that_were_asked_for() -> None:
    made = data_set("text:long-heavy,words=10-20,tokens=50-60,items=40", Path())
    items = made.measured("1/1")
    words = [len(item.text.split()) for item in items]
    assert min(words) >= 10 and max(words) <= 20 and sum(word >= 18 for word in words) >= 30
    assert all(item.max_tokens is not None and 50 <= item.max_tokens <= 60 for item in items)
    assert "10 to 20 long-heavy words" in made.name and "50 to 60" in made.name


def test_audio_is_a_file_of_the_length_that_it_says(tmp_path: Path) -> None:
    for item in data_set(AUDIO, tmp_path).measured("1/1"):
        with wave.open(item.audio) as file:
            assert file.getnframes() / file.getframerate() == item.audio_seconds
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        assert 0.1 <= (item.audio_seconds or 0) <= 0.4 and np.abs(samples).max() > 0


def test_files_of_audio_are_made_once_and_alike_everywhere(tmp_path: Path) -> None:
    first, second = (data_set(AUDIO, tmp_path / name).measured("1/1") for name in "ab")
    assert [Path(i.audio).read_bytes() for i in first] == [Path(i.audio).read_bytes() for i in second]
    inodes = [Path(item.audio).stat().st_ino for item in first]
    again = data_set(AUDIO, tmp_path / "a").measured("64/3")
    assert [Path(item.audio).stat().st_ino for item in again] == inodes


@given(st.sampled_from(Shape), st.floats(1, 50), st.floats(0, 100), st.integers(1, 200), st.integers(0, 99))
def test_lengths_lie_in_their_range_and_of_80_in_100_in_a_fifth_of_it(
    shape: Shape, low: float, width: float, n: int, seed: int
) -> None:
    lengths = Lengths(shape, low, low + width)
    drawn = lengths.draw(n, np.random.default_rng(seed))
    assert drawn.shape == (n,) and drawn.min() >= low - 1e-9 and drawn.max() <= low + width + 1e-9
    assert np.allclose(np.sort(drawn), np.sort(lengths.draw(n, np.random.default_rng(seed + 1))))
    share = {Shape.SHORT_HEAVY: 0.8, Shape.UNIFORM: 0.2, Shape.LONG_HEAVY: 0.05}[shape]
    lowest = np.count_nonzero(drawn <= low + 0.2 * width) if width > 1e-6 else round(share * n)
    assert abs(lowest - share * n) <= 1


def test_a_file_of_items_is_read_line_by_line(tmp_path: Path) -> None:
    spec = lines(
        tmp_path / "a.jsonl",
        {"id": 7, "prompt": "one", "max_tokens": 3},
        {"messages": [{"role": "user", "content": "two"}], "fields": {"top_k": 1}},
        {"text": "three", "expected": "3"},
        {"text": "four"},
    )
    made = data_set(spec, tmp_path)
    items = {item.id: item for item in (*made.measured(""), *made.warmup(""))}
    assert items["7"] == Item("7", text="one", max_tokens=3)
    assert items["2"].messages[0].content == "two" and items["2"].fields == {"top_k": 1}
    assert items["3"].expected == "3" and len(items) == 4
    assert made.recurring and made.measured("1/1") == made.measured("2/1")
    assert made.name.startswith("a.jsonl, sha256 ")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"text": "a", "tokens": 1}', "it names `tokens`"),
        ("[1]", "line 1: no item"),
        ("{", "line 1: no item"),
        ('{"max_tokens": 1}', "neither text, messages, audio nor fields"),
        ('{"text": 1}', "line 1: no item"),
        ("", "no item in it"),
        ('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}', "the same id"),
    ],
)
def test_a_line_that_is_no_item_is_refused_with_its_place(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "a.jsonl").write_text(line)
    with pytest.raises(UnreadableInput, match=reason):
        data_set(str(tmp_path / "a.jsonl"), tmp_path)


@pytest.mark.parametrize("spec", ["jsonl:nowhere.jsonl", "sharegpt:nowhere.json"])
def test_a_file_that_is_not_there_is_told(spec: str) -> None:
    with pytest.raises(UnreadableInput, match="nowhere"):
        data_set(spec, Path())


def test_audio_of_a_file_lies_beside_it_and_its_length_is_read(tmp_path: Path) -> None:
    sounds = [Path(item.audio).name for item in data_set(AUDIO, tmp_path).measured("1/1")]
    made = data_set(lines(tmp_path / "a.jsonl", *({"audio": name} for name in sounds)), tmp_path)
    items = [*made.measured(""), *made.warmup("")]
    assert sorted(Path(item.audio).name for item in items) == sorted(sounds)
    assert all(item.audio_seconds and 0.1 <= item.audio_seconds <= 0.4 for item in items)
    assert not {i.audio for i in made.measured("")} & {i.audio for i in made.warmup("")}


def test_one_audio_file_leaves_nothing_to_warm_up_with(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two at least"):
        data_set(lines(tmp_path / "a.jsonl", {"audio": "x.wav", "audio_seconds": 1}), tmp_path)


def test_prompts_that_all_begin_alike_are_warmed_up_with_made_up_text_and_it_is_said(tmp_path: Path) -> None:
    preamble = "You are an assistant that answers questions about the weather and nothing else. "
    items = [{"text": preamble + str(number), "max_tokens": 8} for number in range(10)]
    made = data_set(lines(tmp_path / "a.jsonl", *items), tmp_path)
    assert shared(made.measured(""), made.warmup("")) == 0 and made.warmup("")[0].max_tokens == 8
    assert "7 of them begin as another does" in made.regime


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=20), st.integers(1, 12), st.integers(1, 6))
def test_a_file_is_divided_without_sharing_whatever_it_holds(
    texts: Sequence[str], items: int, warmup: int
) -> None:
    made = file_set("f", [Item(str(n), text=text) for n, text in enumerate(texts)], Options(items, warmup))
    assert 1 <= len(made.chosen) <= items and 1 <= len(made.apart) <= max(warmup, 1)
    assert shared(made.chosen, made.apart) == 0


def test_recorded_chats_ask_what_was_asked_for_as_many_tokens_as_were_answered(tmp_path: Path) -> None:
    long, short = "word " * 20, "no"
    chats = [
        {"id": "x", "conversations": [{"from": "system", "value": "s"}, *pair("1 " + long, long)]},
        {"messages": [{"role": "user", "content": "2 " + long}, {"role": "assistant", "content": long}]},
        {"id": "short", "conversations": pair(short, long)},
        {"id": "no answer", "conversations": [{"from": "human", "value": long}]},
        {"id": "long", "conversations": pair("x" * 5000, long)},
    ]
    (tmp_path / "s.json").write_text(json.dumps(chats))
    made = data_set(str(tmp_path / "s.json"), tmp_path)
    items = [*made.measured(""), *made.warmup("")]
    assert sorted((item.text, item.max_tokens) for item in items) == [("1 " + long, 25), ("2 " + long, 25)]
    assert "3 of 5 conversations left out" in made.name


def pair(prompt: str, answer: str) -> list[dict[str, str]]:
    return [{"from": "human", "value": prompt}, {"from": "gpt", "value": answer}]


@pytest.mark.parametrize(
    ("prompt", "answer", "of_use"),
    [(4, 4, True), (3, 9, False), (9, 3, False), (1024, 1024, True), (1025, 9, False), (1000, 1049, False)],
)
def test_pairs_are_left_out_by_the_bounds_of_other_generators(prompt: int, answer: int, of_use: bool) -> None:
    assert fits(prompt, answer) is of_use


@pytest.mark.parametrize("text", ["{}", "[{}]", "[1]", ""])
def test_what_is_no_list_of_chats_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(UnreadableInput, match=r"s\.json"):
        data_set(str(tmp_path / "s.json"), tmp_path)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("books", "there are text, audio, jsonl, sharegpt"),
        ("text,seconds=3", "`seconds` is none of"),
        ("text,items=many", "no whole number"),
        ("text,items=0", "1 at least"),
        ("text:short", "there are short-heavy"),
        ("text,words=a-b", "give two numbers"),
        ("text,words=9-3", "rise"),
    ],
)
def test_words_that_are_not_understood_are_refused_with_those_that_are(spec: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        data_set(spec, Path())


def test_items_survive_their_file(tmp_path: Path) -> None:
    items = data_set("text,tokens=5-9,items=4", Path()).measured("1/1")
    write_items(tmp_path / "items.log", items)
    assert read_items(tmp_path / "items.log") == items
