"""What takes a pass out by its samplers alone, told as soon as it has ended: whoever waits can stop it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from layers.collectors.busy_others import BusyOthers
from layers.collectors.load.pulse_series import read_pulses
from layers.collectors.load.records import RequestRecord
from layers.evidence.guard import Effect, apply_guards
from layers.layer3_sweep.guards_pass import CONTENDED, PASS_GUARDS
from layers.layer3_sweep.passes import Beside, pass_of
from layers.layer3_sweep.protocol import PassKey
from layers.layer3_sweep.recorded import read_samples
from layers.layer3_sweep.sweep_folder import samples_folder
from parsers.errors import InvalidMeasurement, UnreadableInput


def void_at_once(
    place: Path, key: PassKey, records: Sequence[RequestRecord], others: BusyOthers
) -> tuple[str, ...]:
    """Each check that voids this pass, in words; the whole judgement at the end of the sweep says the same.
    Nothing where its recordings cannot be read: that is told with the sweep."""
    try:
        pulses = read_pulses(place, [])
        sampled = [recording.file for recording in read_samples(samples_folder(place)).recordings]
        swept = pass_of(records, key.load, repeat=key.repeat, beside=Beside(pulses=pulses, sampled=sampled))
    except (InvalidMeasurement, UnreadableInput):
        return ()
    fired = [c for c in apply_guards(PASS_GUARDS, swept) if c.fired and c.effect is Effect.VOID]
    return tuple(f"{c.title}: {c.message}{_who(c.code, others)}" for c in fired)


def _who(code: str, others: BusyOthers) -> str:
    names = others.most() if code == CONTENDED.code else []
    return f"; most CPU: {', '.join(names)}" if names else ""
