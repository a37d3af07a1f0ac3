"""`perfkit layer2`: on which line of which thread the time goes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from layers.collectors.stacks.rates import REPEATS, SECONDS
from perfkit.cli import layer2_exports, options, output
from perfkit.cli import layer2_live as live
from perfkit.cli import sweep_options as ask
from perfkit.cli.layer2_files import Given, read_and_judge
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
    suspect: Annotated[
        list[str] | None,
        typer.Option(
            "--suspect",
            metavar="PLACE",
            help="A FILE.py, FILE.py:LINE or function: the share of time below it. May be repeated.",
        ),
    ] = None,
    flame: layer2_exports.Flame = None,
    difference: layer2_exports.Difference = None,
    icicle: layer2_exports.Icicle = False,
    speedscope: layer2_exports.Speedscope = None,
    folded: layer2_exports.Folded = None,
    all_threads: layer2_exports.AllThreads = False,
    pid: live.Pid = None,
    port: live.Port = None,
    server: live.Server = None,
    launch: live.Launch = None,
    load: live.Load = None,
    endpoint: live.Endpoint = None,
    model: live.Model = None,
    data: live.Data = None,
    header: live.Header = None,
    rate: live.Rate = None,
    seconds: live.Seconds = SECONDS,
    repeats: live.Repeats = REPEATS,
    active_repeats: live.ActiveRepeats = None,
    gil: live.Gil = True,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """Which line of which thread waits or burns, of what share of its time, and how sure is that?

    Records a service under load with py-spy (--server, --port, --pid or --launch): it finds the process that
    schedules, and takes captures with --idle and without in turn. Or reads captures that exist, of
    `py-spy record --format raw` and speedscope, and what py-spy printed beside them. Several captures of one
    service belong together.

    Example: perfkit layer2 --server http://127.0.0.1:30000 --load 16

    Example: perfkit layer2 --raw idle_1.raw --raw idle_2.raw --raw idle_3.raw --mode idle
    """
    from layers.layer2_stacks.choice import Choice
    from perfkit.cli.joining import with_join
    from perfkit.cli.layer2_view import show_layer2

    wanted = live.Wanted(
        pid=pid,
        port=port,
        server=server,
        launch=launch,
        load=load,
        endpoint=endpoint,
        model=model,
        data=data,
        headers=ask.pairs("--header", header),
        rate_hz=rate,
        seconds=seconds,
        repeats=repeats,
        active_repeats=active_repeats,
        gil=gil,
    )
    exports = layer2_exports.Exports(flame, difference, icicle, speedscope, folded, all_threads)
    given = Given([*(raw or []), *(files or [])], compare or [], later or [], log or [], mode or [])
    choice, started = Choice(thread, entry), datetime.now(UTC)
    exports.check((), compares=bool(compare), as_json=json)
    if wanted.given:
        live.refuse_with_files(given.all)
        judged = live.record_and_judge(wanted, choice, investigation, keep=not no_record)
    else:
        wanted.refuse_alone()
        judged = read_and_judge(given, choice, exports)
    result = with_join(judged.result, investigation, started)
    result = layer2_exports.suspected(result, judged.captures, choice, suspect or [])
    if no_record and not exports.any:
        return output.finish(result, as_json=json, show=show_layer2)
    drawn = layer2_exports.draw(judged.captures, judged.before, choice, result, exports)
    try:
        if not no_record:
            result = layer2_exports.kept_pictures(result, drawn, investigation)
            record_result(investigation, result, started, judged.artifacts)
        layer2_exports.write_exports(exports, drawn)
    finally:  # what was found is shown even where it cannot be kept
        code = output.finish(result, as_json=json, show=show_layer2)
        layer2_exports.show_icicles(exports, drawn)
    return code
