"""Symptoms of a service under load, from its ledger and what was measured beside: there, not there, or not
measured and what it would take.

The shape is that of the symptoms of a trace. A symptom names what is there; its usual cause is a guess until
another layer, or an A/B of the limit it names, confirms it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layers.evidence.statistics import minimum_n_for_quantile
from layers.evidence.symptom import (
    PROPOSED,
    Condition,
    Seen,
    Symptom,
    SymptomRule,
    all_of,
    any_of,
    as_symptom,
)
from layers.evidence.wording import counted, limit, pct, time_text
from layers.stages.model import BatchFit, RunLedger, Service, Tail
from layers.stages.next_steps import batching_at
from layers.stages.signs import LEAST_ITEMS, SLOW_TIMES
from layers.stages.tails import QUANTILES, QUARTER
from layers.stages.thresholds import QUEUE_LIMIT

LOW_BUSY = 0.60
"""perfkit's threshold of host-bound (Layer 1): a device that is busy for less has room."""
SUDDEN = 3.0
"""perfkit's proposal: p99 over p50. Of exponential times it is 6.6, of a steady service's under 2."""
TOLD_BY = max(QUANTILES)
IS_SUDDEN = (
    f"p99 > {SUDDEN:g}x p50 (below {minimum_n_for_quantile(TOLD_BY)} requests p95, which p99 is not below)"
)
MOSTLY = 0.50
"""Of the slow requests, or of a short one's waiting."""
MORE_JOINS = 1.5
"""perfkit's proposal: as the slower steps of S7."""
FALLS = 0.05
"""perfkit's choice: runs of one load differ by less."""
FITS = 0.5
"""Of the spread of times: R² below it explains too little."""
FULL_KV = 0.90
"""perfkit's proposal: vLLM and SGLang preempt near 1."""
OFTEN = 0.80
"""Of a run: where long requests work for more of it, whoever waits does so beside them."""
NS_PER_MS = 1e6
NO_EVENTS = "single requests are not in this ledger: it takes request events"
NO_RETRIES = (
    "not measured: events hold no allocation; it takes the server's own counters beside them "
    "(perfkit stages --profile, or perfkit sweep)"
)


@dataclass(frozen=True, slots=True)
class ServingFacts:
    """The ledger of the verdict, all of them by load, and what was measured beside the first."""

    run: RunLedger
    runs: Sequence[RunLedger]
    service: Service


def times(value: float) -> str:
    return f"{value:.2f}x"


def _ms(value: float) -> str:
    return time_text(value * NS_PER_MS)


def low_utilisation(facts: ServingFacts) -> Seen:
    run, service = facts.run, facts.service
    waits = run.queue_share + run.hop_share
    queue = Condition("waiting", waits, QUEUE_LIMIT)
    n = f"{counted(run.counts.complete, 'request')}" if run.counts.complete else "published means"
    text = f"requests wait for {pct(waits)} of their time ({n})"
    if service.device_busy is None:
        if not queue.holds:
            return all_of(text, queue)
        return Seen(
            None, f"{text}; how busy the device was is not measured: it takes perfkit layer1 --live beside it"
        )
    busy = Condition("device busy", service.device_busy, LOW_BUSY, under=True)
    device = f"{service.device_metric} {pct(service.device_busy)} (n = {counted(service.device_n, 'sample')})"
    return all_of(f"{text}; {device}", queue, busy)


def _sudden(tail: Tail) -> tuple[str, Condition]:
    """The tail in words, and whether it is one."""
    name = f"p{100 * tail.quantile:g}"
    at = f"{name} {_ms(tail.at_ms)} is {times(tail.ratio)} the median of {_ms(tail.p50_ms)}"
    return f"{at} (n = {tail.n:,})", Condition(f"{name} over p50", tail.ratio, SUDDEN, write=times)


def _no_tail(facts: ServingFacts) -> Seen:
    if not facts.run.of_events:
        return Seen(None, NO_EVENTS)
    n = counted(facts.run.counts.complete, "complete request")
    takes = " or ".join(f"{minimum_n_for_quantile(q)} (p{100 * q:g})" for q in reversed(QUANTILES))
    return Seen(None, f"{n}: a percentile of the tail takes {takes}")


def _hidden(tail: Tail, text: str, sudden: Condition) -> Seen | None:
    """Of too few requests for p99: with p95 above the limit p99 is, too; p95 below it tells nothing."""
    if tail.quantile >= TOLD_BY or sudden.holds:
        return None
    return Seen(
        None, f"{text}; p99 may be more, and takes {minimum_n_for_quantile(TOLD_BY)} complete requests"
    )


