"""What a command of `py-spy record` switches on: of all its options those that change what a capture holds.

Two captures compare only where these are the same, and the mode of one is told by two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layers.collectors.stacks.recording import Mode

IDLE, GIL, THREADS, FULL_NAMES = "--idle", "--gil", "--threads", "--full-filenames"
SWITCHES = frozenset(
    {IDLE, GIL, THREADS, FULL_NAMES, "--native", "--nonblocking", "--subprocesses"}
    | {"--function", "--nolineno"}
)
LETTERS = {"i": IDLE, "g": GIL, "t": THREADS, "n": "--native", "s": "--subprocesses", "F": "--function"}
TAKE_A_VALUE = "pofdr"
"""-p PID, -o FILE, -f FORMAT, -d SECONDS, -r RATE. Source: `py-spy record --help`, 0.3.14 to 0.4.3."""


def switches(arguments: Sequence[str]) -> frozenset[str]:
    """The long names of what is switched on; a program after `--` is not looked at."""
    return frozenset(_switches(arguments))


def _switches(arguments: Sequence[str]) -> Iterator[str]:
    for argument in arguments:
        if argument == "--":
            return
        if argument in SWITCHES:
            yield argument
        elif argument.startswith("-") and not argument.startswith("--"):
            yield from _letters(argument[1:])


def _letters(letters: str) -> Iterator[str]:
    """`its` as `-i -t -s`; what follows a letter that takes a value is that value."""
    for letter in letters:
        if letter in TAKE_A_VALUE:
            return
        if letter in LETTERS:
            yield LETTERS[letter]


def mode_of_command(arguments: Sequence[str]) -> Mode:
    """Which ticks the command keeps; with --gil and --idle it is the interpreter's lock that decides."""
    on = switches(arguments)
    return Mode.GIL if GIL in on else Mode.IDLE if IDLE in on else Mode.ACTIVE
