"""`--a x y z` as `--a x --a y --a z`: a shell expands `--a runs/a*.json` to that, and the names belong
together."""

from __future__ import annotations

from collections.abc import Collection, Sequence

END_OF_OPTIONS = "--"


def spread_out(arguments: Sequence[str], greedy: Collection[str]) -> list[str]:
    """The arguments with each greedy option repeated before every further value of it."""
    made: list[str] = []
    option, values = "", 0
    for place, argument in enumerate(arguments):
        if argument == END_OF_OPTIONS:
            return [*made, *arguments[place:]]
        if argument.startswith("-"):
            option, values = (argument if argument in greedy else ""), 0
            made.append(argument)
            continue
        made += [option, argument] if option and values else [argument]
        values += 1
    return made
