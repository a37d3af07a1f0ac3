"""What a listener would have heard: a player that starts with the first audio and plays in real time."""

from __future__ import annotations

from collections.abc import Sequence

NS_PER_S = 1e9


def underrun_s(arrival_ns: Sequence[int], seconds: Sequence[float]) -> float:
    """How long it stood still in all, for pieces of audio with their arrival and length.

    It stands still while the next piece is not there, and plays on at once when it comes; so the sum is the
    most that any piece came later than the audio before it lasted.
    """
    ready_s = worst_s = 0.0
    for stamp_ns, length_s in zip(arrival_ns, seconds, strict=True):
        worst_s = max(worst_s, (stamp_ns - arrival_ns[0]) / NS_PER_S - ready_s)
        ready_s += length_s
    return worst_s
