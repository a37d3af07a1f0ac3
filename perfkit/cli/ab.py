"""`perfkit ab`: does one variable change what a server does, beyond what the server does to itself?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layers.evidence.wording import counted
from parsers.errors import UnreadableInput, UsageError
from perfkit.cli import ab_options as ask
from perfkit.cli import ab_run_options as live
from perfkit.cli import options, output
from perfkit.cli import sweep_options as load
from perfkit.cli.given import given_beside, refuse_beside
from perfkit.cli.record import record_result

PAIRS = 4
"""For a strong finding (layers.evidence.strength_table)."""

if TYPE_CHECKING:
    from layers.layer4_ab.analyse import Beside
    from layers.layer4_ab.blocks import Blocks
    from perfkit.cli.ab_arms import Found


def ab(
    a: ask.FilesA = None,
    b: ask.FilesB = None,
    aa: ask.FilesAgain = None,
    a_where: ask.WhereA = None,
    b_where: ask.WhereB = None,
    set_: live.Set = None,
    vs: live.Vs = None,
    launch: live.Launch = None,
    launch_b: live.LaunchB = None,
    engine_preset: load.EnginePreset = None,
    pipeline: load.Pipeline = None,
    pairs: live.Pairs = None,
    a_a: live.AA = False,
    hot: live.Hot = False,
    study: live.Study = None,
    minutes: live.Minutes = None,
    resume: live.Resume = False,
    at: ask.At = None,
    endpoint: load.Endpoint = None,
    model: load.Model = None,
    path: load.PathOption = "",
    stream: load.Stream = True,
    field: load.Field = None,
    data: load.Data = None,
    seconds: load.Seconds = None,
    requests: load.Requests = None,
    warmup: load.Warmup = 2.0,
    timeout: load.Timeout = None,
    header: load.Header = None,
    samplers: load.Samplers = True,
    metric: ask.MetricName = "",
    margin: ask.Margin = None,
    detect: ask.Detect = None,
    variable: ask.Variable = "",
    derived: ask.Derived = None,
    starts: ask.Starts = "file",
    order: ask.Order = "",
    drop_first: ask.DropFirst = "rule",
    stage: ask.Stage = None,
    ledger: ask.Ledger = None,
    ran: ask.Ran = None,
    unblocked: ask.Unblocked = None,
    suspect: ask.Suspect = None,
    stacks_a: ask.StacksA = None,
    stacks_b: ask.StacksB = None,
    trace_a: ask.TraceA = None,
    trace_b: ask.TraceB = None,
    log_a: ask.LogsA = None,
    log_b: ask.LogsB = None,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """Does one variable change what a server does, beyond what the same server does to itself?

    Runs both arms (--set NAME=VALUE --vs NAME=OTHER), a fresh server for each run, in the order A B B A; or
    compares recorded results (--a, --b): what perfkit import reads, and folders of sweeps. The unit is a
    server start. Says improvement, regression, equivalent, inconclusive or invalid.

    Example: perfkit ab --engine-preset optimized --set lookahead=off --vs lookahead=on
    """
    asked_for = dict(locals())
    from layers.layer4_ab.analyse import Beside
    from layers.layer4_ab.metrics import metric_named
    from layers.layer4_ab.model import DropFirst, Question, StartsAre
    from perfkit.cli.ab_arms import recorded_arms, run_arms
    from perfkit.cli.ab_suspect import suspect_evidence

    started, (stage_name, stage_share) = datetime.now(UTC), ask.stage_of(stage)
    if study is not None:
        from perfkit.cli.ab_study import Wanted, study_result

        load.refuse_with_study(given_beside(ab, asked_for, OF_A_STUDY))
        if resume:
            load.refuse_with_resume({"--set": set_, "--pairs": pairs, "--seconds": seconds})
        common = load.pairs("--set", set_)
        wanted = Wanted(study, pairs, seconds, minutes, resume=resume, common=common)
        return study_result(wanted, investigation, started, as_json=json, no_record=no_record)
    if minutes is not None:
        raise UsageError("--minutes is the budget of a --study")
    if a or b:
        why = "--a, --b: recorded results are compared"
        refuse_beside(ab, asked_for, JUDGING | OF_RECORDED | {"at"}, why)
    elif resume:
        why = "--resume keeps the options that it had"
        refuse_beside(ab, asked_for, JUDGING | {"resume", "header"}, why)
        if declared := _declared_before(investigation, asked_for):
            return ab(**(asked_for | declared))
    else:
        every = asked_for.keys() - OF_RECORDED
        refuse_beside(ab, asked_for, every, "options of recorded results (--a FILE... --b FILE...)")
    if metric:
        metric_named(metric)
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
    headers = load.pairs("--header", header)
    earlier = [] if no_record else _earlier(investigation)
    (shares, told_by), blocking = _ledger(ledger), _blocks(trace_a, trace_b)
    if a or b:
        found = recorded_arms(question, a, b, aa, a_where, b_where)
    else:
        asked: dict[str, Any] = {
            "endpoint": endpoint,
            "model": model,
            "path": path,
            "stream": stream,
            "data": data,
        }
        asked |= {"fields": load.fields(field), "seconds": seconds, "requests": requests}
        asked |= {"warmup_s": warmup, "timeout_s": timeout, "samplers": samplers}
        arms: dict[str, Any] = {"set_": set_ or [], "vs": vs or [], "launch": launch, "launch_b": launch_b}
        arms |= {"preset": engine_preset, "pipeline": pipeline, "a_a": a_a, "hot": hot}
        many = PAIRS if pairs is None else pairs
        judging = {name: asked_for[name] for name in KEPT}
        found = run_arms(question, arms, asked, many, headers, investigation, judging, resume=resume)
    leaf = suspect_evidence(suspect or [], stacks_a or [], stacks_b or [], found.ended, headers)
    beside = Beside(earlier, log_a or (), log_b or (), order, shares, told_by, leaf, blocking)
    return _judged(found, beside, started, investigation, as_json=json, no_record=no_record)


OF_A_STUDY = frozenset(
    {"study", "minutes", "resume", "pairs", "seconds", "set_", "json", "investigation", "no_record"}
)
"""The options that `--study` takes; everything else is the study's."""


