"""The distinct values of long columns that have few of them, quicker than sorting the column would be."""

from __future__ import annotations

import numpy as np

from parsers.trace_model import I64


def distinct(values: I64) -> tuple[I64, I64]:
    """The distinct values, ascending, and which of them each value is."""
    found = np.unique(values)
    return found, np.searchsorted(found, values)


def distinct_rows(*columns: I64) -> tuple[list[tuple[int, ...]], I64]:
    """The distinct rows of columns of one length, in ascending order, and which of them each row is."""
    of_column = [distinct(column) for column in columns]
    code = np.zeros(len(columns[0]), np.int64)
    for found, which in of_column:
        code = code * len(found) + which
    codes, which_row = distinct(code)
    rows = []
    for left in codes.tolist():
        row: list[int] = []
        for found, _ in reversed(of_column):
            left, at = divmod(left, len(found))
            row.insert(0, int(found[at]))
        rows.append(tuple(row))
    return rows, which_row
