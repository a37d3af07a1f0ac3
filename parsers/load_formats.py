"""Any load tool's results as one `LoadResults`: which tool wrote a file is told by what is in it.

A new tool is one file with `knows` and `read`, and one line in FORMATS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from parsers import (
    aiperf,
    bench_console,
    guidellm,
    inference_perf,
    llmperf,
    result_tables,
    sglang_bench,
    sglang_omni_bench,
    vllm_bench,
)
from parsers.errors import UnreadableInput
from parsers.load_results import LoadResults, ReportedRun
from parsers.result_fields import Fields
from parsers.result_text import ResultText, read_objects, read_result_text

QUOTED_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Format:
    """Results in JSON: what they are called, which objects are of it, and the runs in those."""

    name: str
    knows: Callable[[Fields], bool]
    read: Callable[[Iterable[Fields]], Iterator[ReportedRun]]


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Results in any other text."""

    name: str
    knows: Callable[[str], bool]
    read: Callable[[ResultText], Iterator[ReportedRun]]


FORMATS = (
    Format("guidellm (report, JSON)", guidellm.knows, guidellm.read),
    Format("aiperf (profile export, JSON or JSONL)", aiperf.knows, aiperf.read),
    Format("sglang bench_serving (JSONL)", sglang_bench.knows, sglang_bench.read),
    Format("vllm bench serve (--save-result)", vllm_bench.knows, vllm_bench.read),
    Format("sglang-omni benchmarks (JSON)", sglang_omni_bench.knows, sglang_omni_bench.read),
    Format("llmperf (summary)", llmperf.knows, llmperf.read),
    Format("inference-perf (lifecycle summary)", inference_perf.knows, inference_perf.read),
    Format("a table of a sweep (JSON)", result_tables.knows, result_tables.read),
)
TEXT_FORMATS = (
    TextFormat("a console log of vllm or sglang", bench_console.knows_text, bench_console.read_console),
    TextFormat("inference-perf (YAML)", inference_perf.knows_text, inference_perf.read_yaml),
    TextFormat("a table of a sweep (CSV)", result_tables.knows_text, result_tables.read_csv),
)
EXPECTED = "; ".join(one.name for one in (*FORMATS, *TEXT_FORMATS))


def read_load_results(path: str) -> LoadResults:
    """Read one file of results.

    Raises UnreadableInput, with what was expected, where no tool's results are in it.
    """
    read = read_result_text(path)
    runs = _of_objects(read) if read.text.lstrip()[:1] in ("{", "[") else _of_text(read)
    if not runs:
        why = "; ".join(loss.what for loss in read.tally.losses()[:2]) or "none is in it"
        raise UnreadableInput(f"{path}: no run could be read: {why}")
    return LoadResults(read.path, read.sha256, read.size_bytes, tuple(runs), read.tally.losses())


def _of_text(read: ResultText) -> list[ReportedRun]:
    found = next((one for one in TEXT_FORMATS if one.knows(read.text)), None)
    if found is None:
        first = next((line.strip() for line in read.text.split("\n") if line.strip()), "")
        raise _unknown(read.path, f"it begins with {first[:QUOTED_CHARACTERS]!r}")
    return list(found.read(read))


def _of_objects(read: ResultText) -> list[ReportedRun]:
    """The runs of all objects, by the format of the first that is known."""
    objects = read_objects(read)
    found = next((one for fields in objects for one in FORMATS if one.knows(fields)), None)
    if found is None:
        keys = ", ".join(str(key) for key in list(objects[0].values)[:8])
        raise _unknown(read.path, f"its keys are {keys[: 3 * QUOTED_CHARACTERS]}")
    return list(found.read(_known(objects, found)))


def _known(objects: Sequence[Fields], found: Format) -> Iterator[Fields]:
    for fields in objects:
        if found.knows(fields):
            yield fields
        else:
            fields.told(f"an object that is not of {found.name}: left out")


def _unknown(path: str, seen: str) -> UnreadableInput:
    return UnreadableInput(f"{path}: no load tool's results that perfkit knows: {seen}. Expected: {EXPECTED}")
