"""Logs as samplers write them, for tests: dcgmi dmon in its four layouts, nvidia-smi csv and dmon.

    write(tmp_path / "log", smi_csv(rows(util=[97.0] * 30)))
    write(tmp_path / "log", dcgm_dmon(DCGM_4_0, ("SMACT", "TENSO"), [("GPU 0", ("0.100", "N/A"))]))

Column widths are those of NVIDIA/DCGM's DeviceMonitor.cpp; header texts are those of public logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2025, 7, 1, 23, 0, 36, tzinfo=UTC)
"""When the logs begin: at BASE_TIME_NS of tests.writers.chrome."""


@dataclass(frozen=True)
class DcgmLayout:
    """One layout of dcgmi dmon: `entity` and `cell` are widths, `header` the first characters of a
    heading."""

    header: str
    entity: int
    cell: int
    right: bool = False
    id_row: str = "ID"


DCGM_2_3 = DcgmLayout("# Entity", 9, 7, right=True, id_row="      Id")
DCGM_3_3 = DcgmLayout("#Entity", 10, 13)
DCGM_4_0 = DcgmLayout("#Entity", 11, 13)
DCGM_4_5 = DcgmLayout("#Entity", 16, 13)
DCGM_LAYOUTS = (DCGM_2_3, DCGM_3_3, DCGM_4_0, DCGM_4_5)

DcgmRow = tuple[str, Sequence[str]]
"""Entity and the texts of its cells."""


def dcgm_header(layout: DcgmLayout, names: Sequence[str]) -> list[str]:
    """Both heading rows."""
    return [_dcgm_line(layout, layout.header, names), layout.id_row.ljust(layout.entity)]


def dcgm_dmon(
    layout: DcgmLayout, names: Sequence[str], rows: Iterable[DcgmRow], *, repeat_every: int = 14
) -> str:
    """A whole log, with the header again every so many rows."""
    lines: list[str] = []
    for number, (entity, cells) in enumerate(rows):
        if number % repeat_every == 0:
            lines += dcgm_header(layout, names)
        lines.append(_dcgm_line(layout, entity, cells))
    return "\n".join(lines) + "\n"


def _dcgm_line(layout: DcgmLayout, first: str, cells: Sequence[str]) -> str:
    if layout.right:
        return first.rjust(layout.entity) + "".join(cell.rjust(layout.cell) for cell in cells)
    return first.ljust(layout.entity) + "".join(cell.ljust(layout.cell) for cell in cells)


@dataclass(frozen=True)
class SmiRow:
    """One row of --query-gpu: a card at one time. Cells are texts, so that a test may write anything."""

    at: datetime
    index: int
    util: str
    memory_mib: str = "71415"
    power_w: str = "300.50"


def rows(
    util: Iterable[float],
    *,
    index: int = 0,
    start: datetime = START,
    period_s: float = 1.0,
    memory_mib: Iterable[float] | None = None,
    power_w: Iterable[float] | None = None,
) -> list[SmiRow]:
    """Evenly spaced samples of one card."""
    made = []
    memory = iter(memory_mib) if memory_mib is not None else None
    power = iter(power_w) if power_w is not None else None
    for number, value in enumerate(util):
        made.append(
            SmiRow(
                start + timedelta(seconds=number * period_s),
                index,
                f"{value:g}",
                f"{next(memory):g}" if memory else "71415",
                f"{next(power):.2f}" if power else "300.50",
            )
        )
    return made


SMI_HEADER = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]"


def smi_csv(samples: Iterable[SmiRow], *, units: bool = True, repeat_header: bool = False) -> str:
    """nvidia-smi --query-gpu=… --format=csv[,nounits], or a shell loop that prints the header every time."""
    lines = [SMI_HEADER]
    for number, row in enumerate(samples):
        if repeat_header and number:
            lines.append(SMI_HEADER)
        lines.append(_smi_line(row, units))
    return "\n".join(lines) + "\n"


def _smi_line(row: SmiRow, units: bool) -> str:
    cells = ((row.util, "%"), (row.memory_mib, "MiB"), (row.power_w, "W"))
    texts = [f"{text} {unit}" if units and text[-1:].isdigit() else text for text, unit in cells]
    return ", ".join([stamp(row.at), str(row.index), *texts])


def stamp(at: datetime) -> str:
    """A time as nvidia-smi writes it."""
    return f"{at:%Y/%m/%d %H:%M:%S}.{at.microsecond // 1000:03d}"


SMI_DMON_HEADER = (
    "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk \n"
    "# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz \n"
)


def write(path: Path, text: str, encoding: str = "utf-8") -> str:
    """The text as a file; its path as the readers take it."""
    path.write_bytes(text.encode(encoding))
    return str(path)
