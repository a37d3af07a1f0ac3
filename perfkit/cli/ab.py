"""`perfkit ab`: does one variable change what a server does, beyond what the server does to itself?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parsers.errors import UsageError
from perfkit.cli import ab_options as ask
from perfkit.cli import options, output
from perfkit.cli.record import record_result


def ab(
    a: ask.FilesA = None,
    b: ask.FilesB = None,
    aa: ask.FilesAgain = None,
    a_where: ask.WhereA = None,
    b_where: ask.WhereB = None,
    at: ask.At = None,
    metric: ask.MetricName = "",
    margin: ask.Margin = None,
    detect: ask.Detect = None,
    variable: ask.Variable = "",
    derived: ask.Derived = None,
    starts: ask.Starts = "file",
    order: ask.Order = "",
    drop_first: ask.DropFirst = "rule",
    stage: ask.Stage = None,
    ran: ask.Ran = None,
    unblocked: ask.Unblocked = None,
    log_a: ask.LogsA = None,
    log_b: ask.LogsB = None,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """Does one variable change what a server does, beyond what the same server does to itself?

    Compares recorded results: everything that perfkit import reads, and folders of perfkit sweep (those in
    artifacts/ of an investigation). The unit is a server start; two or more starts an arm, in the order
    A B B A, make pairs. Says improvement, regression, equivalent, inconclusive or invalid.

    Example: perfkit ab --a base*.json --b new*.json --aa again*.json --margin 2
    """
    from layers.layer4_ab.analyse import Beside, analyse
    from layers.layer4_ab.collect import read_arm
    from layers.layer4_ab.judge import judge
    from layers.layer4_ab.model import Arm, DropFirst, Question, StartsAre
    from perfkit.cli.ab_view import show_ab

    if not a or not b:
        raise UsageError("name results of both arms: perfkit ab --a FILE... --b FILE... (perfkit ab --help)")
    started, (stage_name, stage_share) = datetime.now(UTC), ask.stage_of(stage)
    question = Question(
        metric=metric,
        load=at,
        margin=ask.share("--margin", margin),
        detect=ask.share("--detect", detect),
        variable=variable or _told_apart_by(a_where or [], b_where or []),
        derived=tuple(derived or ()),
        drop_first=DropFirst(ask.one_of("--drop-first", drop_first, [*DropFirst])),
        starts=StartsAre(ask.one_of("--starts", starts, [*StartsAre])),
        stage=stage_name,
        stage_share=stage_share,
        ran=tuple(ran or ()),
        unblocked=tuple(unblocked or ()),
    )
    arms = {Arm.A: (a, a_where), Arm.B: (b, b_where), Arm.AGAIN: (aa, a_where)}
    read = {
        arm: read_arm(arm, files, where or (), question.starts)
        for arm, (files, where) in arms.items()
        if files
    }
    beside = Beside(
        earlier=[] if no_record else _earlier(investigation),
        logs_a=log_a or (),
        logs_b=log_b or (),
        order=order,
    )
    result = judge(analyse(question, read[Arm.A], read[Arm.B], read.get(Arm.AGAIN), beside))
    try:
        if not no_record:
            record_result(
                investigation, result, started, [file for arm in read.values() for file in arm.artifacts]
            )
    finally:  # what was found is shown even where it cannot be kept
        code = output.finish(result, as_json=json, show=show_ab)
    return code


def _told_apart_by(a_where: list[str], b_where: list[str]) -> str:
    """The fact by which the arms were picked: it is the variable."""
    names = {text.partition("=")[0] for text in (*a_where, *b_where)}
    return names.pop() if len(names) == 1 and a_where and b_where else ""


def _earlier(investigation: Path) -> list[Mapping[str, Any]]:
    """What this investigation holds already; nothing where there is none yet."""
    from layers.evidence.store import Investigation

    if not investigation.exists():
        return []
    with Investigation.open(investigation) as opened:
        return [run.document for run in opened.runs()]
