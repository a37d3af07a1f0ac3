"""The program: finds the command, runs it, and turns whatever goes wrong into one line and an exit code.

Only the command that is called gets imported; the others stand in the help with their line of the registry.
A `PerfkitError` is for the user to act on: its message, its exit code. Anything else is a fault of perfkit:
the traceback goes to a log file, whose name is printed, and the exit code is 70.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Annotated, NamedTuple

import typer

from layers.evidence.result import Result, to_document
from layers.evidence.secrets import masked_addresses
from layers.evidence.verdict import Exit, Verdict
from parsers.errors import PerfkitError, UsageError
from perfkit import __version__
from perfkit.cli import output
from perfkit.cli.messages import complain, report_fault
from perfkit.cli.registry import BY_NAME, COMMANDS, Command
from perfkit.cli.spread import spread_out

PROGRAM = "perfkit"

EXIT_PIPE_CLOSED = 141
"""128 + SIGPIPE: what a shell reports of any program whose reader went away."""

EXIT_CANNOT_WRITE = Exit.INVALID

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)

FAULT = "fault"
WORDS: dict[int, str] = {Exit.USAGE: "error", Exit.INVALID: "void", Exit.INTERRUPTED: "interrupted"}
"""What --json calls the verdict of a command that came to none."""

ABOUT = """Where does the time of a GPU inference service go, and how do you know?

Walks five layers in order of what a minute of work can rule out, refuses to call a measurement a result when
it measured nothing, and writes a report that can be checked number by number.

Exit codes: 0 a verdict was reached, 1 a gate failed, 2 usage or unreadable input, 3 no conclusion, 4 the
measurement is invalid, 70 a fault of perfkit, 130 interrupted (Ctrl-C or SIGTERM), 141 nobody reads the
output."""


def main(arguments: Sequence[str]) -> int:
    """Run `perfkit ARGUMENTS` and return the exit code; only SystemExit leaves here as an exception."""
    _never_fail_on_encoding()
    output.printed_json = False
    code, why = _guarded(lambda: _run(arguments), arguments)
    if why and "--json" in _own(arguments) and not output.printed_json:
        _guarded(lambda: _print_failure(code, why, arguments), arguments)
    return _guarded(_flush, arguments).code or code


class Ended(NamedTuple):
    """How a step of the program ended; `why` in one line where something went wrong."""

    code: int
    why: str = ""


def _flush() -> int:
    sys.stdout.flush()
    return Exit.OK


def _guarded(step: Callable[[], int], arguments: Sequence[str]) -> Ended:
    """How one step of the program ended, whatever happens in it."""
    try:
        return Ended(step())
    except PerfkitError as error:
        return _complained(error.exit_code, str(error))
    except typer.TyperException as error:
        return _complained(Exit.USAGE, f"{error.format_message()} (see: {_help_command(arguments)})")
    except (KeyboardInterrupt, typer.Abort):
        return _complained(Exit.INTERRUPTED, "interrupted; what was recorded stays")
    except BrokenPipeError:
        _discard_stdout()
        return Ended(EXIT_PIPE_CLOSED)
    except Exception as fault:
        if path := _refused(fault):
            return _complained(Exit.USAGE, f"{path}: Permission denied: check it and the folders above it")
        return Ended(_unexpected(fault), f"{type(fault).__name__}: {fault}")


def _refused(fault: Exception) -> str:
    """The file that this user may not look into; "" where it was something else. Whoever reads /proc handles
    that itself."""
    path = str(fault.filename or "") if isinstance(fault, PermissionError) else ""
    return "" if path.startswith("/proc/") else path


def _complained(code: int, why: str) -> Ended:
    complain(why)
    return Ended(code, why)


def _print_failure(code: int, why: str, arguments: Sequence[str]) -> int:
    """The document of a command that came to no result of its own."""
    verdict = Verdict(WORDS.get(code, FAULT), False, masked_addresses(why), Exit(code))
    output.print_json(to_document(Result(_command_name(arguments), verdict)))
    return code


def build_group(name: str) -> typer.core.TyperGroup:
    """The whole command line with the command `name` imported and the others as their help line alone."""
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=ABOUT)(_root)
    for command in COMMANDS:
        _add(app, command, called=command.name == name)
    return typer.main.get_group(app)


def _run(arguments: Sequence[str]) -> int:
    _refuse_empty(arguments)
    name = _command_name(arguments)
    group = build_group(name)
    spread = spread_out(arguments, BY_NAME[name].greedy) if name in BY_NAME else list(arguments)
    try:
        with group.make_context(PROGRAM, spread or ["--help"]) as context:
            code = group.invoke(context)
    except typer.Exit as left:
        code = left.exit_code
    return int(code or Exit.OK) if arguments else Exit.USAGE


def _refuse_empty(arguments: Sequence[str]) -> None:
    """No option of perfkit has an empty value: it comes of a shell variable that is not set."""
    for place, argument in enumerate(_own(arguments), 1):
        if not argument or (argument.startswith("--") and argument.endswith("=")):
            raise UsageError(f"argument {place} is empty ({argument!r}): is a shell variable not set?")


def _own(arguments: Sequence[str]) -> list[str]:
    """The arguments that are perfkit's: what stands after -- is another program's."""
    return list(takewhile(lambda argument: argument != "--", arguments))


def _add(app: typer.Typer, command: Command, *, called: bool) -> None:
    if not called:
        app.command(command.name, help=command.help)(_not_imported)
        return
    loaded = command.load()
    if isinstance(loaded, typer.Typer):
        app.add_typer(loaded, name=command.name)
    else:
        app.command(command.name)(loaded)


def _not_imported() -> None:
    """Stands in the help for a command that was not called."""
    raise AssertionError("a command that was called must have been imported")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options that stand before the command."""


def _command_name(arguments: Sequence[str]) -> str:
    """The command that is called: the first argument that is no option (none before it takes a value)."""
    return next((a for a in arguments if not a.startswith("-")), "")


def _help_command(arguments: Sequence[str]) -> str:
    name = _command_name(arguments)
    return f"{PROGRAM} {name} --help" if name in BY_NAME else f"{PROGRAM} --help"


def _unexpected(fault: Exception) -> int:
    if isinstance(fault, OSError) and fault.errno in DISK_FULL:
        complain(f"cannot write the output: {fault}")
        _discard_stdout()
        return EXIT_CANNOT_WRITE
    report_fault(fault)
    return Exit.INTERNAL


def _never_fail_on_encoding() -> None:
    """A terminal that cannot show a character gets its escape instead of a UnicodeEncodeError."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter's own flush at exit cannot fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
