"""Sampled GPU metrics of an nsys export: how full the chip was, which no activity table shows.

Stored in three ways over the years: JSON text in GENERIC_EVENTS (up to 2023.3), then one row per sample in
GPU_METRICS, stamped with `rawTimestamp` in some versions and with `timestamp` in others. Numbers of metrics
are not stable, so a metric is found by its name. Only metrics that perfkit knows are read, in percent of a
peak. Samples count all work on the device, other people's too. No public export holds this table: the layouts
are those of the vendor's documentation and of public scripts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np

from parsers.errors import UnreadableInput
from parsers.nsys_file import NsysFile, Row
from parsers.series_model import F64, Metric, Series

TABLE, NAMES_TABLE = "GPU_METRICS", "TARGET_INFO_GPU_METRICS"
JSON_TABLE, JSON_SOURCES, JSON_TYPES = "GENERIC_EVENTS", "GENERIC_EVENT_SOURCES", "GENERIC_EVENT_TYPES"
JSON_SOURCE_NAME = "GpuMetrics"

METRICS = {
    "sms active": Metric.SM_ACTIVE_RATIO,
    "sm active": Metric.SM_ACTIVE_RATIO,
    "tensor active": Metric.TENSOR_ACTIVE_RATIO,
    "gr active": Metric.GR_ACTIVE_RATIO,
}
"""Names without their unit, lower case. `Tensor Active / FP16 Active` (Turing) counts FP16 pipes too and is
not among them."""
UNITS = ("", "throughput %")
"""`[Avg]` of the same name is another number."""

GPU_MASK = 0xFF
"""The low bits of `typeId` are nsys's number of the GPU."""
FULL_PCT = 100.0


@dataclass(slots=True)
class _Samples:
    """Samples of one metric of one GPU, as they come. Times are floats: exact for the first 104 days."""

    name: str
    at_ns: list[F64] = field(default_factory=list)
    pct: list[F64] = field(default_factory=list)
    missing: int = 0
    out_of_range: int = 0

    def add(self, at_ns: F64, pct: F64) -> None:
        """Keep what is a percentage, count what is not, leave out what lies before the recording."""
        inside = ~(at_ns < 0)
        known = inside & np.isfinite(at_ns) & np.isfinite(pct)
        valid = known & (pct >= 0) & (pct <= FULL_PCT)
        self.missing += int(np.count_nonzero(inside & ~known))
        self.out_of_range += int(np.count_nonzero(known & ~valid))
        self.at_ns.append(at_ns[valid])
        self.pct.append(pct[valid])


Found = dict[tuple[int, Metric], _Samples]


def read_gpu_metrics(file: NsysFile, base_time_ns: int) -> tuple[Series, ...]:
    """One series per GPU and metric, in time order; `base_time_ns` is the unix time of the export's 0."""
    found: Found = {}
    _read_rows(file, found)
    if not found:
        _read_json(file, found)
    return tuple(_series(*key, found[key], base_time_ns) for key in sorted(found))


def metric_of(name: str) -> Metric | None:
    """Which metric a name of nsys stands for; None for one that perfkit does not read."""
    plain, _, unit = name.partition(" [")
    return METRICS.get(plain.strip().lower()) if unit.rstrip("] ").lower() in UNITS else None


def _series(gpu: int, metric: Metric, samples: _Samples, base_time_ns: int) -> Series:
    at_ns = np.concatenate(samples.at_ns).astype(np.int64)
    order = np.argsort(at_ns, kind="stable")
    return Series(
        metric=metric,
        field=samples.name,
        entity=f"gpu {gpu}",
        device=gpu,
        at_ns=at_ns[order] + base_time_ns,
        values=np.concatenate(samples.pct)[order] / FULL_PCT,
        missing=samples.missing,
        out_of_range=samples.out_of_range,
    )


def _of(found: Found, gpu: int, metric: Metric, name: str) -> _Samples:
    return found.setdefault((gpu, metric), _Samples(name))


