"""`perfkit completion SHELL`: a script that lets the shell complete commands, options and file names.

The script holds all names, so that completing starts no program: print it anew after an update. Values that
are one of a few are completed too; everything else is a file name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from inspect import unwrap
from typing import Annotated, Any, get_args, get_type_hints

import typer

from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from perfkit.cli import options, output


class Shell(StrEnum):
    """Shells that a script is written for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@dataclass(frozen=True, slots=True)
class Option:
    """Names of one option, what it is for, and the values that it is one of (empty: any)."""

    names: tuple[str, ...]
    help: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A command and what may follow it; sub-commands come with their options."""

    name: str
    help: str
    options: tuple[Option, ...]
    subcommands: tuple[Known, ...] = ()


HOW = {
    Shell.BASH: 'eval "$(perfkit completion bash)"',
    Shell.ZSH: 'eval "$(perfkit completion zsh)"',
    Shell.FISH: "perfkit completion fish | source",
}
"""The line for ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish."""

BASH = """
_perfkit() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{commands} --help --version"
  else
    case "${{COMP_WORDS[1]}} $before" in
{values}
    *)
      case "${{COMP_WORDS[1]}} $COMP_CWORD $word" in
{subcommands}
      *" -"*)
        case "${{COMP_WORDS[1]}}" in
{options}
        esac ;;
      esac ;;
    esac
  fi
  if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$word")); fi
}}
complete -o default -o bashdefault -F _perfkit perfkit
"""
ZSH_HEAD = "autoload -Uz compinit bashcompinit\n(( $+functions[compdef] )) || compinit\nbashcompinit\n"


def completion(
    shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.", metavar="SHELL")],
    json: options.Json = False,
) -> int:
    """Print a script that completes commands, options and file names in your shell.

    For ~/.bashrc or ~/.zshrc: eval "$(perfkit completion bash)" (or zsh); for fish's config.fish: perfkit
    completion fish | source. To start faster, write it to a file once and source that.

    Example: perfkit completion bash > ~/.perfkit-completion
    """
    text = script(shell, known_commands())
    verdict = Verdict("printed", False, HOW[shell], Exit.OK)
    result = Result("completion", verdict, sections={"shell": str(shell), "script": text})
    return output.finish(result, as_json=json, show=lambda _: print(text, end=""))


def script(shell: Shell, commands: Sequence[Known]) -> str:
    """The whole script."""
    if shell is Shell.FISH:
        return "".join(f"{line}\n" for line in _fish(commands))
    return (ZSH_HEAD if shell is Shell.ZSH else "") + _bash(commands)


def known_commands() -> list[Known]:
    """Every command with its options, as the program itself has them."""
    from perfkit.cli.app import build_group
    from perfkit.cli.registry import COMMANDS

    return [_known(build_group(command.name).commands[command.name]) for command in COMMANDS]


def _known(command: Any) -> Known:
    told = (command.help or "").strip().splitlines()
    subcommands = tuple(_known(sub) for sub in getattr(command, "commands", {}).values())
    return Known(command.name, told[0] if told else "", (*_options(command), HELP), subcommands)


HELP = Option(("-h", "--help"), "Show what it does and takes.", ())


def _options(command: Any) -> Iterator[Option]:
    hints = get_type_hints(unwrap(command.callback)) if command.callback else {}
    for parameter in command.params:
        names = (*parameter.opts, *parameter.secondary_opts)
        if names[0].startswith("-") and not getattr(parameter, "hidden", False):
            help_text = getattr(parameter, "help", "") or ""
            yield Option(names, help_text, tuple(_values(hints.get(parameter.name))))


def _values(hint: Any) -> Iterator[str]:
    """The values of an enumeration, also of a list of it or of one that may be left out."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        yield from (str(member.value) for member in hint)
    for part in get_args(hint):
        yield from _values(part)


def _all_options(command: Known) -> list[Option]:
    return [*command.options, *(option for sub in command.subcommands for option in _all_options(sub))]


def _bash(commands: Sequence[Known]) -> str:
    with_values = ((c.name, o) for c in commands for o in _all_options(c) if o.values)
    names = {c.name: dict.fromkeys(n for o in _all_options(c) for n in o.names) for c in commands}
    groups = ((f'"{c.name} 2 "[!-]*|"{c.name} 2 "', [sub.name for sub in c.subcommands]) for c in commands)
    return BASH.lstrip("\n").format(
        commands=" ".join(names),
        values=_cases(4, ((_places(name, option), option.values) for name, option in with_values)),
        subcommands=_cases(6, ((place, subs) for place, subs in groups if subs)),
        options=_cases(8, names.items()),
    )


def _places(command: str, option: Option) -> str:
    """The pattern of the places behind an option of a command."""
    return "|".join(f'"{command} {name}"' for name in option.names)


def _cases(indent: int, cases: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Lines of a `case`: the words behind each pattern."""
    return "\n".join(f'{" " * indent}{pattern}) words="{" ".join(words)}" ;;' for pattern, words in cases)


def _fish(commands: Sequence[Known]) -> Iterator[str]:
    for command in commands:
        yield f"complete -c perfkit -n __fish_use_subcommand -f -a {command.name} -d {_quoted(command.help)}"
        inside = f"-n '__fish_seen_subcommand_from {command.name}'"
        for sub in command.subcommands:
            yield f"complete -c perfkit {inside} -f -a {sub.name} -d {_quoted(sub.help)}"
        for option in _all_options(command):
            long = " ".join(f"-{'l' if n.startswith('--') else 's'} {n.lstrip('-')}" for n in option.names)
            values = f" -x -a {_quoted(' '.join(option.values))}" if option.values else ""
            yield f"complete -c perfkit {inside} {long} -d {_quoted(option.help)}{values}"


def _quoted(text: str) -> str:
    """One line between single quotes, as fish reads them."""
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
