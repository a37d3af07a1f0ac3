"""Runs that other tools reported, as passes of a sweep: the same records as perfkit's own, from there on.

Runs are told apart by what differs between them (tool, model, server, workload, table), so that no curve
mixes two. What a tool defines in its own way stands as the definition of the latency. Two numbers are
computed where a file has none, and say so: the mean end to end, of the means of TTFT and TPOT, and the
throughput of a stage ledger, by Little's law from its own total. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from layers.collectors.load.plan import Arrivals, Load
from layers.evidence.guard import Checked, apply_guards
from layers.evidence.measurement import Artifact
from layers.layer3_sweep.guards_import import IMPORT_PASS_GUARDS, ImportedPass
from layers.layer3_sweep.imported_devices import Logs, devices_of
from layers.layer3_sweep.model import (
    Accuracy,
    Counts,
    Latency,
    Quantile,
    SweepPass,
    Timing,
    Window,
    WindowKind,
)
from layers.layer3_sweep.points import P95, key_of, scope_of
from parsers.load_results import LoadResults, ReportedLatency, ReportedRun

TIMINGS = {timing.value: timing for timing in Timing}
DEFINITION_OF = {Timing.TTFT: "first_token", Timing.FIRST_AUDIO: "first_token", Timing.SEND_LAG: "start"}
"""Under which name a tool's definitions have that of a time; the others under their own."""
MS_PER_S = 1000.0
FROM_MEANS = "mean TTFT + mean TPOT x (tokens a request - 1): of the tool's means, which told no end to end"
BY_LITTLE = "concurrency / total of the stages (Little's law); the table tells no throughput"
TELLING_APART = ("model", "backend", "framework", "workload")
"""What in a run's `other` makes it another sweep where it differs."""
TTFT_APART = "(end to end - TTFT)"
"""How the definition of a TPOT begins that has no TTFT in it."""
LOOPS = {True: "closed", False: "open"}


@dataclass(frozen=True, slots=True)
class Imported:
    """`passes` with the guards on each (`seen`), in the order of the files; `left_out` are runs that no curve
    can hold, `lost` what could not be read, each with its file."""

    passes: tuple[SweepPass, ...]
    seen: tuple[tuple[Checked, ...], ...]
    runs: tuple[ReportedRun, ...]
    left_out: tuple[str, ...]
    lost: tuple[str, ...]


def import_runs(files: Sequence[LoadResults], logs: Logs) -> Imported:
    """All runs of all files, with what `logs` sampled during them."""
    told = [(run, Artifact(f.path, f.sha256, f.size_bytes)) for f in files for run in f.runs]
    placed = [(run, artifact, load) for run, artifact in told if (load := load_of(run)) and _told_rate(run)]
    apart = _settings([run for run, _, _ in placed])
    numbers: dict[tuple[object, ...], int] = {}
    passes = []
    for (run, artifact, load), settings in zip(placed, apart, strict=True):
        key = (run.arm, tuple(settings.items()), load)
        numbers[key] = numbers.get(key, 0) + 1
        passes.append(pass_of(run, load, numbers[key], settings, artifact, logs))
    runs = tuple(run for run, _, _ in placed)
    kept = set(map(id, runs))
    return Imported(
        passes=tuple(passes),
        seen=_guarded(passes, runs),
        runs=runs,
        left_out=tuple(_why_left_out(run, artifact) for run, artifact in told if id(run) not in kept),
        lost=tuple(f"{file.path}: {loss.what}" for file in files for loss in file.losses),
    )


def load_of(run: ReportedRun) -> Load | None:
    """The load that was asked; all at once is as many in flight as requests. None where it is not told."""
    if run.concurrency:
        return Load(run.concurrency)
    if run.rate_per_s is None:
        return None
    if math.isfinite(run.rate_per_s):
        constant = run.other.get("strategy") == Arrivals.CONSTANT
        arrivals = Arrivals.CONSTANT if constant else Arrivals.POISSON
        return Load(rate_per_s=run.rate_per_s, arrivals=arrivals)
    return Load(run.asked) if run.asked else None


def _told_rate(run: ReportedRun) -> bool:
    return run.request_rate is not None or _total_ms(run) is not None


def _total_ms(run: ReportedRun) -> float | None:
    """The end to end of a stage ledger, which tells no rate."""
    e2e = run.latencies.get(Timing.E2E)
    return e2e.mean_ms if run.stage_ms and e2e and e2e.mean_ms else None


def _why_left_out(run: ReportedRun, artifact: Artifact) -> str:
    what = "neither a concurrency nor a rate" if load_of(run) is None else "no throughput"
    return f"{artifact.path}: a run of {run.tool} with {what}: no curve can hold it"


def _settings(runs: Sequence[ReportedRun]) -> list[dict[str, str]]:
    """What tells each run's sweep from others: its own settings, and what differs between the runs."""
    traits = [_traits(run) for run in runs]
    names = dict.fromkeys(name for one in traits for name in one)
    differing = [name for name in names if len({one.get(name, "") for one in traits}) > 1]
    return [
        {**run.settings, **{name: one[name] for name in differing if one.get(name)}}
        for run, one in zip(runs, traits, strict=True)
    ]


def _traits(run: ReportedRun) -> dict[str, str]:
    named = {name: str(run.other.get(name) or "") for name in TELLING_APART}
    load = load_of(run)
    return {"tool": run.tool, "loop": LOOPS[load is not None and load.concurrency is not None], **named}


