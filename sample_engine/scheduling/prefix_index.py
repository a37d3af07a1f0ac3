"""What a prefix cache would find: how much of a sequence of keys begins like one that was seen before.

Engines keep keys and values of finished requests in a radix tree and look new ones up by their ids; this one
keeps none, and only counts what it could have kept. A sequence is a chain of hashes, each of the one before
and the next key, so that a prefix is known by its last hash. The least recently used are forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import takewhile


class PrefixIndex:
    """Of at most `capacity` prefixes (a sequence of n keys has n). Used by one thread."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._seen: OrderedDict[int, None] = OrderedDict()

    def known(self, keys: Sequence[int]) -> int:
        """How many leading keys were seen, in this order, from the begin of a sequence."""
        found = list(takewhile(self._seen.__contains__, _chain(keys)))
        self._touch(found)
        return len(found)

    def add(self, keys: Sequence[int]) -> None:
        """Remember a sequence and all of its prefixes."""
        links = list(_chain(keys))
        self._seen |= dict.fromkeys(links)
        self._touch(links)
        while len(self._seen) > self._capacity:
            self._seen.popitem(last=False)

    def _touch(self, links: Sequence[int]) -> None:
        """The shortest prefix last, for without it the longer ones are never found."""
        for link in reversed(links):
            self._seen.move_to_end(link)


def _chain(keys: Sequence[int]) -> Iterator[int]:
    link = 0
    for key in keys:
        link = hash((link, key))
        yield link