def long_request(facts: ServingFacts) -> Seen:
    tail = facts.run.tail
    if tail is None:
        return _no_tail(facts)
    text, sudden = _sudden(tail)
    if hidden := _hidden(tail, text, sudden):
        return hidden
    if tail.long_share is None:
        return Seen(None, f"{text}; too little work is logged to say which request is long")
    said = f"{text}; {pct(tail.long_share)} of its {tail.slow:,} slow requests are long or waited for one"
    return all_of(said, sudden, Condition("long or behind a long one", tail.long_share, MOSTLY))


def allocation_retries(facts: ServingFacts) -> Seen:
    tail, retries = facts.run.tail, facts.service.retries
    if tail is None:
        return _no_tail(facts)
    text, sudden = _sudden(tail)
    if hidden := _hidden(tail, text, sudden):
        return hidden
    if not sudden.holds:
        return all_of(text, sudden)
    if retries is None:
        return Seen(None, f"{text}; retries {NO_RETRIES}")
    count = sum(retries.values())
    said = f"{text}; {count:,.0f} allocation retries meanwhile"
    return all_of(said, sudden, Condition("retries", count, 0.0, write=lambda n: f"{n:,.0f}"))


def recomposition(facts: ServingFacts) -> Seen:
    tail = facts.run.tail
    if tail is None:
        return _no_tail(facts)
    text, sudden = _sudden(tail)
    if hidden := _hidden(tail, text, sudden):
        return hidden
    if tail.joins_slow is None or not tail.joins_others:
        return Seen(None, f"{text}; it takes events of first forwards and of decoding")
    ratio = tail.joins_slow / tail.joins_others
    joins = (
        f"{tail.joins_slow:.3g} first forwards of others a second of decoding, {tail.joins_others:.3g} else"
    )
    return all_of(
        f"{text}; slow ones met {joins}", sudden, Condition("joins", ratio, MORE_JOINS, write=times)
    )


def past_the_optimum(facts: ServingFacts) -> Seen:
    fits = [fit for fit in facts.run.fits if fit.r2 >= FITS]
    drop = _drop(facts.runs)
    if not fits and drop is None:
        return Seen(None, "one load, and no batch sizes in the events: it takes two loads, or batch_size")
    conditions, said = [], []
    for fit in fits:
        conditions.append(Condition(f"{fit.stage}: more a second below the usual batch", _gain(fit), FALLS))
        side = batching_at(facts.run, fit.stage)
        law = f"{fit.stage} usually runs {fit.usual_batch}, its law is best at {fit.best_batch}"
        said.append(f"{law} ({side})" if side else law)
    if drop is not None:
        share, text = drop
        conditions.append(Condition("throughput falls by", share, FALLS))
        said.append(text)
    return any_of("; ".join(said), *conditions)


def _gain(fit: BatchFit) -> float:
    """By how much a smaller batch would serve more; 0 where the usual one is not too large."""
    return fit.gain if fit.best_batch < fit.usual_batch else 0.0


def _drop(runs: Sequence[RunLedger]) -> tuple[float, str] | None:
    """From the best throughput of a lower load to that of the highest one."""
    rates = [(one.load, one.counts.complete / one.window_ms * 1000) for one in runs if one.window_ms]
    if len(rates) < 2:
        return None
    (at, last), (best_at, best) = rates[-1], max(rates[:-1], key=lambda one: one[1])
    text = f"{best:.3g} requests/s at {best_at:.3g} in flight, {last:.3g} at {at:.3g}"
    return (1 - last / best if best else 0.0), text


def stage_memory(facts: ServingFacts) -> Seen:
    service = facts.service
    retries = sum(service.retries.values()) if service.retries is not None else None
    whose = ", ".join(stage for stage, count in (service.retries or {}).items() if count)
    told = [
        (f"retries{f' in {whose}' if whose else ''}", retries, 0.0),
        ("preemptions", service.preemptions, 0.0),
        ("KV use", service.kv_share, FULL_KV),
    ]
    known = [(name, value, least) for name, value, least in told if value is not None]
    if not known:
        return Seen(None, f"memory of stages {NO_RETRIES}")
    write = {name: pct if name == "KV use" else (lambda n: f"{n:,.0f}") for name, _, _ in known}
    said = ", ".join(f"{name} {write[name](value)}" for name, value, _ in known)
    return any_of(said, *(Condition(name, value, least, write=write[name]) for name, value, least in known))


def head_of_line(facts: ServingFacts) -> Seen:
    short = facts.run.short
    if not facts.run.of_events:
        return Seen(None, NO_EVENTS)
    if short is None:
        least = round(LEAST_ITEMS / QUARTER)
        return Seen(
            None, f"requests are of one size, or fewer than {least}: there are no short ones to look at"
        )
    text = (
        f"the shortest quarter by {short.by} (n = {short.n:,}) works {_ms(short.work_ms)} and waits "
        f"{_ms(short.wait_ms)}, {pct(short.beside_share)} of it beside the longest quarter "
        f"({pct(short.expected_share)} if it were by chance)"
    )
    ratio = short.wait_ms / short.work_ms
    waits = Condition("wait over work", ratio, 1.0, write=times)
    if waits.holds and short.expected_share > OFTEN:
        return Seen(
            None, f"{text}: long ones work all the time, so that order cannot be told: it takes less load"
        )
    lift = short.beside_share / short.expected_share if short.expected_share else 0.0
    return all_of(
        text,
        waits,
        Condition("beside long ones", short.beside_share, MOSTLY),
        Condition("over chance", lift, MORE_JOINS, write=times),
    )


