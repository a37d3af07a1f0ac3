"""`perfkit layer2`: on which line of which thread the time goes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from parsers.errors import UsageError
from perfkit.cli import layer2_exports, options, output
from perfkit.cli.record import record_result


def layer2(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Captures: files, folders, or quoted glob patterns."),
    ] = None,
    raw: Annotated[
        list[str] | None,
        typer.Option("--raw", metavar="FILE", help="A capture (py-spy raw or speedscope); may be repeated."),
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(
            "--log",
            metavar="FILE",
            help="What py-spy printed, or a terminal's text (default: NAME.log, NAME.stdout… beside a file).",
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="How they were recorded: idle (with --idle), active (without) or gil; for some files alone "
            "active=PATTERN. May be repeated.",
        ),
    ] = None,
    thread: Annotated[
        str, typer.Option("--thread", metavar="NAME", help="The thread to judge, by its name or id.")
    ] = "",
    entry: Annotated[
        str, typer.Option("--entry", metavar="FUNCTION", help="The thread to judge, by its entry function.")
    ] = "",
    compare: Annotated[
        list[str] | None,
        typer.Option("--compare", metavar="FILE", help="Captures from before a change, recorded alike."),
    ] = None,
    later: Annotated[
        list[str] | None,
        typer.Option(
            "--later", metavar="FILE", help="Captures taken long after: is a cost one-off or steady?"
        ),
    ] = None,
    flame: layer2_exports.Flame = None,
    difference: layer2_exports.Difference = None,
    icicle: layer2_exports.Icicle = False,
    speedscope: layer2_exports.Speedscope = None,
    folded: layer2_exports.Folded = None,
    all_threads: layer2_exports.AllThreads = False,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """Which line of which thread waits or burns, of what share of its time, and how sure is that?

    Reads captures of `py-spy record --format raw` and speedscope, with or without --idle, and what py-spy
    printed beside them. Several captures of one service belong together.

    Example: perfkit layer2 --raw idle_1.raw --raw idle_2.raw --raw idle_3.raw --mode idle
    """
    from layers.layer2_stacks.choice import Choice
    from layers.layer2_stacks.judge import judge
    from perfkit.cli.layer2_files import read_captures
    from perfkit.cli.layer2_view import show_layer2

    names = [*(raw or []), *(files or [])]
    if not names:
        raise UsageError("name captures: perfkit layer2 --raw FILE (perfkit layer2 --help)")
    started = datetime.now(UTC)
    sets = (names, compare or [], later or [])
    read = read_captures(sets, log or [], mode or [])
    captures, before, after = read.sets
    wanted = layer2_exports.Exports(flame, difference, icicle, speedscope, folded, all_threads)
    wanted.check(read.artifacts, compares=bool(compare), as_json=json)
    choice = Choice(thread, entry)
    result = judge(captures, choice=choice, before=before, later=after, unread=read.lost)
    if no_record and not wanted.any:
        return output.finish(result, as_json=json, show=show_layer2)
    drawn = layer2_exports.draw(captures, before, choice, result, wanted)
    try:
        if not no_record:
            result = layer2_exports.kept_pictures(result, drawn, investigation)
            record_result(investigation, result, started, read.artifacts)
        layer2_exports.write_exports(wanted, drawn)
    finally:  # what was found is shown even where it cannot be kept
        code = output.finish(result, as_json=json, show=show_layer2)
        layer2_exports.show_icicles(wanted, drawn)
    return code
