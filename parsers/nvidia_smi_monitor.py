"""nvidia-smi dmon and pmon: two header rows, repeated every so often, then columns parted by blanks.

dmon has one row per GPU, pmon one per process. `-` is no value. Rows carry a time only under `-o DT`, as two
columns; a time of day alone dates nothing and is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parsers.nvidia_smi_fields import DMON_FIELDS, PMON_FIELDS
from parsers.sampled_cells import Malformed, is_whole, read_number
from parsers.sampling import Sampling
from parsers.series_model import NO_PROCESS

UNIT_ROW = "idx"
DATE, TIME = "date", "time"


def header_columns(text: str) -> list[str] | None:
    """The column names of a header row; None for any other line."""
    names = text.lstrip("# ").lower().split() if text.startswith("#") else []
    return names if "gpu" in names and ("sm" in names or "pwr" in names or "pid" in names) else None


def read_monitor(texts: Iterable[str], sampling: Sampling) -> str:
    """Read all rows into `sampling`; returns which of the two it is."""
    names: list[str] = []
    for text in texts:
        if (found := header_columns(text)) is not None:
            names = found
        elif text.startswith("#"):
            continue
        elif not text.strip()[:1].isdigit():
            sampling.note(text)
        else:
            _add_row(names, text.split(maxsplit=len(names) - 1), sampling)
    return "nvidia-smi pmon" if "pid" in names else "nvidia-smi dmon"


def _add_row(names: Sequence[str], cells: Sequence[str], sampling: Sampling) -> None:
    row = dict(zip(names, cells, strict=False))
    if len(cells) != len(names) or not is_whole(row["gpu"]):
        sampling.lose(f"not the {len(names)} columns of the header", sum(map(len, cells)))
        return
    fields = PMON_FIELDS if "pid" in row else DMON_FIELDS
    pid = row.get("pid", "")
    if "pid" in row and not is_whole(pid):
        return
    at_ns = _time(row, sampling)
    for name, field in fields.items():
        if name in row:
            entity, device = f"gpu {row['gpu']}", int(row["gpu"])
            column = sampling.column(field.metric, name, entity, device, int(pid) if pid else NO_PROCESS)
            try:
                column.add(read_number(row[name], field.scale), at_ns, sampling.lines.number)
            except Malformed:
                sampling.lose_cell(column, row[name])


def _time(row: dict[str, str], sampling: Sampling) -> int | None:
    """From `20260430` and `13:03:59`."""
    if DATE not in row or TIME not in row:
        return None
    return sampling.time(f"{row[DATE]}T{row[TIME]}")
