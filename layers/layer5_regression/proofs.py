"""Which counter of a server shows that a setting's path ran. Pure.

For the bundled engine by the setting's name; for others whoever asks names the counter (--counter). A counter
is a sample of the metrics page, with its labels or, without, the sum over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from layers.layer5_regression.model import Proof
from parsers.metrics_page import name_of

ON = frozenset({"on", "true", "1"})
OFF = frozenset({"off", "false", "0"})
BUNDLED: Mapping[tuple[str, str], str] = {
    ("cuda_graph", "on"): "engine_graph_replays_total",
    ("cuda_graph", "off"): "engine_graph_eager_total",
    ("lookahead", "on"): "engine_lookahead_steps_total",
    ("lookahead", "off"): "engine_sync_steps_total",
    ("radix_key", "device"): 'engine_radix_keys_total{where="device"}',
    ("radix_key", "host"): 'engine_radix_keys_total{where="host"}',
    ("vocoder_batch", "exact-length"): 'engine_vocoder_items_total{path="batched"}',
    ("vocoder_batch", "single"): 'engine_vocoder_items_total{path="single"}',
    ("encoder_cache", "on"): 'engine_encoder_cache_total{result="hit"}',
    ("encoder_cache", "off"): 'engine_encoder_cache_total{result="off"}',
    ("encoder_thread", "on"): 'engine_encoder_batches_total{thread="own"}',
    ("encoder_thread", "off"): 'engine_encoder_batches_total{thread="scheduler"}',
}
"""docs/engine.md, metrics of the switches."""


def proofs_of(settings: Mapping[str, str], counters: Iterable[str] = ()) -> tuple[Proof, ...]:
    """What must have moved in an arm with these settings, and counters that somebody named."""
    known = (
        Proof(f"{name}={value}", BUNDLED[name, _plain(value)])
        for name, value in settings.items()
        if (name, _plain(value)) in BUNDLED
    )
    return (*known, *(Proof(counter, counter) for counter in counters))


def _plain(value: str) -> str:
    word = value.lower()
    return "on" if word in ON else "off" if word in OFF else word


def grown(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """By how much each sample of a page grew; those that did not are left out."""
    told = {key: value - before.get(key, 0.0) for key, value in after.items()}
    return {key: by for key, by in told.items() if by > 0}


def growth_of(counter: str, counters: Mapping[str, float]) -> float:
    """That of one counter; without labels the sum over all that it has."""
    return sum(by for key, by in counters.items() if counter in (key, name_of(key)))
