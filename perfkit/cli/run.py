"""`perfkit run`: a command with ranges around some of its functions, without touching its code."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layers.evidence.result import Result
from perfkit.cli import options, output
from perfkit.cli.messages import say
from perfkit.cli.record import record_result
from perfkit.cli.result_view import show_checks, show_headline

if TYPE_CHECKING:
    from layers.collectors.tags.command import Interpreter
    from layers.collectors.tags.plan import Tag
    from layers.collectors.tags.tagging import CheckedTags

REPORT = "tagged-calls.jsonl"


def run(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="What to run, after --.")],
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="NAME=MODULE:FUNCTION", help="A function to tag; may be repeated."),
    ] = None,
    batch: Annotated[
        list[str] | None,
        typer.Option("--batch", metavar="[TAG=]EXPR", help="Batch size, from the function's parameters."),
    ] = None,
    python: Annotated[
        str | None, typer.Option("--python", metavar="PATH", help="The command's Python, where it hides it.")
    ] = None,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """Run a command with ranges of torch.profiler and NVTX around some of its functions.

    Forked and spawned children are tagged too. Names are checked before the command starts.

    Example: perfkit run --tag forward=engine.model:Model.forward --batch 'len(batch)' -- python serve.py
    """
    from layers.collectors.tags.plan import plan_tags
    from layers.collectors.tags.tagging import run_tagged
    from layers.layer1_gpu_busy.judge_tags import TagFacts, judge_tags

    started = datetime.now(UTC)
    tags = plan_tags(tag or (), batch or ())
    checked = _check(tags, _interpreter(command, python))
    with ExitStack() as stack:
        report = _report(stack, investigation, keep=not no_record)
        ran = run_tagged(command, tags, report, stdout=sys.stderr if json else None)
    result = judge_tags(TagFacts(tuple(tags), ran, checked), command)
    if not no_record:
        record_result(investigation, result, started)
    return output.finish(result, as_json=json, show=_show)


def _interpreter(command: Sequence[str], python: str | None) -> Interpreter | None:
    from layers.collectors.tags.command import Interpreter, find_interpreter

    found = find_interpreter(command)
    if python is None:
        return found
    return Interpreter(python, found.first_folder if found else str(Path.cwd()))


def _check(tags: Sequence[Tag], interpreter: Interpreter | None) -> CheckedTags | None:
    from layers.collectors.tags.tagging import check_tags
    from layers.layer1_gpu_busy.judge_tags import cost_text

    if interpreter is None:
        say("the command's Python is not known (--python names it): names are checked when they are imported")
        return None
    checked = check_tags(tags, interpreter)
    say(f"tags checked with {interpreter.path}; a range costs {cost_text(checked)}")
    return checked


def _report(stack: ExitStack, investigation: Path, keep: bool) -> Path:
    if not keep:
        return Path(stack.enter_context(tempfile.TemporaryDirectory())) / REPORT
    from layers.evidence.store import Investigation

    with Investigation.open(investigation) as opened:
        return opened.new_artifact(REPORT)


def _show(result: Result) -> None:
    output.line()
    show_headline(result)
    rows = [
        [tag["name"], tag["target"], str(one["pid"]), f"{one['calls_at_least']:,}", one["ranges"]]
        for tag in result.sections["tags"]
        for one in tag["processes"]
    ]
    if rows:
        output.line()
        output.show(
            output.table(["tag", "function", "process", "calls at least", "ranges"], rows, right=[2, 3])
        )
    show_checks(result.guards)
