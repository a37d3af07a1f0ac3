"""SGLang-Omni's benchmarks: speech recognition (a list of results by concurrency), speech synthesis (one
summary), and summaries of several rounds (a list of runs).

Recognition averages over repeats and keeps them in `per_repeat`, which are taken where they are there. Its
client exits 0 with skipped samples, so they are failures here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parsers.load_results import ReportedAccuracy, ReportedLatency, ReportedRun
from parsers.reported import MS_PER_S, from_keys, told
from parsers.result_fields import Fields

TOOL = "sglang-omni"
SHARES = {0.5: "median", 0.95: "p95", 0.99: "p99"}

DEFINITIONS = {
    "clock": "perf_counter",
    "start": "after the client's own semaphore",
    "first_token": "of synthesis: the first piece of audio",
    "e2e": "to the last byte",
    "duration": "first request to last answer: ramp and drain are in it",
    "quantiles": "linear between neighbours; failed requests are left out",
    "rtf": "end to end / audio seconds, a value a request",
}


def knows(fields: Fields) -> bool:
    """Whether this object is a result of SGLang-Omni's."""
    if "throughput_qps" in fields.part("summary"):
        return True
    listed = [*fields.items("results")[:1], *fields.items("runs")[:1]]
    keys = {"throughput_samples_per_s", "throughput_qps"}
    return any(isinstance(one, dict) and keys & one.keys() for one in listed)


def read(documents: Iterable[Fields]) -> Iterator[ReportedRun]:
    """The runs of every object; one without throughput is lost."""
    for fields in documents:
        for run in (*_recognition(fields), *_synthesis(fields), *_rounds(fields)):
            if run is not None:
                yield run


def _recognition(fields: Fields) -> Iterator[ReportedRun | None]:
    for result in fields.parts("results"):
        repeats = list(result.parts("per_repeat"))
        for place, one in enumerate(repeats or [result], 1):
            yield _recognised(one, result, place if repeats else None, fields)


def _recognised(one: Fields, result: Fields, repeat: int | None, fields: Fields) -> ReportedRun | None:
    flat = Fields({key: _mean(value) for key, value in one.values.items()}, one.told, one.name)
    total, evaluated = flat.whole("total"), flat.whole("evaluated")
    return _run(
        flat,
        rate=flat.number("throughput_samples_per_s"),
        completed=evaluated,
        failed=flat.whole("skipped"),
        asked=total,
        concurrency=result.whole("concurrency") or flat.whole("concurrency"),
        repeat=repeat,
        label=fields.part("config").text("model") or fields.part("config").text("model_path"),
        accuracy=_wer(flat.number("corpus_wer"), evaluated),
        audio_s_per_s=flat.number("rtfx"),
        duration_s=flat.number("wall_clock_s"),
    )


def _mean(value: object) -> object:
    """Of {mean, min, max, n} the mean; any other value as it is."""
    return value["mean"] if isinstance(value, dict) and "mean" in value else value


def _wer(value: float | None, items: int | None) -> ReportedAccuracy | None:
    return None if value is None else ReportedAccuracy("wer", value, items)


def _synthesis(fields: Fields) -> Iterator[ReportedRun | None]:
    if "throughput_qps" not in fields.part("summary"):
        return
    summary, config = fields.part("summary"), fields.part("config")
    rate = config.number("request_rate")
    yield _run(
        summary,
        rate=summary.number("throughput_qps"),
        completed=summary.whole("completed_requests"),
        failed=summary.whole("failed_requests"),
        asked=summary.whole("total_requests"),
        concurrency=config.whole("concurrency") or config.whole("max_concurrency"),
        rate_per_s=rate or None,
        label=config.text("model") or config.text("model_path"),
        audio_s_per_s=summary.number("audio_throughput_s_per_s"),
        duration_s=None,
    )


def _rounds(fields: Fields) -> Iterator[ReportedRun | None]:
    """Runs of several revisions, which are told apart as settings."""
    samples = fields.whole("samples_per_run")
    for one in fields.parts("runs"):
        revision = one.text("revision")
        yield _run(
            one,
            rate=one.number("throughput_qps"),
            completed=None,
            failed=None,
            asked=samples,
            concurrency=one.whole("concurrency"),
            repeat=one.whole("round"),
            settings={"revision": revision} if revision else {},
            label=fields.text("run_id"),
            audio_s_per_s=one.number("audio_throughput_s_per_s"),
            duration_s=None,
        )


def _run(
    flat: Fields,
    *,
    rate: float | None,
    completed: int | None,
    failed: int | None,
    asked: int | None,
    concurrency: int | None,
    label: str,
    audio_s_per_s: float | None,
    duration_s: float | None,
    rate_per_s: float | None = None,
    repeat: int | None = None,
    settings: dict[str, str] | None = None,
    accuracy: ReportedAccuracy | None = None,
) -> ReportedRun | None:
    if rate is None:
        flat.lose("throughput", "missing: the run is left out")
        return None
    return ReportedRun(
        tool=TOOL,
        version="",
        label=label,
        concurrency=None if rate_per_s else concurrency or None,
        rate_per_s=rate_per_s,
        asked=asked,
        completed=completed,
        failed=failed,
        duration_s=duration_s or (completed / rate if completed and rate else None),
        request_rate=rate,
        output_token_rate=flat.number("output_throughput"),
        in_flight=None,
        latencies=told(
            {
                "e2e": _latency(flat, "latency", completed),
                "first_audio": _latency(flat, "audio_ttfp", completed),
                "ttft": _latency(flat, "text_ttft", completed),
            }
        ),
        definitions=DEFINITIONS,
        other={"rtf_mean": flat.number("rtf_mean"), "rtf_p95": flat.number("rtf_p95")},
        repeat=repeat,
        settings=settings or {},
        accuracy=accuracy,
        audio_s_per_s=audio_s_per_s,
    )


def _latency(flat: Fields, name: str, n: int | None) -> ReportedLatency | None:
    keys = {share: f"{name}_{word}_s" for share, word in SHARES.items()}
    return from_keys(flat, f"{name}_mean_s", f"{name}_std_s", keys, n, MS_PER_S)
