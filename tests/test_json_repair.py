"""Almost-JSON becomes JSON token by token, and JSON stays what it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.json_repair import repair_json

_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)


@given(_VALUES, st.sampled_from([None, 2]), st.booleans())
def test_valid_json_is_returned_unchanged(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace")
    assert repair_json(text).text == text


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (b"[1, 2, ]", [1, 2]),
        (b'{"a": 1,\n}', {"a": 1}),
        (b'["a\x01\n\tb"]', ["a\x01\n\tb"]),
        (rb'["C:\code\x\new"]', ["C:\\code\\x\new"]),
        (rb'["\\c \u12 \u0041"]', ["\\c \\u12 A"]),
        (b"[NaN, -Infinity, inf, N/A, tru, 0x1F, 007, 1., +1]", [None] * 9),
        (b"[null, true, false, -0, 1.5e-3]", [None, True, False, 0, 0.0015]),
        (b'[1, // one, "two" ]\n 2 /* {, */, 3/**/]', [1, 2, 3]),
        (b'["// no comment", "/* nor here */,"]', ["// no comment", "/* nor here */,"]),
        (b'["caf\xe9", "\xed\xa0\x80"]', ["caf\ufffd", "\ufffd\ufffd\ufffd"]),
    ],
)
def test_each_kind_of_damage_is_repaired(broken: bytes, expected: Any) -> None:
    assert json.loads(repair_json(broken).text) == expected


@pytest.mark.parametrize(
    ("broken", "lost_bytes"),
    [
        (b"[1, NaN, -Infinity, N/A, 2, ] // end", 0),
        (rb'["C:\code\x"]', 0),
        (b"[tru, 0x1F, 12.5.7]", 3 + 4 + 6),
        (b'["a\x00b\x01\n\tc"]', 2),
        (b'["caf\xe9", "\xed\xa0\x80", "caf\xc3\xa9"]', 4),
    ],
)
def test_what_says_nothing_any_more_is_counted(broken: bytes, lost_bytes: int) -> None:
    assert repair_json(broken).lost_bytes == lost_bytes


@pytest.mark.parametrize(
    "text", [b'["a"b"]', b'["a', b"[1", b"[1 /* no end", b'{"a" 1}', b'["ends in a backslash\\']
)
def test_what_has_no_one_meaning_is_not_made_up(text: bytes) -> None:
    with pytest.raises(ValueError):
        json.loads(repair_json(text).text)


@given(
    st.lists(
        st.sampled_from(
            [b'"', b"\\", b"/", b"*", b"\n", b",", b"[", b"]", b"{", b"}", b":", b"1", b"\xff", b" "]
        )
    )
)
def test_any_bytes_are_taken(tokens: list[bytes]) -> None:
    once = repair_json(b"".join(tokens)).text
    assert isinstance(once, bytes)


@pytest.mark.parametrize("unit", [b'\\"', b"/*,", b"//,", b", ", b'"a', b"[", b"\\", b"a" * 7])
def test_text_that_repeats_is_repaired_in_proportion_to_its_length(unit: bytes) -> None:
    """A pattern that looks back would take minutes for this."""
    assert len(repair_json(b'["' + unit * 200_000).text) > 0
