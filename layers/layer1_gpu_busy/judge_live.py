"""What checks of how something was measured do to the result that rests on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layers.evidence.doubts import with_doubts
from layers.evidence.guard import Checked
from layers.evidence.measurement import Measurement
from layers.evidence.result import Result


def with_live_checks(
    result: Result,
    guards: Sequence[Checked],
    measurements: Sequence[Measurement] = (),
    *,
    cut_short: bool = False,
) -> Result:
    """The result with these guards: where one of them is directional, its word and findings only hint.

    `measurements` stand beside those that it rests on. `cut_short`: the sampling was interrupted, which its
    exit code says.
    """
    checked = with_doubts(replace(result, measurements=[*result.measurements, *measurements]), guards)
    return checked.interrupted() if cut_short else checked
