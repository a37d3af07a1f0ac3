"""A setting's text or TOML value as the type that its field has."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from sample_engine.config.limits import Limits
from sample_engine.config.settings import Settings
from sample_engine.config.switches import Switches

_WORDS = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}


class SettingsError(ValueError):
    """A setting that is unknown, or a value that it cannot take; says what it can."""


GROUPS: dict[str, type] = {"switches": Switches, "limits": Limits}
"""Fields of Settings whose own fields are settings."""


def _types() -> dict[str, Any]:
    own = {name: kind for name, kind in get_type_hints(Settings).items() if name not in GROUPS}
    for group in GROUPS.values():
        own |= get_type_hints(group)
    return own


TYPES = _types()
"""Every setting by its flat name."""
GROUP_OF = {one.name: name for name, group in GROUPS.items() for one in fields(group)}


def value_of(name: str, given: object) -> object:
    """What the setting becomes; raises SettingsError."""
    if name not in TYPES:
        raise SettingsError(f"no setting is called {name!r}; there are {', '.join(sorted(TYPES))}")
    kind = TYPES[name]
    try:
        return _choice(kind, given) if get_origin(kind) is Literal else _plain(kind, given)
    except (KeyError, ValueError):
        raise SettingsError(f"{name} cannot be {given!r}: {_allowed(kind)}") from None


def _choice(kind: Any, given: object) -> object:
    if given not in get_args(kind):
        raise ValueError
    return given


def _plain(kind: Any, given: object) -> object:
    """Numbers are never negative; a yes-or-no is a word or a TOML boolean."""
    if kind is bool:
        return given if isinstance(given, bool) else _WORDS[str(given).lower()]
    number = kind(str(given))
    if isinstance(given, bool) or not 0 <= number < float("inf"):
        raise ValueError
    return number


def _allowed(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(get_args(kind))
    return {bool: "on or off", int: "a whole number, not negative", float: "a number, not negative"}[kind]
