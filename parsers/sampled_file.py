"""Any sampler's log as one `SampledFile`: the format is told by the content, never by the file's name.

Reads dcgmi dmon, nvidia-smi's csv, dmon, pmon and compute-apps, and Prometheus text. Output for people (the
table of plain nvidia-smi, -q) is refused with the command whose output can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain

from parsers.dcgm_dmon import read_dmon, read_layout
from parsers.errors import UnreadableInput
from parsers.loss_tally import LossTally
from parsers.nvidia_smi_csv import read_csv, read_header
from parsers.nvidia_smi_monitor import header_columns, read_monitor
from parsers.prometheus_text import is_prometheus, read_prometheus
from parsers.sampler_failures import failure_in
from parsers.sampling import Sampling
from parsers.series_model import SampledFile
from parsers.text_lines import TextLines

Reader = Callable[[Iterable[str], Sampling], str]

LOOKED_AT = 200
"""Lines within which the first telling one must stand; scripts print a few lines of their own before."""
QUOTED_CHARACTERS = 60

SMI_COMMAND = (
    "nvidia-smi --query-gpu=timestamp,index,utilization.gpu,utilization.memory,memory.used,power.draw,"
    "clocks.sm --format=csv -l 1 > FILE"
)
FOR_PEOPLE = (
    (re.compile(r"nvidia_gpu_exporter GPU capture"), "a collection of many nvidia-smi outputs: cut one out"),
    (re.compile(r"=+NVSMI LOG=+"), "nvidia-smi -q, which is made for people"),
    (re.compile(r"\| NVIDIA-SMI \d"), "nvidia-smi's table, which is made for people"),
    (re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}, "), "nvidia-smi's csv without its header"),
)
"""What is refused, and what it is."""


def read_sampled(path: str) -> SampledFile:
    """Read one log.

    Raises UnreadableInput where it is no sampler's output, or one that cannot be read as samples. A log that
    holds nothing but the sampler's own failure is read: it says why there are no samples.
    """
    tally = LossTally()
    lines = TextLines(path, tally)
    with closing(lines):
        sampling = Sampling(lines, tally)
        texts = _whole_lines(lines, sampling)
        head: list[str] = []
        reader = _find_reader(path, texts, head)
        source = reader(chain(head, texts), sampling)
        return sampling.file(source)


def _whole_lines(lines: TextLines, sampling: Sampling) -> Iterator[str]:
    """All lines but a last one without its end, whose last number may be half of one.

    One that stands alone, or tells of a failure, is no sample and passes.
    """
    for text in lines:
        if lines.ended or lines.number == 1 or failure_in(text) is not None:
            yield text
        else:
            sampling.lose("the last line has no end and may be cut: left out", len(text))


def _find_reader(path: str, texts: Iterator[str], head: list[str]) -> Reader:
    """The reader for what the first telling line says; `head` takes the lines that were looked at."""
    failed = False
    for text in texts:
        head.append(text)
        if (reader := _reader_for(text)) is not None:
            return reader
        for pattern, what in FOR_PEOPLE:
            if pattern.search(text):
                raise UnreadableInput(f"{path}: this is {what}. Record with: {SMI_COMMAND}")
        failed = failed or failure_in(text) is not None
        if len(head) == LOOKED_AT:
            break
    if failed:
        return _only_failures
    first = next((text.strip() for text in head if text.strip()), "")
    said = f"it begins with {first[:QUOTED_CHARACTERS]!r}" if first else "it holds no line that can be read"
    raise UnreadableInput(
        f"{path}: no sampler's log that perfkit knows (dcgmi dmon, nvidia-smi csv, dmon or pmon, Prometheus "
        f"text): {said}. Record with: {SMI_COMMAND}"
    )


def _reader_for(text: str) -> Reader | None:
    if read_layout(text) is not None:
        return read_dmon
    if header_columns(text) is not None:
        return read_monitor
    if is_prometheus(text):
        return read_prometheus
    if read_header(text) is not None:
        return read_csv
    return None


def _only_failures(texts: Iterable[str], sampling: Sampling) -> str:
    kinds = list(texts)
    for text in kinds:
        sampling.note(text)
    return "dcgm" if any("host" in text.lower() or "dcgm" in text.lower() for text in kinds) else "nvidia-smi"
