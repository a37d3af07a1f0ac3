"""Which options of a command were given beside those that go together: none of them is dropped in silence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from inspect import signature

from parsers.errors import UsageError


def given_beside(
    command: Callable[..., int], options: Mapping[str, object], allowed: Collection[str]
) -> dict[str, bool]:
    """Every option of a command that is not among the allowed ones, by its name, and whether it was given.

    `options` are the command's arguments by the names of its parameters, as `allowed` are.
    """
    others = [one for one in signature(command).parameters.values() if one.name not in allowed]
    return {f"--{one.name.rstrip('_').replace('_', '-')}": options[one.name] != one.default for one in others}


def refuse_beside(
    command: Callable[..., int], options: Mapping[str, object], allowed: Collection[str], why: str
) -> None:
    """UsageError, which begins with `why`, where another option than the allowed ones was given."""
    if named := [name for name, was in given_beside(command, options, allowed).items() if was]:
        raise UsageError(f"{why}; leave out {', '.join(named)}")