OF_RECORDED = frozenset({"a", "b", "aa", "a_where", "b_where", "starts", "order"})
"""Of results that exist; an experiment knows its order and its starts."""
JUDGING = frozenset(
    {"metric", "margin", "detect", "variable", "derived", "drop_first", "stage", "ledger", "ran"}
    | {"unblocked", "suspect", "stacks_a", "stacks_b", "trace_a", "trace_b", "log_a", "log_b"}
    | {"json", "investigation", "no_record"}
)
"""The options by which both kinds are judged. Recorded results also have a load that is chosen (--at)."""


KEPT = JUDGING - {"json", "investigation", "no_record"}
"""With the experiment: --resume judges by what was declared before the first run, unless it is told anew."""


def _declared_before(investigation: Path, asked_for: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the experiment that goes on, where none of them is said now."""
    from perfkit.cli.ab_run import kept_judging

    usual = signature(ab).parameters
    said = {name for name in KEPT if asked_for[name] != usual[name].default}
    kept = kept_judging(investigation)
    return {name: kept[name] for name in KEPT & kept.keys() - said if kept[name] != usual[name].default}


def _judged(
    found: Found, beside: Beside, started: datetime, investigation: Path, *, as_json: bool, no_record: bool
) -> int:
    from layers.layer4_ab.analyse import analyse
    from layers.layer4_ab.judge import judge
    from layers.layer4_ab.known import known_beside
    from layers.layer4_ab.story import section_of, story_of
    from perfkit.cli.ab_view import show_ab

    analysis = analyse(found.question, found.a, found.b, found.again, beside)
    result = judge(analysis)
    story = story_of(analysis, result.verdict, known_beside(analysis, beside.earlier))
    told = {**result.sections, **found.sections, "story": section_of(story)}
    result = replace(result, sections=told)
    if found.ended is not None and found.ended.interrupted:
        result = result.interrupted("perfkit ab --resume goes on with it")
    try:
        if not no_record:
            stacks = beside.leaf.artifacts if beside.leaf else ()
            record_result(investigation, result, started, [*found.artifacts, *stacks])
    finally:  # what was found is shown even where it cannot be kept
        code = output.finish(result, as_json=as_json, show=show_ab)
    return code


def _told_apart_by(a_where: list[str], b_where: list[str]) -> str:
    """The fact by which the arms were picked: it is the variable."""
    names = {text.partition("=")[0] for text in (*a_where, *b_where)}
    return names.pop() if len(names) == 1 and a_where and b_where else ""


def _ledger(files: list[str] | None) -> tuple[Mapping[str, float] | None, str]:
    """Shares of stages by files of events, and of which run they are."""
    if not files:
        return None, ""
    from layers.layer4_ab.stage_share import shares_of_ledger

    return shares_of_ledger(files)


def _blocks(a: list[str] | None, b: list[str] | None) -> tuple[Blocks, ...]:
    """What blocks in the steps of traces; UnreadableInput for traces without steps."""
    from layers.layer1_gpu_busy.collect import collect_traces, find_trace_files
    from layers.layer4_ab.blocks import blocks_of

    found = []
    for arm, names in (("a", a), ("b", b)):
        if names:
            paths = find_trace_files(names)
            with output.progress(f"reading {counted(len(paths), 'trace')}", len(paths)) as step:
                told = blocks_of(arm, collect_traces(paths, step=step).traces)
            if told is None:
                raise UnreadableInput(
                    f"--trace-{arm} {names[0]}: no steps in it: what blocks is told by step"
                )
            found.append(told)
    return tuple(found)


def _earlier(investigation: Path) -> list[Mapping[str, Any]]:
    """What this investigation holds already; nothing where there is none yet."""
    from layers.evidence.store import Investigation

    if not investigation.exists():
        return []
    with Investigation.open(investigation) as opened:
        return [run.document for run in opened.runs()]
