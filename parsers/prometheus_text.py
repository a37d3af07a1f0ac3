"""Prometheus text: dcgm-exporter's gauges as series of GPUs, a server's own metrics as plain samples.

Each line goes through prometheus-client's parser by itself, so that a bad one costs nothing but itself. A
series has one sample a scrape; a scrape is instantaneous, and dcgm-exporter's default interval is 30 s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from parsers.dcgm_fields import BY_EXPORTER_NAME, DcgmField, is_blank
from parsers.sampled_cells import LATEST_NS, is_plain, is_whole
from parsers.sampling import Sampling
from parsers.series_model import NO_DEVICE, PlainSample

EXPORTER, SERVER = "dcgm-exporter", "prometheus"
LABELLED_SAMPLE = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\{.*\}\s+[-+0-9NI.]")
COMMENT = re.compile(r"#\s*(HELP|TYPE|EOF|UNIT)\b")
MS_PER_S, NS_PER_MS, NS_PER_S = 1e3, 10**6, 1e9
MAX_DIGITS = 10
"""Of a GPU's index."""


def is_prometheus(text: str) -> bool:
    """Whether a line is one of this format and of no other: a comment of it, or a sample with labels."""
    return bool(COMMENT.match(text) or LABELLED_SAMPLE.match(text))


def read_prometheus(texts: Iterable[str], sampling: Sampling) -> str:
    """Read all samples into `sampling`; returns whose they are."""
    source = SERVER
    for text in texts:
        if not text.strip() or text.startswith("#"):
            continue
        for sample in _samples(text, sampling):
            if (field := BY_EXPORTER_NAME.get(sample.name)) is not None:
                source = EXPORTER
                _add_gpu(field, sample, sampling)
            else:
                _add_plain(sample, sampling)
    return source


def _samples(text: str, sampling: Sampling) -> list[Sample]:
    numbers = text.rpartition("}")[2] if "}" in text else text.partition(" ")[2]
    try:
        if not is_plain(numbers):
            raise ValueError(numbers)
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    except ValueError:
        sampling.lose("not a sample of the Prometheus text format", len(text))
        return []


def _add_gpu(field: DcgmField, sample: Sample, sampling: Sampling) -> None:
    gpu = sample.labels.get("gpu", "")
    device = int(gpu) if is_whole(gpu) and len(gpu) < MAX_DIGITS else NO_DEVICE
    column = sampling.column(field.metric, sample.name, _entity(sample.labels, gpu), device)
    known = math.isfinite(sample.value) and not is_blank(sample.value)
    column.add(sample.value * field.scale if known else None, _at_ns(sample), sampling.lines.number)


def _entity(labels: Mapping[str, str], gpu: str) -> str:
    """`gpu 0`, or `gpu 0 instance 7` where a MIG instance is meant."""
    instance = labels.get("GPU_I_ID", "")
    whole = f"gpu {gpu}" if gpu else f"gpu {labels.get('UUID', 'without a name')}"
    return f"{whole} instance {instance}" if instance else whole


def _add_plain(sample: Sample, sampling: Sampling) -> None:
    if math.isfinite(sample.value):
        labels = tuple(sorted(sample.labels.items()))
        sampling.add_sample(PlainSample(sample.name, labels, float(sample.value), _at_ns(sample)))


def _at_ns(sample: Sample) -> int | None:
    if sample.timestamp is None or not abs(float(sample.timestamp)) < LATEST_NS / NS_PER_S:
        return None
    return round(float(sample.timestamp) * MS_PER_S) * NS_PER_MS
