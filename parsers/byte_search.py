"""All places of a few literals in a text, at 5 to 25 GB/s.

The searching is the Rust library's: vector instructions look for the rarest bytes of a literal, or for the
first bytes of several at once. The latter needs first bytes that differ and are rare. A quote is neither,
so each literal that begins with one is searched for by itself, and all others in one pass.
"""

from __future__ import annotations

from functools import lru_cache

from ahocorasick_rs import BytesAhoCorasick

QUOTE = b'"'


def find_all(text: bytes, literals: tuple[bytes, ...]) -> list[int]:
    """Offsets of the occurrences of any of the literals, ascending. Of those that overlap at least one is
    found.
    """
    found = [
        start for searcher in _searchers(literals) for _, start, _ in searcher.find_matches_as_indexes(text)
    ]
    found.sort()
    return found


@lru_cache(maxsize=8)
def _searchers(literals: tuple[bytes, ...]) -> list[BytesAhoCorasick]:
    alone = [[literal] for literal in literals if literal.startswith(QUOTE)]
    together = [literal for literal in literals if not literal.startswith(QUOTE)]
    return [BytesAhoCorasick(group) for group in (*alone, together) if group]
