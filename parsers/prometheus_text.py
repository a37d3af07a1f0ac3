"""Prometheus text: dcgm-exporter's gauges as series of GPUs, a server's own metrics as plain samples.

Each line goes through prometheus-client's parser by itself, so that a bad one costs nothing but itself. A
series has one sample a scrape; a scrape is instantaneous, and dcgm-exporter's default interval is 30 s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

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
    source, cards = SERVER, _Cards(sampling)
    for text in texts:
        if not text.strip():
            continue
        if text.startswith("#"):
            cards.begin("")
            continue
        for sample in _samples(text, sampling):
            if (field := BY_EXPORTER_NAME.get(sample.name)) is not None:
                source = EXPORTER
                cards.add(field, sample)
            else:
                _add_plain(sample, sampling)
    sampling.rename(cards.names())
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


class _Cards:
    """Samples of the cards of all hosts, each reading once: an exporter repeats it for every pod on the card.

    A reading is one of a metric's lines that follow each other, until a set of labels comes again, at one
    time where there are times.
    """

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._cards: dict[str, _Card] = {}
        self._name = ""
        self._labels: set[frozenset[tuple[str, str]]] = set()
        self._read: dict[tuple[str, int | None], float] = {}

    def begin(self, name: str) -> None:
        """The lines of another metric, or of the next scrape, begin."""
        self._name = name
        self._labels.clear()
        self._read.clear()

    def add(self, field: DcgmField, sample: Sample) -> None:
        labels, card, at_ns = frozenset(sample.labels.items()), _card(sample.labels), _at_ns(sample)
        if sample.name != self._name or labels in self._labels:
            self.begin(sample.name)
        self._labels.add(labels)
        before = self._read.setdefault((card.key, at_ns), sample.value)
        if len(self._labels) > len(self._read):
            if before != sample.value:
                self._sampling.lose("another value of a reading that stands above: left out", 0)
            return
        self._cards.setdefault(card.key, card)
        column = self._sampling.column(field.metric, sample.name, card.key, card.device)
        known = math.isfinite(sample.value) and not is_blank(sample.value)
        column.add(sample.value * field.scale if known else None, at_ns, self._sampling.lines.number)

    def names(self) -> dict[str, tuple[str, int]]:
        """What each card is called, and its number where no card of another host has the same."""
        of_name: dict[str, list[_Card]] = {}
        for card in self._cards.values():
            of_name.setdefault(card.name, []).append(card)
        return {
            card.key: (card.name, card.device) if len(alike) == 1 else (_told_apart(card, alike), NO_DEVICE)
            for alike in of_name.values()
            for card in alike
        }


class _Card(NamedTuple):
    """A GPU or MIG instance: `key` tells it from all others, `name` is what its host calls it."""

    key: str
    name: str
    device: int
    host: str
    uuid: str


def _card(labels: Mapping[str, str]) -> _Card:
    """`gpu 0`, or `gpu 0 instance 7` where a MIG instance is meant."""
    gpu, instance = labels.get("gpu", ""), labels.get("GPU_I_ID", "")
    host, uuid = labels.get("Hostname", ""), labels.get("UUID", "")
    whole = f"gpu {gpu or uuid or 'without a name'}"
    name = f"{whole} instance {instance}" if instance else whole
    device = int(gpu) if is_whole(gpu) and len(gpu) < MAX_DIGITS else NO_DEVICE
    return _Card("\0".join((name, uuid or host)), name, device, host, uuid)


def _told_apart(card: _Card, alike: Sequence[_Card]) -> str:
    """The name of one of several cards that have one name: with its host, else its UUID."""
    by_host = len({other.host for other in alike}) == len(alike)
    return f"{card.name} of {card.host if by_host else card.uuid}".removesuffix(" of ")


def _add_plain(sample: Sample, sampling: Sampling) -> None:
    if math.isfinite(sample.value):
        labels = tuple(sorted(sample.labels.items()))
        sampling.add_sample(PlainSample(sample.name, labels, float(sample.value), _at_ns(sample)))


def _at_ns(sample: Sample) -> int | None:
    if sample.timestamp is None or not abs(float(sample.timestamp)) < LATEST_NS / NS_PER_S:
        return None
    return round(float(sample.timestamp) * MS_PER_S) * NS_PER_MS
