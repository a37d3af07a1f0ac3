"""`perfkit layer1 --json` keeps its contract on every kind of input: names, types, no NaN, nothing null.

The schema of a device is that of the one declaration of its names (`document_entries.py`): `Maybe(x)` may be
absent, and nothing that is there is null. More names may stand beside them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from layers.evidence.wording import MAX_TEXT_CHARACTERS
from layers.layer1_gpu_busy.document_entries import CONTRACT, Anatomy, DeviceEntry, TraceEntry, entry_of
from layers.layer1_gpu_busy.strip import MAX_STRIPS
from layers.layer1_gpu_busy.thresholds import Word
from perfkit.cli import app
from tests.layer1_traces import DEVICE_BOUND_NS, FIRST_NS, UNDECIDED_NS, add_steady, host_only, steady
from tests.writers.chrome import TraceBuilder
from tests.writers.decode_loop import decode_loop


@dataclass(frozen=True, slots=True)
class Maybe:
    """A value that is absent where it was not measured."""

    kind: Any


@dataclass(frozen=True, slots=True)
class OneOf:
    words: tuple[str, ...]


Share = "a number from 0 to 1"

MEASUREMENT = {
    "name": str,
    "value": float,
    "unit": str,
    "n": int,
    "n_unit": str,
    "method": str,
    "artifact": {"path": str, "sha256": str, "size_bytes": int},
}


def kind_of(name: str, hint: Any) -> Any:
    """What a declared field may be, in the document: a trace always names the device."""
    [kind, *_], optional = get_args(hint) or (hint,), type(None) in get_args(hint)
    kind = Share if name.endswith("_ratio") else kind
    return Maybe(kind) if optional and name != "device" else kind


DEVICE = {name: kind_of(name, get_type_hints(DeviceEntry)[name]) for name in CONTRACT}

DOCUMENT = {
    "schema_version": int,
    "command": OneOf(("layer1",)),
    "verdict": {
        "word": OneOf(("host-bound", "device-bound", "undecided", "void")),
        "directional": bool,
        "because": str,
        "exit_code": int,
    },
    "guards": [{"code": str, "name": str, "effect": OneOf(("void", "directional", "note")), "message": str}],
    "measurements": [MEASUREMENT],
    "findings": [
        {
            "statement": str,
            "strength": OneOf(("strong", "medium", "weak")),
            "rule": str,
            "recommendation": str,
            "negative": bool,
        }
    ],
    "devices": [DEVICE],
}


def faults(value: Any, kind: Any, place: str = "$") -> list[str]:
    """Where a value is not what the contract says; empty when it keeps it."""
    match kind:
        case dict():
            missing = [k for k in kind if k not in value and not isinstance(kind[k], Maybe)]
            inside = [f for k in kind if k in value for f in faults(value[k], kind[k], f"{place}.{k}")]
            return [f"{place}.{k} is missing" for k in missing] + inside
        case [each]:
            return [f for i, item in enumerate(value) for f in faults(item, each, f"{place}[{i}]")]
        case Maybe(inner):
            return faults(value, inner, place)
        case OneOf(words):
            return [] if value in words else [f"{place} is {value!r}"]
        case "a number from 0 to 1":
            return [] if isinstance(value, float) and 0 <= value <= 1 else [f"{place} is {value!r}"]
    fits = type(value) is kind or (kind is float and type(value) is int)
    return [] if fits else [f"{place} is {value!r}, no {kind.__name__}"]


def test_the_names_of_a_device_are_those_that_were_promised() -> None:
    promised = "method source rank device events window_us kernel_time_ratio device_op_ratio"
    assert set(CONTRACT) == {*promised.split(), "sm_active_ratio", "tensor_active_ratio", "nvml_util_pct"}
    assert {name for name, kind in DEVICE.items() if not isinstance(kind, Maybe)} == {
        *("method", "source", "device", "events", "window_us")
    }


def test_an_entry_holds_declared_names_alone_and_nothing_of_none() -> None:
    made = entry_of(DeviceEntry, method="m", source="s", events=1, rank=None, word=Word.VOID)
    assert made == {"method": "m", "source": "s", "events": 1, "word": "void"} and type(made["word"]) is str
    with pytest.raises(TypeError, match="busy_ratio"):
        entry_of(DeviceEntry, method="m", source="s", events=1, busy_ratio=0.5)


def test_what_is_written_is_what_the_report_reads(run: Run, tmp_path: Path) -> None:
    _, document = run(decode_loop().write(tmp_path / "t.json"))
    for section, kind in (("devices", DeviceEntry), ("anatomy", Anatomy), ("traces", TraceEntry)):
        [entry] = document[section]
        assert entry.keys() <= {field.name for field in fields(kind)}
        read = msgspec.json.decode(msgspec.json.encode(msgspec.convert(entry, kind, str_keys=True)))
        assert {name: read[name] for name in entry} == entry


def test_the_schema_finds_what_is_wrong() -> None:
    device = {"method": "m", "source": "s", "device": True, "events": 1, "window_us": 2.5, "rank": None}
    assert faults([{**device, "device_op_ratio": 1.5}], [DEVICE]) == [
        "$[0].rank is None, no int",
        "$[0].device is True, no int",
        "$[0].device_op_ratio is 1.5",
    ]
    assert faults({}, {"method": str, "rank": Maybe(int)}) == ["$.method is missing"]


Document = dict[str, Any]
Run = Callable[..., tuple[int, Document]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The exit code and the document of `perfkit layer1 --json ...`."""

    def layer1(*arguments: str | Path) -> tuple[int, Document]:
        code = app.main(["layer1", "--no-record", "--json", *map(str, arguments)])
        return code, json.loads(capsys.readouterr().out, parse_constant=_no_number)

    return layer1


