"""What `perfkit regress` prints: the verdict first, the cells, then where samples part, in 80 columns.

It is made of the document that --json prints, so that both say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layers.evidence.finding import FindingKind
from layers.evidence.result import Result
from layers.evidence.wording import counted, first_few, pct
from perfkit.cli import output
from perfkit.cli.result_view import (
    measured_files,
    show_artifacts,
    show_checks,
    show_headline,
    show_strength,
    show_what_explains,
)

Entry = Mapping[str, Any]
CELLS_SHOWN, SAMPLES_SHOWN, LOST_SHOWN = 20, 5, 3
SHIFT_GAIN_DB = 6.0
"""Less of the difference than half is no shift. perfkit's choice."""


def show_regress(result: Result) -> None:
    """Print the comparison."""
    show_headline(result)
    _show_cells(result.sections["cells"])
    _show_samples([one for one in result.sections["samples"] if not one["same"]])
    _show_accuracy(result.sections["accuracy"])
    _show_control(result.sections["control"])
    for finding in result.findings:
        if finding.kind is FindingKind.OBSERVATION:
            output.paragraph("seen", finding.statement)
    if result.sections["lost"]:
        output.paragraph("lost", first_few(result.sections["lost"], LOST_SHOWN))
    show_checks(result.guards)
    output.line()
    show_strength(result)
    show_artifacts(measured_files(result))
    show_what_explains(result, result.guards)


def _show_cells(cells: Sequence[Entry]) -> None:
    if not cells:
        return
    head = ["cell", "samples", "differ", "A/A differ", "judged by"]
    rows = [
        [
            one["cell"] or "all",
            f"{one['n']:,}",
            f"{one['different']:,}",
            "not asked" if one["aa_n"] is None else f"{one['aa_different']:,} of {one['aa_n']:,}",
            "bytes" if one["exact"] else "right and wrong",
        ]
        for one in cells[:CELLS_SHOWN]
    ]
    output.line()
    output.show(output.table(head, rows, right=[1, 2, 3]))
    if len(cells) > CELLS_SHOWN:
        output.line(f"{counted(len(cells) - CELLS_SHOWN, 'other cell')} (--json)")


def _show_samples(different: Sequence[Entry]) -> None:
    if not different:
        return
    output.line()
    for number, one in enumerate(different[:SAMPLES_SHOWN]):
        where = f" at {one['cell']}" if one["cell"] else ""
        sound = _sound_text(one["audio"]) if one.get("audio") else ""
        output.paragraph("" if number else "differ", f"{one['item']}{where}: {one['text']}{sound}")
    if len(different) > SAMPLES_SHOWN:
        output.paragraph("", f"and {counted(len(different) - SAMPLES_SHOWN, 'other sample')} (--json)")


def _sound_text(audio: Entry) -> str:
    snr = f"SNR {audio['snr_db']:.1f} dB" if audio["snr_db"] is not None else "no SNR"
    said = f"; {snr}, at most {audio['max_lsb']:,.0f} LSB, {pct(audio['equal_share'])} equal"
    return said + _shift_text(audio)


def _shift_text(audio: Entry) -> str:
    """A lag is told where it explains something: any two sounds have one."""
    lag, snr_db, aligned_db = audio["lag_frames"], audio["snr_db"], audio["aligned_snr_db"]
    if not lag or (aligned_db is not None and snr_db is not None and aligned_db < snr_db + SHIFT_GAIN_DB):
        return ""
    after = f"then SNR {aligned_db:.1f} dB" if aligned_db is not None else "then equal"
    return f"; B is {'later' if lag > 0 else 'earlier'} by {abs(lag):,} frames ({after})"


def _show_accuracy(accuracy: Entry | None) -> None:
    if accuracy is None:
        return
    share = accuracy["detectable_share"]
    shown = f"a loss of {pct(share)} would have shown" if share is not None else "no loss would have shown"
    right = f"{accuracy['baseline_right']:,} of {accuracy['n']:,} before"
    flips = f"{accuracy['lost']:,} lost, {accuracy['gained']:,} gained"
    test = f"McNemar p {accuracy['p_value']:.2g}; {shown}"
    output.line()
    output.paragraph("accuracy", f"right is {accuracy['right']}: {right}, {flips}; {test}")
    if (rates := accuracy["error_rates"]) is not None:
        change = f"{100 * rates['low']:+.2f} to {100 * rates['high']:+.2f} points, n = {rates['n']:,}"
        output.paragraph("", f"{rates['metric'].upper()} {pct(rates['a'])} → {pct(rates['b'])} ({change})")


def _show_control(trials: Sequence[Entry]) -> None:
    if trials:
        told = [f"{one['planted']}: {one['caught']:,} of {one['times']:,}" for one in trials]
        output.line()
        output.paragraph("self-test", f"planted and caught: {'; '.join(told)}")


def show_keys(result: Result) -> None:
    """Print the properties of keys."""
    show_headline(result)
    layer = result.sections["key_layer"]
    output.line()
    for one in layer["properties"]:
        output.paragraph("holds" if one["holds"] else "BROKEN", f"{one['name']}: {one['seen']}")
    told = [f"{one['planted']}: {'caught' if one['caught'] else 'MISSED'}" for one in layer["control"]]
    output.line()
    output.paragraph("self-test", f"planted: {'; '.join(told)}")
    show_checks(result.guards)
    output.line()
    show_strength(result)
    show_what_explains(result, result.guards)
