"""One key function, asked and tried: what `key_judge` judges."""

from __future__ import annotations

from layers.layer5_regression.key_checks import properties_of, self_test
from layers.layer5_regression.key_command import ask_keys, ask_spec
from layers.layer5_regression.key_judge import KeyFacts
from layers.layer5_regression.key_rows import rows_for


def look_at_keys(command: str) -> KeyFacts:
    """Start the program for its description, then twice for the keys of the same rows."""
    spec = ask_spec(command)
    rows = rows_for(spec)
    keys = ask_keys(command, rows)
    n = len(rows.random)
    return KeyFacts(
        command=command,
        spec=spec,
        rows=len(rows.all),
        expected_collisions=n * (n - 1) / 2 / spec.range,
        properties=tuple(properties_of(spec, rows, keys)),
        planted=tuple(self_test(spec, rows, keys)),
    )
