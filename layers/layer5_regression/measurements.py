"""The numbers of a comparison that findings rest on: counts of samples by cell, the control, accuracy."""

from __future__ import annotations

from collections.abc import Iterator

from layers.evidence.mcnemar import unseen_share
from layers.evidence.measurement import Artifact, Measurement
from layers.layer5_regression.guard_checks import compared_items
from layers.layer5_regression.model import Accuracy, Analysis, ErrorRates, Judged

DIFFERENT, REPEATED_DIFFERENT, CAUGHT = "different_share", "aa_different_share", "control_caught_share"
UNSEEN, LOSS, P_VALUE, DETECTABLE = "unseen_share", "loss_share", "mcnemar_p", "detectable_loss_share"
BYTES = "raw bytes, type and shape, sample by sample"
PLANTED = "faults planted into a copy of the outputs of A"
MCNEMAR = "right and wrong on the same items, McNemar's exact test"


def measurements_of(analysis: Analysis) -> Iterator[Measurement]:
    """Of every cell and of the whole; cells are scopes."""
    artifact = analysis.b.artifacts[0] if analysis.b.artifacts else None
    for cell in analysis.cells:
        yield from _of_cell(cell, artifact)
    n, different = len(analysis.paired.compared), len(analysis.paired.different)
    if not n:
        return
    yield Measurement(DIFFERENT, different / n, "share", n, "samples", BYTES, artifact)
    if not different:
        bound = f"{BYTES}; exact one-sided 95 % bound on none of n"
        items = compared_items(analysis)
        yield Measurement(UNSEEN, unseen_share(items), "share", items, "items", bound, artifact)
    if planted := sum(trial.times for trial in analysis.trials):
        caught = sum(trial.caught for trial in analysis.trials)
        yield Measurement(CAUGHT, caught / planted, "share", planted, "planted faults", PLANTED, artifact)
    if analysis.accuracy is not None:
        yield from _of_accuracy(analysis.accuracy, artifact)


def _of_cell(cell: Judged, artifact: Artifact | None) -> Iterator[Measurement]:
    scope = cell.cell or "all"
    if cell.n:
        share = cell.different / cell.n
        yield Measurement(DIFFERENT, share, "share", cell.n, "samples", BYTES, artifact, scope)
    if cell.aa_n and cell.aa_different is not None:
        share, method = cell.aa_different / cell.aa_n, f"{BYTES}, between two runs of A"
        yield Measurement(REPEATED_DIFFERENT, share, "share", cell.aa_n, "samples", method, artifact, scope)


def _of_accuracy(accuracy: Accuracy, artifact: Artifact | None) -> Iterator[Measurement]:
    method = f"{MCNEMAR}; right is {accuracy.right}"
    told = {LOSS: accuracy.loss_share, P_VALUE: accuracy.p_value, DETECTABLE: accuracy.detectable_share}
    units = {P_VALUE: "probability"}
    for name, value in told.items():
        if value is not None:
            unit = units.get(name, "share")
            yield Measurement(name, value, unit, accuracy.n, "items", method, artifact)
    if accuracy.error_rates is not None:
        yield from _of_rates(accuracy.error_rates, artifact)


def _of_rates(rates: ErrorRates, artifact: Artifact | None) -> Iterator[Measurement]:
    method = f"{rates.metric} over all utterances (jiwer); interval by drawing utterances again"
    told = {"a": rates.a, "b": rates.b, "change": rates.b - rates.a}
    told |= {"change_low": rates.low, "change_high": rates.high}
    for name, value in told.items():
        yield Measurement(f"{rates.metric}_{name}", value, "share", rates.n, "utterances", method, artifact)