def _read_rows(file: NsysFile, found: Found) -> None:
    time, named = _time(file, TABLE), _named_metrics(file)
    if time is None or not named:
        return
    where = f"WHERE (typeId, metricId) IN (VALUES {', '.join(map(str, named))})"
    kinds = {(type_id & GPU_MASK, metric_id): name for (type_id, metric_id), name in named.items()}
    columns = f"typeId & {GPU_MASK}, metricId, {time}, value"
    for rows in file.blocks(TABLE, columns, where, may_hide_device_work=False):
        block = _as_floats(file, rows)
        for (gpu, metric_id), (metric, name) in kinds.items():
            mine = (block[:, 0] == gpu) & (block[:, 1] == metric_id)
            if mine.any():
                _of(found, gpu, metric, name).add(block[mine, 2], block[mine, 3])


def _named_metrics(file: NsysFile) -> Mapping[tuple[int, int], tuple[Metric, str]]:
    """(typeId, metricId) → metric and nsys's name of it, for those that perfkit reads."""
    if not file.has(NAMES_TABLE, "typeId", "metricId", "metricName") or not file.has(
        TABLE, "metricId", "value"
    ):
        return {}
    rows = file.rows(NAMES_TABLE, "typeId, metricId, metricName")
    return {
        (int(type_id), int(metric_id)): (metric, str(name))
        for type_id, metric_id, name in rows
        if (metric := metric_of(str(name))) is not None
    }


def _as_floats(file: NsysFile, rows: list[Row]) -> F64:
    try:
        return np.array(rows, np.float64)
    except ValueError as error:
        raise UnreadableInput(f"{file.path}: table {TABLE} holds text where a number belongs") from error


def _time(file: NsysFile, table: str) -> str | None:
    """SQL of the time of a sample; None where the table has none."""
    present = [column for column in ("timestamp", "rawTimestamp") if file.has(table, column)]
    return f"coalesce({', '.join([*present, 'NULL'])})" if present else None


def _read_json(file: NsysFile, found: Found) -> None:
    time = _time(file, JSON_TABLE)
    if time is None or not file.has(JSON_TABLE, "typeId", "data"):
        return
    columns = f"typeId & {GPU_MASK}, {time}, data"
    for rows in file.blocks(JSON_TABLE, columns, _where_gpu_metrics(file), may_hide_device_work=False):
        block: dict[tuple[int, Metric, str], list[tuple[float, float]]] = defaultdict(list)
        for gpu, at_ns, data in rows:
            for metric, name, value in _json_values(data):
                block[gpu, metric, name].append((_number(at_ns), value))
        for key, samples in block.items():
            at_ns, pct = np.array(samples, np.float64).T
            _of(found, *key).add(at_ns, pct)


def _where_gpu_metrics(file: NsysFile) -> str:
    """The WHERE of the samples among all generic events, empty where the export does not tell them apart."""
    if not file.has(JSON_SOURCES, "sourceId", "data") or not file.has(JSON_TYPES, "typeId", "sourceId"):
        return ""
    named = (
        (source, _decoded(data).get("Name")) for source, data in file.rows(JSON_SOURCES, "sourceId, data")
    )
    sources = {source for source, name in named if name == JSON_SOURCE_NAME}
    types = [str(int(t)) for t, source in file.rows(JSON_TYPES, "typeId, sourceId") if source in sources]
    return f"WHERE typeId IN ({', '.join(types)})"


def _json_values(data: object) -> Iterator[tuple[Metric, str, float]]:
    for name, value in _decoded(data).items():
        metric = metric_of(name)
        if metric is not None:
            yield metric, name, _number(value)


def _decoded(data: object) -> dict[str, object]:
    """A JSON object; empty for anything else."""
    try:
        return msgspec.json.decode(str(data), type=dict[str, object])
    except msgspec.DecodeError:
        return {}


def _number(value: object) -> float:
    """A number, written as one or as text; NaN for anything else."""
    try:
        return float(value) if isinstance(value, int | float | str) else np.nan
    except ValueError:
        return np.nan
