"""Options that mean the same on every command, as annotations to reuse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_INVESTIGATION = Path("perfkit-investigation")

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document on stdout.")]

Investigation = Annotated[
    Path, typer.Option("--investigation", metavar="DIR", help="The investigation to append to.")
]

InvestigationToRead = Annotated[
    Path, typer.Option("--investigation", metavar="DIR", help="The investigation to read.")
]

NoRecord = Annotated[bool, typer.Option("--no-record", help="Print only; record nothing.")]
