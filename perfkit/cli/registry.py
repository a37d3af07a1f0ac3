"""The table of commands: what `perfkit --help` lists, and where each command lives.

A command is one module `perfkit/cli/<module>.py` with one typer-annotated function of the same name (or a
`typer.Typer` of that name, for a command with sub-commands). Nothing is imported from it before it is
called, so a heavy command costs the others nothing. A new command is one line here and one file.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class Command:
    """One command; `module` is needed only where the name is no Python identifier or a keyword. `greedy`
    options take every argument up to the next option, as a shell expands a pattern behind them."""

    name: str
    help: str
    module: str = ""
    greedy: tuple[str, ...] = ()

    def load(self) -> Any:
        """Import the command's module and return its function (or Typer)."""
        module = self.module or self.name
        return getattr(import_module(f"perfkit.cli.{module}"), module)


BESIDE_ARMS = ("--ledger", "--stacks-a", "--stacks-b", "--trace-a", "--trace-b")
FILES_OF_ARMS = ("--a", "--b", "--aa", "--log-a", "--log-b", *BESIDE_ARMS)
CAPTURES = ("--raw", "--compare", "--later")
COMMANDS = (
    Command("investigate", "Walk all layers in order, decide after each, report."),
    Command("doctor", "Which tools and rights are here; what a missing one costs."),
    Command("preflight", "Which GPU, which versions, whose processes: look first."),
    Command("layer1", "Is the GPU busy, and where does its idle time lie?"),
    Command("stages", "Which stage holds the requests, at work or waiting?"),
    Command("layer2", "Which line of which thread waits or burns?", greedy=CAPTURES),
    Command("nsys", "Record a program under Nsight Systems and read the recording."),
    Command("run", "Run a command with ranges around functions of your choice."),
    Command("import", "Judge what another load tool measured, as a sweep.", module="import_results"),
    Command("roofline", "Lower bounds for decode and prefill on a given GPU."),
    Command("sweep", "How do throughput, latency and accuracy go with load?"),
    Command("layer3", "The same as sweep.", "sweep"),
    Command("ab", "Does one variable change what a server does?", greedy=FILES_OF_ARMS),
    Command("layer4", "The same as ab.", "ab", greedy=FILES_OF_ARMS),
    Command("regress", "Are the answers still the same after a change?"),
    Command("layer5", "The same as regress.", "regress"),
    Command("engine", "Start the bundled speech engine, to try perfkit on."),
    Command("report", "Write the findings report of an investigation."),
    Command("export", "Write its tables as CSV or Parquet."),
    Command("explain", "Explain a guard or a symptom: what it means, what to do."),
    Command("guards", "List every guard that perfkit checks."),
    Command("methodology", "The method in words, with every trap it knows."),
    Command("pitfall", "Write down a trap that you met, for the methodology."),
    Command("completion", "Print a script that completes in bash, zsh or fish."),
)

BY_NAME = {command.name: command for command in COMMANDS}
