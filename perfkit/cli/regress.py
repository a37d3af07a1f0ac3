"""`perfkit regress`: are the answers still the same?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from parsers.errors import UsageError
from perfkit.cli import options, output
from perfkit.cli import regress_options as ask
from perfkit.cli import sweep_options as asked
from perfkit.cli.ending import told_to_end
from perfkit.cli.given import refuse_beside
from perfkit.cli.record import record_result

if TYPE_CHECKING:
    from layers.evidence.measurement import Artifact
    from layers.layer5_regression.model import Analysis, Arm, Options
    from perfkit.cli.regress_plan import Wanted
    from perfkit.cli.regress_run import Collected

ALWAYS = frozenset({"json", "investigation", "no_record"})
JUDGING = frozenset({"model_config", "tolerant", "margin", "max_lsb"})
SIDES = "name the outputs of both sides: perfkit regress --a FILE --b FILE [--aa FILE]"


def regress(
    a: ask.A = None,
    b: ask.B = None,
    aa: ask.AA = None,
    set_: ask.Set = None,
    vs: ask.Vs = None,
    both: ask.Both = None,
    engine_preset: asked.EnginePreset = None,
    pipeline: asked.Pipeline = None,
    server: asked.Server = None,
    vs_server: ask.VsServer = None,
    launch: asked.Launch = None,
    vs_launch: ask.VsLaunch = None,
    endpoint: asked.Endpoint = None,
    model: asked.Model = None,
    path: asked.PathOption = "",
    field: asked.Field = None,
    data: asked.Data = None,
    concurrency: ask.Concurrency = ask.USUAL_CONCURRENCY,
    stream: ask.Stream = None,
    no_aa: ask.NoAA = False,
    counter: ask.Counter = None,
    header: asked.Header = None,
    timeout: asked.Timeout = None,
    resume: ask.Resume = False,
    model_config: ask.ModelConfig = None,
    key_layer: ask.KeyLayer = None,
    tolerant: ask.Tolerant = False,
    margin: ask.Margin = ask.DEFAULT_MARGIN_PCT,
    max_lsb: ask.MaxLsb = ask.DEFAULT_MAX_LSB,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """Are the answers still the same after a change, and was the changed path run at all?

    Compares outputs that were recorded (--a, --b, --aa), or asks two configurations of the bundled engine
    (--set, --vs), two servers, or two that it starts. Byte by byte where a second run of A shows that A
    repeats itself; else by right and wrong, with what that could have found.

    Example: perfkit regress --set lookahead=off --vs lookahead=on
    """
    options_given = dict(locals())
    from layers.layer5_regression.analyse import analyse
    from layers.layer5_regression.judge import judge
    from perfkit.cli.regress_plan import Wanted
    from perfkit.cli.regress_view import show_regress

    started = datetime.now(UTC)
    if key_layer is not None:
        why = "--key-layer: keys are judged by themselves"
        refuse_beside(regress, options_given, ALWAYS | {"key_layer"}, why)
        return _key_layer(key_layer, started, json, None if no_record else investigation)
    if a or b or aa:
        why = "--a, --b: recorded outputs are compared"
        refuse_beside(regress, options_given, ALWAYS | JUDGING | {"a", "b", "aa"}, why)
    elif resume:
        why = "--resume: the collection keeps what it was asked"
        refuse_beside(regress, options_given, ALWAYS | JUDGING | {"resume", "header"}, why)
    chosen = ask.judging(tolerant, margin, max_lsb, model_config)
    interrupted = False
    if a or b or aa:
        arms, chosen = _from_files(a or [], b or [], aa or [], chosen, investigation)
    else:
        wanted = Wanted(
            server=server,
            vs_server=vs_server,
            launch=launch,
            vs_launch=vs_launch,
            preset=engine_preset,
            pipeline=pipeline,
            settings=asked.pairs("--set", set_),
            vs=asked.pairs("--vs", vs),
            both=asked.pairs("--both", both),
            endpoint=endpoint,
            model=model,
            path=path,
            fields=asked.fields(field),
            data=data,
            concurrency=concurrency,
            stream=stream,
            repeat_a=not no_aa,
            counters=counter or [],
            timeout_s=timeout,
        )
        collected = _asked(wanted, resume, asked.pairs("--header", header), investigation)
        arms, interrupted = list(collected.arms), collected.interrupted
        chosen = replace(chosen, data=collected.data)
    analysis = analyse(arms[0], arms[1], arms[2] if len(arms) > 2 else None, chosen)
    result = judge(analysis)
    if interrupted:
        result = result.interrupted("perfkit regress --resume goes on with it")
    try:
        if not no_record:
            record_result(investigation, result, started, _artifacts(analysis))
    finally:  # what was found is shown even where it cannot be kept
        code = output.finish(result, as_json=json, show=show_regress)
    return code


def _key_layer(command: str, started: datetime, json: bool, investigation: Path | None) -> int:
    """The other layer: keys by what they must hold."""
    from layers.evidence.store import ARTIFACTS, Investigation
    from layers.layer5_regression.key_judge import judge_keys
    from layers.layer5_regression.key_layer import look_at_keys
    from perfkit.cli.regress_view import show_keys

    if investigation is not None:
        with Investigation.open(investigation):  # makes its folders
            pass
    result = judge_keys(look_at_keys(command, investigation / ARTIFACTS if investigation else None))
    try:
        if investigation is not None:
            record_result(investigation, result, started)
    finally:  # what was found is shown even where it cannot be kept
        code = output.finish(result, as_json=json, show=show_keys)
    return code


def _from_files(
    a: list[str], b: list[str], aa: list[str], chosen: Options, investigation: Path
) -> tuple[list[Arm], Options]:
    """Arms that were recorded before."""
    from layers.layer5_regression.arms import read_arm
    from perfkit.cli.regress_run import facts_of_data

    if not a or not b:
        raise UsageError(SIDES)
    arms = [read_arm("A", a), read_arm("B", b)]
    arms += [read_arm("A'", aa)] if aa else []
    return arms, replace(chosen, data=facts_of_data([*a, *b], investigation))


def _asked(wanted: Wanted, resume: bool, headers: dict[str, str], investigation: Path) -> Collected:
    """Arms that are asked now."""
    from perfkit.cli.regress_plan import plan_of
    from perfkit.cli.regress_run import collect_new, collect_rest

    with told_to_end() as told:
        if resume:
            return collect_rest(asked.existing(investigation), headers, told.is_set)
        return collect_new(plan_of(wanted), investigation, headers, told.is_set)


def _artifacts(analysis: Analysis) -> list[Artifact]:
    return [artifact for arm in analysis.arms for artifact in arm.artifacts]
