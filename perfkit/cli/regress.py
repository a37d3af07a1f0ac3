"""`perfkit regress`: are the answers still the same?"""

from __future__ import annotations

from datetime import UTC, datetime

from parsers.errors import UsageError
from perfkit.cli import options, output
from perfkit.cli import regress_options as ask
from perfkit.cli.record import record_result


def regress(
    a: ask.A = None,
    b: ask.B = None,
    aa: ask.AA = None,
    tolerant: ask.Tolerant = False,
    margin: ask.Margin = ask.DEFAULT_MARGIN_PCT,
    max_lsb: ask.MaxLsb = ask.DEFAULT_MAX_LSB,
    json: options.Json = False,
    investigation: options.Investigation = options.DEFAULT_INVESTIGATION,
    no_record: options.NoRecord = False,
) -> int:
    """Are the answers still the same after a change, and was the changed path run at all?

    Compares outputs that were recorded: text, token ids, codes, sound. Byte by byte where a second run of A
    (--aa) shows that A repeats itself; else by right and wrong, with what that could have found.

    Example: perfkit regress --a before.jsonl --aa before-again.jsonl --b after.jsonl
    """
    from layers.layer5_regression.analyse import analyse
    from layers.layer5_regression.arms import read_arm
    from layers.layer5_regression.judge import judge
    from perfkit.cli.regress_view import show_regress

    if not a or not b:
        raise UsageError("name the outputs of both sides: perfkit regress --a FILE --b FILE [--aa FILE]")
    started = datetime.now(UTC)
    chosen = ask.judging(tolerant, margin, max_lsb)
    arms = (read_arm("A", a), read_arm("B", b))
    again = read_arm("A'", aa) if aa else None
    analysis = analyse(*arms, again, chosen)
    result = judge(analysis)
    try:
        if not no_record:
            artifacts = [artifact for arm in analysis.arms for artifact in arm.artifacts]
            record_result(investigation, result, started, artifacts)
    finally:  # what was found is shown even where it cannot be kept
        code = output.finish(result, as_json=json, show=show_regress)
    return code
