"""The numbers of a run that two arms are compared by, and which direction is better.

A percentile counts where the run has the requests that give it an interval (layers.evidence.statistics):
below that it is one of the largest values, and its ratio is a lottery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from layers.evidence.statistics import minimum_n_for_quantile
from layers.layer3_sweep.model import Latency, SweepPass, Timing
from layers.layer4_ab.model import Metric
from parsers.errors import UsageError

THROUGHPUT = "throughput_rps"
OPEN_LOOP = "e2e_mean_ms"
"""What an open loop is compared by first: its throughput is what was asked for."""
TOLD = (Timing.E2E, Timing.TTFT, Timing.FIRST_AUDIO, Timing.TPOT, Timing.ITL)
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}


def requests_behind(swept: SweepPass, latency: Latency) -> int | None:
    """The n of a time: its own, else the requests that were served; None where neither is told."""
    if latency.n is not None:
        return latency.n
    return swept.counts.ok if swept.counts.told else None


def allows(swept: SweepPass, latency: Latency, quantile: float) -> bool:
    """Whether the run has the n for a quantile. An n that nobody tells allows nothing."""
    n = requests_behind(swept, latency)
    return n is not None and n >= minimum_n_for_quantile(quantile)


def _mean(timing: Timing) -> Callable[[SweepPass], float | None]:
    return lambda swept: t.mean_ms if (t := swept.timings.get(timing)) else None


def _quantile(timing: Timing, quantile: float) -> Callable[[SweepPass], float | None]:
    def value(swept: SweepPass) -> float | None:
        latency = swept.timings.get(timing)
        return latency.quantile_ms(quantile) if latency and allows(swept, latency, quantile) else None

    return value


METRICS = (
    Metric(THROUGHPUT, "req/s", True, lambda swept: swept.throughput_rps),
    Metric("output_tokens_per_s", "tok/s", True, lambda swept: swept.output_tokens_per_s),
    Metric("audio_s_per_s", "s/s", True, lambda swept: swept.audio_s_per_s),
    Metric("rtf_mean", "ratio", False, lambda swept: swept.rtf.mean_ms if swept.rtf else None),
    *(Metric(f"{timing}_mean_ms", "ms", False, _mean(timing)) for timing in TOLD),
    *(
        Metric(f"{timing}_{name}_ms", "ms", False, _quantile(timing, quantile))
        for timing in TOLD
        for name, quantile in QUANTILES.items()
    ),
)
"""The primary metric is one of them; the others are told beside it."""


def _output_a_request(swept: SweepPass) -> float | None:
    """Tokens, or seconds of audio, of a served request; None where a run does not tell."""
    rate = swept.output_tokens_per_s or swept.audio_s_per_s or swept.output_tokens_per_s
    return rate / swept.throughput_rps if rate is not None and swept.throughput_rps else None


OUTPUT = Metric("output_a_request", "tokens or s", True, _output_a_request)
"""Not to be compared by, but to be the same: shorter answers are less work."""
BY_NAME = {metric.name: metric for metric in METRICS}


def metric_named(name: str) -> Metric:
    """UsageError for a name that is no metric."""
    if name not in BY_NAME:
        raise UsageError(f"--metric {name}: there are {', '.join(BY_NAME)}")
    return BY_NAME[name]


def untold_tails(passes: Iterable[SweepPass]) -> list[str]:
    """The percentiles that runs report and their n does not allow, each once with that n."""
    told: dict[str, str] = {}
    for swept in passes:
        for timing, latency in swept.timings.items():
            for name, quantile in QUANTILES.items():
                reported = timing in TOLD and latency.quantile_ms(quantile) is not None
                if reported and not allows(swept, latency, quantile):
                    n = requests_behind(swept, latency)
                    behind = f"of {n:,} requests" if n is not None else "of untold n"
                    told.setdefault(f"{timing} {name.replace('_', '.')}", behind)
    return [f"{name} {behind}" for name, behind in told.items()]
