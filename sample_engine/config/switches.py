"""The six optimisations, each with an off switch.

They depend on each other: a key that is hashed on the host needs a copy in every step, so it refuses both the
captured graph and the lookahead loop. `refusals` says so in words; the stages count each time it happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RadixKey = Literal["host", "device"]
VocoderBatch = Literal["single", "exact-length"]


@dataclass(frozen=True, slots=True)
class Switches:
    """`cuda_graph`: decode and vocoder steps are captured and replayed. `lookahead`: step N is launched
    before step N-1 is read. `radix_key`: where a frame's prefix-cache key is hashed. `vocoder_batch`: which
    chunks share a launch. `encoder_cache`: equal audio is encoded once. `encoder_thread`: the encoder has a
    thread and a stream of its own.
    """

    cuda_graph: bool
    lookahead: bool
    radix_key: RadixKey
    vocoder_batch: VocoderBatch
    encoder_cache: bool
    encoder_thread: bool


BASELINE = Switches(
    cuda_graph=False,
    lookahead=False,
    radix_key="host",
    vocoder_batch="single",
    encoder_cache=False,
    encoder_thread=False,
)
OPTIMIZED = Switches(
    cuda_graph=True,
    lookahead=True,
    radix_key="device",
    vocoder_batch="exact-length",
    encoder_cache=True,
    encoder_thread=True,
)
PRESETS = {"baseline": BASELINE, "optimized": OPTIMIZED}


def refusals(switches: Switches) -> list[str]:
    """Why a switch that is on cannot engage; empty when all can."""
    if switches.radix_key == "device":
        return []
    wanted = [name for name in ("cuda_graph", "lookahead") if getattr(switches, name)]
    return [f"{name} cannot engage in decode: radix_key=host needs the host in every step" for name in wanted]
