"""A comparison that has never been seen to fail proves nothing: plant faults into a copy of the very data.

    flipped byte     the lowest bit of one byte in every sample, at a place drawn for each
    cut output       the last byte of one sample is gone
    finish reason    one sample says that it ended for another reason
    missing sample   one is left out;  doubled sample   one is there twice
    swapped outputs  two samples that differ have each other's output

Each is compared with the original by `pairing.pair`, as the arms are. A pass is reported only where all of
them were caught, each flipped byte at its own sample and no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from zlib import crc32

from layers.layer5_regression.model import Key, Paired, Trial, is_answered
from layers.layer5_regression.pairing import pair
from parsers.output_model import Output, Payload

FLIPPED = "one byte flipped"


def run_control(outputs: Sequence[Output]) -> list[Trial]:
    """Every trial that these samples allow; none where no sample has an output."""
    answered = [one for one in first_of_each(outputs) if is_answered(one)]
    if not answered:
        return []
    flipped = [_flipped(one) for one in answered]
    caught = {sample.key for sample in pair(answered, flipped).different}
    return [Trial(FLIPPED, len(flipped), len(caught)), *_single(answered)]


def first_of_each(outputs: Sequence[Output]) -> list[Output]:
    """One output of each key: doubled ones are not what is tried here."""
    found: dict[Key, Output] = {}
    for one in outputs:
        found.setdefault(one.key, one)
    return list(found.values())


def _single(answered: Sequence[Output]) -> Iterator[Trial]:
    one, rest = answered[0], list(answered[1:])
    cut = replace(one, payloads=(*map(_cut, one.payloads),))
    yield _trial("the end of one output cut", pair(answered, [cut, *rest]), {one.key})
    other_end = replace(one, finish_reason=f"not {one.finish_reason}")
    yield _trial("another finish reason", pair(answered, [other_end, *rest]), {one.key})
    yield Trial("one sample left out", 1, int(pair(answered, rest).only_a == (one.key,)))
    yield Trial("one sample doubled", 1, int(pair(answered, [one, one, *rest]).doubled == (one.key,)))
    other = next((o for o in rest if o.payloads != one.payloads), None)
    if other is not None:
        swapped = [_swapped(o, one, other) for o in answered]
        yield _trial("two outputs swapped", pair(answered, swapped), {one.key, other.key})


def _trial(planted: str, found: Paired, expected: set[Key]) -> Trial:
    return Trial(planted, 1, int({sample.key for sample in found.different} == expected))


def _swapped(output: Output, one: Output, other: Output) -> Output:
    if output is one:
        return replace(one, payloads=other.payloads)
    return replace(other, payloads=one.payloads) if output is other else output


def _flipped(output: Output) -> Output:
    """The output with one byte changed; where, follows from its name."""
    longest = max(output.payloads, key=lambda payload: len(payload.data))
    at = crc32(repr(output.key).encode()) % len(longest.data)
    data = bytearray(longest.data)
    data[at] ^= 1
    changed = replace(longest, data=bytes(data))
    return replace(output, payloads=tuple(changed if one is longest else one for one in output.payloads))


def _cut(payload: Payload) -> Payload:
    return replace(payload, data=payload.data[:-1])
