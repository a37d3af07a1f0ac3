"""Damage to the text of a trace, drawn by hypothesis: what disks, copies, crashes and careless writers do.

`Target` is a text that is known event by event; `damages(target)` draws one damage to it. A `Damaged` text
says which events were touched, so that a test can tell what must have survived.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from hypothesis import strategies as st

INSERTIONS = (
    *(
        b"NaN",
        b"-Infinity",
        b"N/A",
        b"null",
        b"\x00",
        b"\x01",
        b"\n",
        b"\x0b",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
    ),
    *(
        b"//",
        b"/* x */",
        b"/*",
        b",",
        b",,",
        b"]",
        b"[",
        b"}",
        b"{",
        b"}}",
        b'"',
        b"\\",
        b"\\u12",
        b":",
    ),
    *(b'\n[W init.cpp:12] warning: {odd} "\n', bytes(300), b'{"ph": "X"}', b'"kernel"'),
)
FLIPS = tuple(bytes([byte]) for byte in b'"\\{}[],:. \n\x00\x1f\x7f\x80\xffaX0-/')


@dataclass(frozen=True)
class Target:
    """A sound text, and where each of its events begins and ends."""

    text: bytes
    events: tuple[tuple[int, int], ...]

    def touched(self, start: int, end: int) -> range:
        """The events that a change of these bytes may reach: those in it and next to it."""
        inside = [i for i, (low, high) in enumerate(self.events) if low < end + 1 and start - 1 < high]
        first = inside[0] if inside else sum(high <= start for _, high in self.events)
        last = inside[-1] if inside else first - 1
        return range(max(first - 1, 0), min(last + 2, len(self.events)))


@dataclass(frozen=True)
class Damaged:
    """A damaged text, the events that may differ from the sound text's, and the first byte that does.

    `traceless`: what the text lost was enough to say what it was, so that no reader can know that it is gone.
    """

    text: bytes
    touched: range
    at: int
    traceless: bool = False


def target_of(text: bytes) -> Target:
    """Finds the events of a sound text with the standard decoder."""
    decoder, characters = json.JSONDecoder(), text.decode("latin-1")
    key = characters.find('"traceEvents"')
    at = characters.index("[", max(key, 0)) + 1
    events = []
    while (start := _skip(characters, at)) < len(characters) and characters[start] == "{":
        at = decoder.raw_decode(characters, start)[1]
        events.append((start, at))
    return Target(text, tuple(events))


def _skip(characters: str, at: int) -> int:
    while at < len(characters) and characters[at] in " \t\r\n,":
        at += 1
    return at


def damages(target: Target) -> st.SearchStrategy[Damaged]:
    """One damage, anywhere in the file."""
    return st.one_of(
        cuts(target), flips(target), deletions(target), insertions(target), rearrangements(target)
    )


def cuts(target: Target) -> st.SearchStrategy[Damaged]:
    """The file ends early."""
    return _places(target).map(
        lambda at: Damaged(
            target.text[:at], range(sum(e <= at for _, e in target.events), len(target.events)), at
        )
    )


def flips(target: Target) -> st.SearchStrategy[Damaged]:
    """One byte is another."""
    byte = st.one_of(st.sampled_from(FLIPS), st.binary(min_size=1, max_size=1))
    return st.builds(lambda at, new: _replaced(target, at, at + 1, new), _places(target), byte)


def deletions(target: Target) -> st.SearchStrategy[Damaged]:
    """A few bytes, or a few thousand, are gone."""
    length = st.one_of(st.integers(1, 20), st.integers(1, 5_000))
    return st.builds(lambda at, n: _deleted(target, at, at + n), _places(target), length)


def insertions(target: Target) -> st.SearchStrategy[Damaged]:
    """Something stands where nothing should."""
    return st.builds(
        lambda at, new: _replaced(target, at, at, new), _places(target), st.sampled_from(INSERTIONS)
    )


def mangled(text: bytes) -> st.SearchStrategy[bytes]:
    """The text after a handful of damages anywhere, of which nothing is known."""
    length = st.one_of(st.just(0), st.integers(1, 300))
    edit = st.tuples(st.integers(0, len(text)), length, st.sampled_from((b"", *INSERTIONS, *FLIPS)))
    return st.lists(edit, min_size=2, max_size=6).map(lambda edits: _edited(text, edits))


def _edited(text: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for at, length, new in edits:
        text = text[:at] + new + text[at + length :]
    return text


def rearrangements(target: Target) -> st.SearchStrategy[Damaged]:
    """An event twice, two events in the place of each other, or one within the arguments of another."""
    index = st.integers(0, len(target.events) - 1)
    return st.builds(
        lambda a, b, how: how(target, min(a, b), max(a, b)),
        index,
        index,
        st.sampled_from([_duplicated, _swapped, _nested]),
    )


def _places(target: Target) -> st.SearchStrategy[int]:
    """Any byte, and more often one near the edge of an event."""
    edges = [at for event in target.events for at in event]
    near = st.builds(lambda edge, by: edge + by, st.sampled_from(edges), st.integers(-3, 3))
    return st.one_of(st.integers(0, len(target.text) - 1), near.filter(lambda at: 0 <= at < len(target.text)))


def _replaced(target: Target, start: int, end: int, new: bytes) -> Damaged:
    text = target.text[:start] + new + target.text[end:]
    return Damaged(text, target.touched(start, min(end, len(target.text))), start)


def _deleted(target: Target, start: int, end: int) -> Damaged:
    damaged = _replaced(target, start, end, b"")
    return replace(damaged, traceless=end - start >= len('"kernel"'))


def _event(target: Target, index: int) -> bytes:
    start, end = target.events[index]
    return target.text[start:end]


def _duplicated(target: Target, first: int, last: int) -> Damaged:
    at = target.events[last][1]
    return _replaced(target, at, at, b", " + _event(target, first))


def _swapped(target: Target, first: int, last: int) -> Damaged:
    if first == last:
        return _duplicated(target, first, last)
    (low, low_end), (high, high_end) = target.events[first], target.events[last]
    text = target.text
    swapped = text[:low] + text[high:high_end] + text[low_end:high] + text[low:low_end] + text[high_end:]
    return Damaged(swapped, range(first, last + 1), low)


def _nested(target: Target, first: int, last: int) -> Damaged:
    start = target.events[last][0]
    inner = b'{"args": {"list": [%s, %s]}, ' % (_event(target, first), _event(target, first))
    return _replaced(target, start, start + 1, inner)
