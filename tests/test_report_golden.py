"""One whole report, word for word: what a reader of the demo trace gets.

    python -m tests.test_report_golden

writes the golden text anew, after a change that is meant to change it: read the difference before keeping it.
"""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from reports.markdown_report import render
from tests.report_builders import record, report_of
from tests.writers.decode_loop import decode_loop

GOLDEN = Path(__file__).parent / "golden" / "report.md"


def normalised_report(folder: Path) -> str:
    """The report of the demo trace, without what differs from machine to machine."""
    record(folder / "investigation", decode_loop().write(folder / "decode_loop.json"))
    page = render(report_of(folder / "investigation"), lambda figure: f"figures/{figure.name}.svg")
    page = page.replace(str(folder), "/traces").replace(os.getcwd(), "/here")
    page = page.replace(f"analysed on host: {platform.node()};", "analysed on host: host;")
    page = page.replace(f"on `{platform.node()}` in", "on `host` in")
    return re.sub(r"`[0-9a-f]{64}`", "`sha256`", page)


def test_the_report_of_the_demo_trace_reads_as_it_did(tmp_path: Path) -> None:
    assert normalised_report(tmp_path) == GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        GOLDEN.write_text(normalised_report(Path(made)), encoding="utf-8")
