"""Make almost-JSON into JSON, for the few events of a trace that are not.

Idea: cut the text into tokens (strings, comments, bare words, punctuation) and repair each by itself:
control characters and unknown escapes inside strings, comments and trailing commas between them, bare words
that are no JSON (NaN, inf, N/A) become null. A quote that is not escaped inside a string is not repaired:
nothing says where that string ends. Slow (two passes of a regular expression), linear in the text whatever
it holds; meant for single events.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    rb'(?P<string>"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))'
    rb"|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    rb"|(?P<word>(?:(?!//|/\*)[^\s\[\]{}:,\"])+)"
    rb"|(?P<close>,\s*(?=[\]}]|$))",
    re.DOTALL,
)
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$")
_ESCAPE = re.compile(rb'\\(?:(?P<known>["\\/bfnrt]|u[0-9a-fA-F]{4})|(?P<unknown>.?))', re.DOTALL)
_UNUSUAL = re.compile(rb"[\x00-\x1f\\\x80-\xff]")
_CONTROL = re.compile(rb"[\x00-\x1f]")


def repair_json(text: bytes) -> bytes:
    """The text with everything repaired that can be, one token at a time; valid JSON is returned
    unchanged.
    """
    without_comments = _TOKEN.sub(_repair_token, text)
    return _TOKEN.sub(_drop_trailing_comma, without_comments)


def _repair_token(match: re.Match[bytes]) -> bytes:
    token = match.group()
    if match.lastgroup == "string":
        return _repair_string(token)
    if match.lastgroup == "comment":
        return b" "
    if match.lastgroup == "word":
        known = token in (b"true", b"false", b"null") or _NUMBER.match(token)
        return token if known else b"null"
    return token


def _drop_trailing_comma(match: re.Match[bytes]) -> bytes:
    return b"" if match.lastgroup == "close" else match.group()


def _repair_string(token: bytes) -> bytes:
    if _UNUSUAL.search(token) is None:
        return token
    token = _ESCAPE.sub(lambda m: m.group() if m["known"] else b"\\\\" + m["unknown"], token)
    token = _CONTROL.sub(lambda m: b"\\u%04x" % m.group()[0], token)
    return token.decode("utf-8", "replace").encode()
