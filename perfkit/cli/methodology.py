"""`perfkit methodology`: the method as a document, made from what the program checks."""

from __future__ import annotations

import msgspec

from layers.catalogue import CATALOGUE, SYMPTOMS, entry, symptom_entry
from layers.evidence.pitfalls import default_file, read
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from parsers.loss import Loss
from perfkit import __version__
from perfkit.cli import options, output
from perfkit.cli.messages import say
from perfkit.cli.pitfall import PitfallFile
from reports.methodology import contents, edition, render


def methodology(file: PitfallFile = None, json: options.Json = False) -> int:
    """Print the method as one Markdown document: rules, layers, what n is enough, every guard and symptom,
    and the pitfalls that were added here.

    It names no investigation. The edition changes with what perfkit checks, and only then.

    Example: perfkit methodology > methodology.md
    """
    losses: list[Loss] = []
    where = file or default_file()
    pitfalls = read(where, losses)
    for loss in losses:
        say(f"{where}: {loss.what}")
    because = contents(CATALOGUE, SYMPTOMS, pitfalls)
    result = Result(
        "methodology",
        Verdict("listed", False, because, Exit.OK),
        sections={
            "edition": edition(CATALOGUE, SYMPTOMS),
            "catalogue": [*map(entry, CATALOGUE)],
            "symptoms": [*map(symptom_entry, SYMPTOMS)],
            "pitfalls": msgspec.to_builtins(pitfalls),
        },
    )
    text = render(CATALOGUE, SYMPTOMS, pitfalls, __version__)
    return output.finish(result, as_json=json, show=lambda _: print(text, end=""))