S13 = SymptomRule(
    code="S13",
    title="Low throughput and a device with room",
    threshold=f"waiting > {limit(QUEUE_LIMIT)} of requests' time and device busy < {limit(LOW_BUSY)}",
    threshold_source="SPEC of perfkit: the queue share of scheduling problems, and Layer 1's host-bound",
    usual_cause="A limit of admission (running requests, build workers, a batch window) that is reached "
    "before the device is.",
    look_next="perfkit sweep --param over the limit in front of the stage that holds requests; then an A/B.",
    disproof="The device is busy by another method (SM active, a trace), or raising the limit moves the wait "
    "to another stage.",
    check=low_utilisation,
)

S14 = SymptomRule(
    code="S14",
    title="Sudden p99: a very long request",
    threshold=f"{IS_SUDDEN}, and more than {limit(MOSTLY)} of the slow requests worked {SLOW_TIMES:g}x as "
    "long as usual somewhere or waited beside such work",
    threshold_source=PROPOSED,
    usual_cause="One input far longer than the others, which holds a batch, a worker or a lane for all.",
    look_next="Its length and its stage (slow items); chunked prefill, a lane of its own, a length limit.",
    disproof="The tail stays when inputs longer than p95 are left out of the load.",
    check=long_request,
)

S15 = SymptomRule(
    code="S15",
    title="Sudden p99: allocation retries",
    threshold=f"{IS_SUDDEN}, and any allocation that was tried again meanwhile",
    threshold_source=PROPOSED,
    usual_cause="A stage's batch did not fit into device memory and waited for the next release.",
    look_next="The stage's batch limit and the memory that others keep; an A/B of the limit.",
    disproof="Retries stay at 0 in a run with the same tail.",
    check=allocation_retries,
)

S16 = SymptomRule(
    code="S16",
    title="Sudden p99: batches put together anew",
    threshold=f"{IS_SUDDEN}, and slow requests meet {MORE_JOINS:g}x as many first forwards of "
    "others a second of decoding",
    threshold_source=PROPOSED,
    usual_cause="Each request that joins stops the running batch for its first forward.",
    look_next="Prefill coalescing, chunked prefill, the least time between recompositions; S7 in a trace.",
    disproof="The tail stays where arrivals are spaced evenly at the same rate.",
    check=recomposition,
)

S17 = SymptomRule(
    code="S17",
    title="Throughput falls with the batch",
    threshold=f"more than {limit(FALLS)} more a second at a smaller batch by the stage's own law of times, "
    f"or throughput more than {limit(FALLS)} below that of a lower load",
    threshold_source=PROPOSED,
    usual_cause="Past the optimum: time grows faster than the batch (attention over all pairs, memory "
    "traffic, padding).",
    look_next="perfkit sweep --param over that stage's batch, with a Pareto table.",
    disproof="A sweep with that batch limited does not serve more.",
    check=past_the_optimum,
)

S18 = SymptomRule(
    code="S18",
    title="A stage short of memory",
    threshold=f"any allocation retry or preemption, or KV use > {limit(FULL_KV)}",
    threshold_source=PROPOSED,
    usual_cause="Batch limits, caches and graphs of several stages that share one device's memory.",
    look_next="Whose memory: the stage named; its batch limit, graph set and cache against the others'.",
    disproof="None of them occurs at the load of the complaint.",
    check=stage_memory,
)

S19 = SymptomRule(
    code="S19",
    title="Short requests wait behind long ones",
    threshold=f"the shortest quarter waits longer than it works, more than {limit(MOSTLY)} of that beside "
    f"the longest quarter's work, and {MORE_JOINS:g}x what chance would give",
    threshold_source=PROPOSED,
    usual_cause="Head of line: one queue, first in first out, for lengths that differ by much.",
    look_next="Length-aware order or lanes, chunked prefill; the table by input length.",
    disproof="Short requests alone, at the same number in flight, wait as long.",
    check=head_of_line,
)

SERVING_SYMPTOMS: tuple[SymptomRule[ServingFacts], ...] = (S13, S14, S15, S16, S17, S18, S19)


def serving_symptoms(facts: ServingFacts) -> tuple[Symptom, ...]:
    """Every entry, in catalogue order."""
    return tuple(as_symptom(rule, facts) for rule in SERVING_SYMPTOMS)
