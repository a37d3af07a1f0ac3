"""`perfkit doctor`: which tools and rights this machine has, and what each missing one costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.evidence.wording import counted
from perfkit.cli import options, output
from perfkit.cli.result_view import show_headline

if TYPE_CHECKING:
    from layers.preflight.doctor import Check

COMMAND = "doctor"


def doctor(
    server: Annotated[
        str | None, typer.Option("--server", metavar="URL", help="Are its processes to be looked into?")
    ] = None,
    pid: Annotated[
        list[int] | None, typer.Option("--pid", metavar="N", help="The same for a process; may be repeated.")
    ] = None,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
) -> int:
    """Which tools and rights this machine has, and what each missing one costs.

    Example: perfkit doctor
    """
    from layers.preflight.doctor import examine

    checks = examine(investigation, pid or (), server)
    result = Result(COMMAND, _verdict(checks), sections={"checks": [asdict(check) for check in checks]})
    return output.finish(result, as_json=json, show=lambda r: _show(r, checks))


def _verdict(checks: Sequence[Check]) -> Verdict:
    missing = [check for check in checks if not check.there]
    if not missing:
        return Verdict("equipped", False, f"{counted(len(checks), 'check')}, nothing is missing", Exit.OK)
    because = (
        f"{len(missing)} of {counted(len(checks), 'check')} found something missing; what each costs is below"
    )
    return Verdict("limited", False, because, Exit.OK)


def _show(result: Result, checks: Sequence[Check]) -> None:
    show_headline(result)
    output.line()
    for check in checks:
        if check.there:
            output.paragraph("there", f"{check.name}: {check.seen}")
    for check in checks:
        if not check.there:
            output.line()
            output.paragraph("missing", f"{check.name}: {check.seen}")
            output.paragraph("costs", check.costs)
            output.paragraph("do", check.remedy)
