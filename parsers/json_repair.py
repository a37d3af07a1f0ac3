"""Make almost-JSON into JSON, for the few events of a trace that are not.

Idea: cut the text into tokens (strings, comments, bare words, punctuation) and repair each by itself:
control characters and unknown escapes inside strings, comments and trailing commas between them, bare words
that are no JSON (NaN, inf, N/A) become null. A quote that is not escaped inside a string is not repaired:
nothing says where that string ends. Slow (two passes of a regular expression), linear in the text whatever
it holds; meant for single events.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    rb'(?P<string>"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))'
    rb"|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    rb"|(?P<word>(?:(?!//|/\*)[^\s\[\]{}:,\"])+)"
    rb"|(?P<close>,\s*(?=[\]}]|$))",
    re.DOTALL,
)
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$")
_ESCAPE = re.compile(rb'\\(?:(?P<known>["\\/bfnrt]|u[0-9a-fA-F]{4})|(?P<unknown>.?))', re.DOTALL)
_NO_NUMBER = re.compile(rb"[-+]?(?:nan|inf|infinity)|n/a|none|undefined", re.IGNORECASE)
"""Bare words that say in plain text what null says."""
_UNUSUAL = re.compile(rb"[\x00-\x1f\\\x80-\xff]")
_CONTROL = re.compile(rb"[\x00-\x1f]")
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(slots=True)
class Repair:
    """The repaired text, and how many bytes of the old one say nothing any more: words that became null,
    control characters, bytes that are no UTF-8. `broken_words`: some are words that say nothing in plain text
    either, as the halves of two numbers do.
    """

    text: bytes
    lost_bytes: int = 0
    broken_words: bool = False


def repair_json(text: bytes) -> Repair:
    """The text with everything repaired that can be, one token at a time; valid JSON is returned
    unchanged.
    """
    repair = Repair(text)
    without_comments = _TOKEN.sub(lambda match: _repair_token(match, repair), text)
    repair.text = _TOKEN.sub(_drop_trailing_comma, without_comments)
    return repair


def _repair_token(match: re.Match[bytes], repair: Repair) -> bytes:
    token = match.group()
    if match.lastgroup == "string":
        return _repair_string(token, repair)
    if match.lastgroup == "comment":
        return b" "
    if match.lastgroup != "word" or token in (b"true", b"false", b"null") or _NUMBER.match(token):
        return token
    if not _NO_NUMBER.fullmatch(token):
        repair.lost_bytes += len(token)
        repair.broken_words = True
    return b"null"


def _drop_trailing_comma(match: re.Match[bytes]) -> bytes:
    return b"" if match.lastgroup == "close" else match.group()


def _repair_string(token: bytes, repair: Repair) -> bytes:
    if _UNUSUAL.search(token) is None:
        return token
    readable = token.decode(errors="ignore").encode()
    repair.lost_bytes += len(_BINARY.findall(token)) + len(token) - len(readable)
    token = _ESCAPE.sub(lambda m: m.group() if m["known"] else b"\\\\" + m["unknown"], token)
    token = _CONTROL.sub(lambda m: b"\\u%04x" % m.group()[0], token)
    return token.decode("utf-8", "replace").encode()
