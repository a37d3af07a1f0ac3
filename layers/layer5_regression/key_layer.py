"""One key function, asked and tried: what `key_judge` judges. Rows and keys are kept where that is asked."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from layers.evidence.artifacts import describe_artifact
from layers.evidence.measurement import Artifact
from layers.layer5_regression.key_checks import Keys, properties_of, self_test
from layers.layer5_regression.key_command import ask_keys, ask_spec
from layers.layer5_regression.key_judge import KeyFacts
from layers.layer5_regression.key_rows import Rows, rows_for
from parsers.errors import StoreError


def look_at_keys(command: str, folder: Path | None) -> KeyFacts:
    """Start the program for its description, then twice for the keys of the same rows; keep them in the
    folder, where there is one."""
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
        artifact=keep_keys(folder, rows, keys) if folder is not None else None,
    )


def keep_keys(folder: Path, rows: Rows, keys: Keys) -> Artifact:
    """A file of rows with their keys, a line of JSON each."""
    path = folder / f"keys-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}.jsonl"
    pairs = zip(rows.all.tolist(), keys.first.tolist(), keys.again.tolist(), strict=True)
    lines = (msgspec.json.encode({"row": row, "key": key, "again": again}) for row, key, again in pairs)
    try:
        path.write_bytes(b"\n".join(lines) + b"\n")
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}: check the folder and its permissions") from error
    return describe_artifact(path)