def pass_of(
    run: ReportedRun,
    load: Load,
    repeat: int,
    settings: Mapping[str, str],
    artifact: Artifact,
    logs: Logs,
) -> SweepPass:
    """One run as a pass; it has a rate, or the total of its stages."""
    total_ms = _total_ms(run)
    rate = run.request_rate
    if rate is None:
        assert total_ms is not None and load.concurrency is not None
        rate = load.concurrency / total_ms * MS_PER_S
    return SweepPass(
        load=load,
        repeat=run.repeat or repeat,
        arm=run.arm,
        settings=settings,
        source=" ".join(part for part in (run.tool, run.version) if part),
        window=_window(run, load),
        counts=counts_of(run),
        throughput_rps=rate,
        in_flight=run.in_flight,
        timings=_timings(run),
        output_tokens_per_s=run.output_token_rate,
        audio_s_per_s=run.audio_s_per_s,
        rtf=_rtf(run),
        devices=devices_of(run, logs),
        accuracy=_accuracy(run),
        stage_ms=run.stage_ms or None,
        artifact=artifact,
    )


def _window(run: ReportedRun, load: Load) -> Window:
    """The whole run: ramp and drain are in it."""
    done = run.completed
    generations = done / load.concurrency if done is not None and load.concurrency else None
    return Window(WindowKind.REPORTED, None, None, run.duration_s, generations)


def counts_of(run: ReportedRun) -> Counts:
    """What became of the requests, as far as it is told; none told where the file counts nothing.

    Of what was asked and neither completed nor told as failed nobody knows how it ended: it counts as an
    error, in the words "not completed".
    """
    shed, failed, completed = run.shed or 0, run.failed or 0, run.completed
    if completed is None and run.asked is not None and run.shed is not None:
        completed = max(0, run.asked - shed - failed)
    if completed is None:
        return Counts(0, 0, 0, None, {})
    untold = {"shed"} if run.shed is None else set()
    untold |= {"errors"} if run.failed is None and run.asked is None else set()
    rest = max(0, (run.asked or 0) - completed - shed - failed)
    words = {"ok": completed, "shed": shed, "failed": failed, "not completed": rest}
    outcomes = {word: n for word, n in words.items() if n} or {"ok": completed}
    return Counts(completed, shed, failed + rest, None, outcomes, frozenset(untold))


def _timings(run: ReportedRun) -> dict[Timing, Latency]:
    told = {TIMINGS[name]: latency for name, latency in run.latencies.items() if name in TIMINGS}
    made = {timing: _latency(run, timing, latency) for timing, latency in told.items()}
    if Timing.E2E not in made and (mean_ms := _mean_from_parts(run)) is not None:
        made[Timing.E2E] = Latency(None, mean_ms, None, (), definition=FROM_MEANS)
    return {timing: made[timing] for timing in Timing if timing in made}


def _latency(run: ReportedRun, timing: Timing, told: ReportedLatency) -> Latency:
    name = DEFINITION_OF.get(timing, str(timing))
    definition = run.definitions.get(name) or run.definitions.get("all", "")
    quantiles = tuple(Quantile(share, ms) for share, ms in sorted(told.quantiles_ms.items()))
    return Latency(told.n, told.mean_ms, told.sd_ms, quantiles, definition=definition)


def _rtf(run: ReportedRun) -> Latency | None:
    """A ratio under names that say ms, as everywhere."""
    mean, p95 = run.other.get("rtf_mean"), run.other.get("rtf_p95")
    if mean is None and p95 is None:
        return None
    quantiles = () if p95 is None else (Quantile(P95, p95),)
    return Latency(run.completed, mean, None, quantiles, definition=run.definitions.get("rtf", ""))


def _mean_from_parts(run: ReportedRun) -> float | None:
    """The mean end to end, exact where each request made as many tokens."""
    means = [latency.mean_ms if (latency := run.latencies.get(key)) else None for key in ("ttft", "tpot")]
    tokens = tokens_a_request(run)
    apart = run.definitions.get("tpot", "").startswith(TTFT_APART)
    ttft_ms, tpot_ms = means
    if ttft_ms is None or tpot_ms is None or tokens is None or not apart:
        return None
    return ttft_ms + tpot_ms * max(0.0, tokens - 1)


def _accuracy(run: ReportedRun) -> Accuracy | None:
    told = run.accuracy
    if told is None:
        return None
    left_out = max(0, (run.asked or 0) - (run.completed or 0)) if run.completed is not None else 0
    return Accuracy(told.metric, told.value, told.items or 0, left_out)


def _guarded(passes: Sequence[SweepPass], runs: Sequence[ReportedRun]) -> tuple[tuple[Checked, ...], ...]:
    tokens = _tokens_of_curves(passes, runs)
    return tuple(
        tuple(
            apply_guards(
                IMPORT_PASS_GUARDS, ImportedPass(run, swept, tokens.get(key_of(swept))), scope_of(swept)
            )
        )
        for swept, run in zip(passes, runs, strict=True)
    )


def _tokens_of_curves(passes: Iterable[SweepPass], runs: Iterable[ReportedRun]) -> dict[object, float]:
    """Output tokens a request at the lowest load of each curve, with which its other loads are compared."""
    found: dict[object, float] = {}
    by_load = sorted(zip(passes, runs, strict=True), key=lambda pair: _order(pair[0].load))
    for swept, run in by_load:
        tokens = tokens_a_request(run)
        if tokens is not None:
            found.setdefault(key_of(swept), tokens)
    return found


def _order(load: Load) -> float:
    return float(load.concurrency or load.rate_per_s or 0)


def tokens_a_request(run: ReportedRun) -> float | None:
    """Output tokens of a completed request on average; None where it is not told."""
    tokens: float | None = run.other.get("output_tokens")
    return tokens / run.completed if tokens and run.completed else None
