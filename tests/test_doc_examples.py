"""docs/examples/: the sample files are what their writer makes."""

from __future__ import annotations

import gzip

from tests.writers.doc_examples import FOLDER, texts, traces


def test_every_sample_file_is_what_its_writer_makes() -> None:
    made = {name: text.encode() for name, text in texts().items()}
    made |= {name: trace.text().encode() for name, trace in traces().items()}
    assert {name: _unpacked(name) for name in made} == made


def _unpacked(name: str) -> bytes:
    """gzip itself may pack the same bytes in another way elsewhere."""
    data = (FOLDER / name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data
