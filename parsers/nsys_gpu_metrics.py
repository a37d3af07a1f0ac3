"""Sampled GPU metrics of an nsys export: how full the chip was, which no activity table shows.

Stored in three ways over the years: JSON text in GENERIC_EVENTS (up to 2023.3), then one row per sample in
GPU_METRICS, stamped with `rawTimestamp` in some versions and with `timestamp` in others. Numbers of metrics
are not stable, so a metric is found by its name; of two names for one metric that of the percentage is taken,
never a mixture. Only metrics that perfkit knows are read, in percent of a peak. Samples count all work on the
device, other people's too. No public export holds this table: the layouts are those of the vendor's
documentation and of public scripts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np

from parsers.loss import Loss
from parsers.not_json import NOT_JSON
from parsers.nsys_file import NsysFile, Row
from parsers.nsys_times import FARTHEST_NS
from parsers.sampled_cells import is_plain
from parsers.series_model import F64, NO_DEVICE, Metric, Series

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
UNITS = ("throughput %", "")
"""The most telling first. `[Avg]` of the same name is another number."""

GPU_MASK = 0xFF
"""The low bits of `typeId` are nsys's number of the GPU, the others that of the machine."""
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
        known = inside & (at_ns < FARTHEST_NS) & np.isfinite(pct)
        valid = known & (pct >= 0) & (pct <= FULL_PCT)
        self.missing += int(np.count_nonzero(inside & ~known))
        self.out_of_range += int(np.count_nonzero(known & ~valid))
        self.at_ns.append(at_ns[valid])
        self.pct.append(pct[valid])

    @property
    def usable(self) -> int:
        return sum(map(len, self.pct))


Kind = tuple[int, int | str]
"""What one column of samples is: its typeId, and its metricId or name. Both are needed whole: other machines
and GPUs have the same low bits."""
Found = dict[tuple[Kind, Metric], _Samples]


def read_gpu_metrics(file: NsysFile, base_time_ns: int) -> tuple[Series, ...]:
    """One series per GPU and metric, in time order; `base_time_ns` is the unix time of the export's 0.

    A number that GPUs of several machines share names none: their series have NO_DEVICE.
    """
    found: Found = {}
    _read_rows(file, found)
    if not found:
        _read_json(file, found)
    chosen = _one_a_metric(found)
    gpus = Counter(type_id & GPU_MASK for type_id in {type_id for type_id, _ in chosen})
    return tuple(
        _series(type_id, gpus[type_id & GPU_MASK] == 1, metric, chosen[type_id, metric], base_time_ns)
        for type_id, metric in sorted(chosen)
    )


def count_gpu_metrics(file: NsysFile) -> int:
    """Rows of GPU metrics, of whatever metric; those in JSON are not counted."""
    return file.count(TABLE)


def _one_a_metric(found: Found) -> dict[tuple[int, Metric], _Samples]:
    """Of several names of one metric on one GPU the one in the better unit, then with the most samples."""
    chosen: dict[tuple[int, Metric], _Samples] = {}
    for ((type_id, _), metric), samples in found.items():
        before = chosen.get((type_id, metric))
        if before is None or _worth(samples) > _worth(before):
            chosen[type_id, metric] = samples
    return chosen


def _worth(samples: _Samples) -> tuple[bool, int, int]:
    return samples.usable > 0, -UNITS.index(_unit_of(samples.name)), samples.usable


def metric_of(name: str) -> Metric | None:
    """Which metric a name of nsys stands for; None for one that perfkit does not read."""
    plain, _, _ = name.partition(" [")
    return METRICS.get(plain.strip().lower()) if _unit_of(name) in UNITS else None


def _unit_of(name: str) -> str:
    return name.partition(" [")[2].rstrip("] ").lower()


def _series(type_id: int, named: bool, metric: Metric, samples: _Samples, base_time_ns: int) -> Series:
    at_ns = np.concatenate(samples.at_ns).astype(np.int64)
    order = np.argsort(at_ns, kind="stable")
    gpu = type_id & GPU_MASK
    return Series(
        metric=metric,
        field=samples.name,
        entity=f"gpu {gpu}" if named else f"gpu {gpu} of several (type {type_id})",
        device=gpu if named else NO_DEVICE,
        at_ns=at_ns[order] + base_time_ns,
        values=np.concatenate(samples.pct)[order] / FULL_PCT,
        missing=samples.missing,
        out_of_range=samples.out_of_range,
    )