def _no_number(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


def two_devices() -> TraceBuilder:
    trace = TraceBuilder(devices=2)
    add_steady(trace)
    add_steady(trace, DEVICE_BOUND_NS, device=1)
    return trace


def rank(number: int) -> TraceBuilder:
    trace = steady(UNDECIDED_NS)
    trace.distributed(number, 4)
    trace.launch("ncclDevKernel_AllReduce", call_ns=FIRST_NS - 9_000, start_ns=FIRST_NS - 8_000, dur_ns=500)
    return trace


def blind() -> TraceBuilder:
    trace = steady()
    trace.graph_launch(FIRST_NS - 500, [], call_dur_ns=100)
    return trace


def instant() -> TraceBuilder:
    trace = TraceBuilder()
    trace.kernel("instant", FIRST_NS, 0, stream=None)
    return trace


def damaged() -> TraceBuilder:
    trace = steady(operations=20)
    trace.raw('{"ph": "X", "cat": "kernel", "ts": NaN, "dur": Infinity, "name": "n"}')
    trace.raw('{"ph": "X", "cat": "kernel", "name": "cut')
    return trace


INPUTS: dict[str, tuple[int, tuple[Callable[[], TraceBuilder], ...]]] = {
    "host-bound": (0, (decode_loop,)),
    "device-bound": (0, (lambda: steady(DEVICE_BOUND_NS),)),
    "directional": (3, (lambda: steady(operations=10),)),
    "two devices": (3, (two_devices,)),
    "ranks": (3, (lambda: rank(0), lambda: rank(1), lambda: rank(3))),
    "void": (4, (host_only,)),
    "empty": (4, (TraceBuilder,)),
    "void by a guard": (4, (blind,)),
    "no length": (4, (instant,)),
    "void and good": (3, (host_only, steady)),
    "damaged": (4, (damaged,)),
}


@pytest.mark.parametrize("busy_only", [False, True], ids=["whole", "busy only"])
@pytest.mark.parametrize("kind", INPUTS)
def test_documents_of_built_traces_keep_the_contract(
    kind: str, busy_only: bool, run: Run, tmp_path: Path
) -> None:
    expected, makes = INPUTS[kind]
    if busy_only and expected == 0:  # ratios alone are a hint
        expected = 3
    paths = [make().write(tmp_path / f"{number}.json") for number, make in enumerate(makes)]
    code, document = run(*paths, *(["--busy-only"] if busy_only else []))
    assert faults(document, DOCUMENT) == []
    assert (code, document["verdict"]["exit_code"]) == (expected, expected)
    assert bool(document["findings"]) == (code != 4)
    assert_devices_and_measurements_agree(document)


def assert_devices_and_measurements_agree(document: Document) -> None:
    measured = {(m["name"], m["scope"]): m["value"] for m in document["measurements"]}
    for device in document["devices"]:
        for name in ("device_op_ratio", "kernel_time_ratio"):
            assert device.get(name) == measured.get((name, device["scope"]))
        assert device.get("kernel_time_ratio", 0) <= device.get("device_op_ratio", 0)


def test_what_was_not_measured_is_absent(run: Run, tmp_path: Path) -> None:
    _, document = run(instant().write(tmp_path / "t.json"))
    [device] = document["devices"]
    assert not {"device_op_ratio", "kernel_time_ratio", "rank", "sm_active_ratio"} & set(device)
    assert [w["window"] for w in device["windows"]] == ["device", "recorded"]


def test_several_ranks_stand_in_a_table_and_each_device_by_itself(run: Run, tmp_path: Path) -> None:
    paths = [rank(number).write(tmp_path / f"{number}.json") for number in (0, 1, 3)]
    _, document = run(*paths)
    assert [d["rank"] for d in document["devices"]] == [0, 1, 3]
    [table] = document["ranks"]
    assert [row["rank"] for row in table["rows"]] == [0, 1, 3]
    assert (table["world_size"], table["missing"]) == (4, 1)
    assert [Path(t["path"]) for t in document["traces"]] == paths


def test_names_out_of_a_file_are_clipped_and_say_how_long_they_are(run: Run, tmp_path: Path) -> None:
    trace = TraceBuilder()
    long, just = "k" * 100_000, "n" * MAX_TEXT_CHARACTERS
    add_steady(trace)
    for place, name in enumerate((long, just)):
        trace.launch(name, call_ns=5_000_000 + place * 10_000, start_ns=5_005_000 + place * 10_000, dur_ns=10)
    trace.cpu_op(long, FIRST_NS, 100)
    _, document = run(trace.write(tmp_path / "t.json"))
    names = [row["name"] for row in document["anatomy"][0]["kernels"]]
    clipped = [name for name in names if name.startswith("kk")]
    assert just in names and len(clipped) == 1
    assert len(clipped[0]) <= MAX_TEXT_CHARACTERS and "[clipped: 100,000 characters]" in clipped[0]
    assert max(map(len, texts_of(document))) <= MAX_TEXT_CHARACTERS


def texts_of(value: Any) -> Iterator[str]:
    """Every text and key in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in (*value.keys(), *value.values()):
            yield from texts_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)


@pytest.mark.parametrize("several_files", [False, True])
def test_of_many_devices_the_least_busy_ones_have_a_strip(
    several_files: bool, run: Run, tmp_path: Path
) -> None:
    traces = [TraceBuilder() for _ in range(MAX_STRIPS + 2 if several_files else 1)]
    for device in range(MAX_STRIPS + 2):
        trace = traces[device % len(traces)]
        add_steady(trace, 9_000 - 500 * device, operations=20, device=device, stream=device)
    _, document = run(*(trace.write(tmp_path / f"{n:02}.json") for n, trace in enumerate(traces)))
    with_strip = [anatomy["strip"] is not None for anatomy in document["anatomy"]]
    assert with_strip == [False] * 2 + [True] * MAX_STRIPS
    left_out = f"strip: kept for the {MAX_STRIPS} least busy of {MAX_STRIPS + 2} devices"
    assert document["left_out"] == left_out


def test_of_few_devices_nothing_is_left_out(run: Run, tmp_path: Path) -> None:
    _, document = run(steady().write(tmp_path / "t.json"))
    assert document["anatomy"][0]["strip"] is not None and "left_out" not in document


def test_the_same_input_gives_the_same_document(run: Run, tmp_path: Path) -> None:
    path = decode_loop().write(tmp_path / "t.json")
    assert run(path) == run(path)


def test_losses_and_files_that_could_not_be_read_are_listed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text("no trace")
    good = damaged().write(tmp_path / "a.json")
    _, document = run(good, tmp_path / "b.json")
    assert document["traces"][0]["losses"]
    assert [entry["path"] for entry in document["unread"]] == [str(tmp_path / "b.json")]
    assert {"PK106", "PK130"} <= {guard["code"] for guard in document["guards"]}


REAL = {
    "h100_bert_small_hostbound.json.gz": "host-bound",
    "mi300_qwen1.5_0.5b.json.gz": "device-bound",
    "sglang_graph_capture_bs32.json.gz": "void",
    "ascend_trace_view.json": "void",
    "large_integer_rank70.json.gz": "device-bound",
    "vllm_decode_graph_mi300.json.gz": "device-bound",
    "ranks": "undecided",
}


@pytest.mark.real_data
@pytest.mark.parametrize("name", REAL)
def test_documents_of_public_traces_keep_the_contract(name: str, run: Run, data_dir: Path) -> None:
    code, document = run(data_dir / "traces" / name)
    assert faults(document, DOCUMENT) == []
    assert (document["verdict"]["word"], document["verdict"]["exit_code"]) == (REAL[name], code)
    assert_devices_and_measurements_agree(document)
