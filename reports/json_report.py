"""The report's model as one JSON document: every number of the report with its basis, for other programs.

What the Markdown and the HTML show in words stands here as data: blocks, tables, the points of figures, names
out of files whole. Each object says its `kind`, which is the name of its class in `model.py` or
`figure_data.py`. What is not there is absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from typing import Any

from layers.evidence.result import SCHEMA_VERSION
from layers.evidence.wording import clipped
from reports.model import Report


def json_report(report: Report) -> str:
    """The document as text. ValueError for a number that is not finite: such a one was not measured."""
    document = {"schema_version": SCHEMA_VERSION, "report": clipped(_plain(report))}
    return json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1)


def _plain(value: Any) -> Any:
    """Dataclasses as objects, enumerations by their values, times as ISO 8601."""
    if is_dataclass(value):
        parts = ((field.name, _plain(getattr(value, field.name))) for field in fields(value))
        return {"kind": type(value).__name__, **{name: part for name, part in parts if part is not None}}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    return value.item() if hasattr(value, "item") else value