def _read_rows(file: NsysFile, found: Found) -> None:
    time, named = _time(file, TABLE), _named_metrics(file)
    if time is None or not named:
        return
    where = f"WHERE (typeId, metricId) IN (VALUES {', '.join(map(str, named))})"
    columns = f"typeId, metricId, {time}, value"
    for rows in file.blocks(TABLE, columns, where, may_hide_device_work=False):
        ids = file.as_array([row[:2] for row in rows], 2, TABLE, needed=False)
        at_ns, pct = _as_floats([row[2:] for row in rows]).T
        for kind, (metric, name) in named.items():
            mine = (ids == kind).all(axis=1)
            if mine.any():
                found.setdefault((kind, metric), _Samples(name)).add(at_ns[mine], pct[mine])


def _named_metrics(file: NsysFile) -> Mapping[tuple[int, int], tuple[Metric, str]]:
    """(typeId, metricId) → metric and nsys's name of it, for those that perfkit reads."""
    if not file.has(NAMES_TABLE, "typeId", "metricId", "metricName") or not file.has(
        TABLE, "metricId", "value"
    ):
        return {}
    rows = file.rows(NAMES_TABLE, "typeId, metricId, metricName")
    return {
        (type_id, metric_id): (metric, str(name))
        for type_id, metric_id, name in rows
        if isinstance(type_id, int) and isinstance(metric_id, int)
        if (metric := metric_of(str(name))) is not None
    }


def _as_floats(rows: list[Row]) -> F64:
    """Times and values; text that is no number is a reading without a value."""
    try:
        return np.array(rows, np.float64)
    except (TypeError, ValueError):
        return np.array([[_number(cell) for cell in row] for row in rows], np.float64)


def _time(file: NsysFile, table: str) -> str | None:
    """SQL of the time of a sample; None where the table has none."""
    present = [column for column in ("timestamp", "rawTimestamp") if file.has(table, column)]
    return f"coalesce({', '.join([*present, 'NULL'])})" if present else None


def _read_json(file: NsysFile, found: Found) -> None:
    time = _time(file, JSON_TABLE)
    if time is None or not file.has(JSON_TABLE, "typeId", "data"):
        return
    columns, where, unread = f"typeId, {time}, data", _where_gpu_metrics(file), 0
    for rows in file.blocks(JSON_TABLE, columns, where, may_hide_device_work=False):
        block: dict[tuple[Kind, Metric], list[tuple[float, float]]] = defaultdict(list)
        for type_id, at_ns, data in rows:
            decoded = _decoded(data)
            unread += decoded is None
            for metric, name, value in _json_values(decoded or {}) if isinstance(type_id, int) else ():
                block[(type_id, name), metric].append((_number(at_ns), value))
        for key, samples in block.items():
            at_ns, pct = np.array(samples, np.float64).T
            found.setdefault(key, _Samples(str(key[0][1]))).add(at_ns, pct)
    if unread and where:  # without it, they may be of anything
        what = f"{unread:,} rows of GPU metrics in {JSON_TABLE} are no JSON that can be read: left out"
        file.losses.append(Loss(what, -1, 0, unread, may_hide_device_work=False))


def _where_gpu_metrics(file: NsysFile) -> str:
    """The WHERE of the samples among all generic events, empty where the export does not tell them apart."""
    if not file.has(JSON_SOURCES, "sourceId", "data") or not file.has(JSON_TYPES, "typeId", "sourceId"):
        return ""
    described = file.rows(JSON_SOURCES, "sourceId, data")
    named = ((source, _decoded(data) or {}) for source, data in described)
    sources = {source for source, about in named if about.get("Name") == JSON_SOURCE_NAME}
    rows = file.rows(JSON_TYPES, "typeId, sourceId")
    types = [str(t) for t, source in rows if source in sources and isinstance(t, int)]
    return f"WHERE typeId IN ({', '.join(types)})"


def _json_values(decoded: Mapping[str, object]) -> Iterator[tuple[Metric, str, float]]:
    for name, value in decoded.items():
        metric = metric_of(name)
        if metric is not None:
            yield metric, name, _number(value)


def _decoded(data: object) -> dict[str, object] | None:
    """A JSON object; None for anything else, and for one that is nested too deep."""
    try:
        return msgspec.json.decode(str(data), type=dict[str, object])
    except NOT_JSON:
        return None


def _number(value: object) -> float:
    """A number, written as one or as text; NaN for anything else."""
    try:
        if isinstance(value, str) and not is_plain(value):
            return np.nan
        return float(value) if isinstance(value, int | float | str) else np.nan
    except (ValueError, OverflowError):
        return np.nan
