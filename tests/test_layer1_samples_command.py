"""`perfkit layer1 --smi --dcgm`: verdicts of samples alone, and with a trace of the same time beside them.

The pairs of trace and log imitate how real ones disagree: a trace that is blind to graph replays, a card
whose kernels leave its SMs empty, a sampler on another card, a clock in another time zone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from layers.evidence.store import Investigation
from perfkit.cli import app
from tests.golden_text import assert_golden
from tests.writers.chrome import TraceBuilder
from tests.writers.samplers import DCGM_4_5, START, SmiRow, dcgm_dmon, rows, smi_csv, write

PERIOD_NS = 40_000_000
STEPS = 750
SECONDS = STEPS * PERIOD_NS // 10**9
CALL_BEFORE_NS = 1_000_000
FIRST_NS = 10_000_000

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty; faults would be logged beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def trace(busy_share: float, *, replays: int = 0) -> str:
    """A trace of SECONDS that begins when the logs do, of a host that works on meanwhile; `replays` graph
    launches show no operation.
    """
    built = TraceBuilder()
    for step in range(STEPS + 1):
        at_ns = FIRST_NS + step * PERIOD_NS
        busy_ns = round(busy_share * PERIOD_NS) if step < STEPS else 0
        built.launch(f"kernel_{step % 5}", call_ns=at_ns - CALL_BEFORE_NS, start_ns=at_ns, dur_ns=busy_ns)
        built.cpu_op("aten::unique", at_ns, PERIOD_NS - 2 * CALL_BEFORE_NS)
    for step in range(replays):
        built.graph_launch(FIRST_NS + step * PERIOD_NS + PERIOD_NS // 2, [])
    return str(built.write(Path("trace.json")))


def smi(values: Sequence[float], name: str = "gpu.csv", **options: Any) -> str:
    return write(Path(name), smi_csv(rows(values, **options)))


def steady_smi(percent: float, name: str = "gpu.csv", **options: Any) -> str:
    """As long as the trace, a sample a second."""
    return smi([percent] * (SECONDS + 1), name, **options)


def dcgm(sm: float, tensor: float = 0.05, samples: int = SECONDS + 1, name: str = "dmon.txt") -> str:
    """Rows of dcgmi without times; the first has no values."""
    cells = [("N/A", "N/A"), *[(f"{sm:.3f}", f"{tensor:.3f}")] * samples]
    return write(Path(name), dcgm_dmon(DCGM_4_5, ("SMACT", "TENSO"), [("GPU 0", row) for row in cells]))


class Answer:
    """The document and exit code of one command."""

    def __init__(self, code: int, document: dict[str, Any]) -> None:
        self.code, self.document = code, document
        self.word: str = document["verdict"]["word"]
        self.because: str = document["verdict"]["because"]
        self.directional: bool = document["verdict"]["directional"]
        self.fired = {guard["code"]: guard for guard in document["guards"]}
        self.methods = {(m["method"], m["measures"]): m for m in document["methods"]}
        self.strengths = {finding["strength"] for finding in document["findings"]}


Ask = Callable[..., Answer]


@pytest.fixture
def ask(capsys: Output) -> Ask:
    def layer1(*arguments: str) -> Answer:
        code = app.main(["layer1", "--json", "--no-record", *arguments])
        return Answer(code, json.loads(capsys.readouterr().out))

    return layer1


# Samples alone


def test_low_utilisation_is_host_bound_and_says_what_it_leaves_out(ask: Ask) -> None:
    answer = ask("--smi", steady_smi(30))
    assert (answer.word, answer.code, answer.directional) == ("host-bound", 0, False)
    assert answer.because == "NVML util 30.0 %: no kernel for the rest of the time (31 samples in 30 s)"
    assert answer.strengths == {"weak"}
    assert "samples leave out copies" in answer.document["findings"][0]["rule"]


def test_high_utilisation_alone_is_no_device_bound(ask: Ask) -> None:
    answer = ask("--smi", steady_smi(100))
    assert (answer.word, answer.code) == ("undecided", 3)
    assert answer.fired.keys() == {"PK155"}


def test_high_utilisation_on_full_sms_is_device_bound(ask: Ask) -> None:
    answer = ask("--smi", steady_smi(97), "--dcgm", dcgm(0.90))
    assert (answer.word, answer.code, answer.directional) == ("device-bound", 0, False)
    assert answer.strengths == {"medium"}


def test_high_utilisation_on_empty_sms_is_over_reading(ask: Ask) -> None:
    answer = ask("--smi", steady_smi(97), "--dcgm", dcgm(0.10))
    assert (answer.word, answer.code) == ("undecided", 3)
    assert "left SMs without work" in answer.because
    assert "larger batches" in answer.document["verdict"]["next_step"]
    assert answer.fired["PK155"]["message"] == "NVML util 97.0 %, SM active 10.0 %"


def test_few_samples_only_hint(ask: Ask) -> None:
    answer = ask("--smi", smi([30.0] * 10))
    assert (answer.word, answer.code, answer.directional) == ("host-bound", 3, True)
    assert answer.fired.keys() == {"PK141"}


def test_an_idle_card_beside_a_working_one_is_left_out(ask: Ask) -> None:
    both = [*rows([0.0] * 30, index=0), *rows([30.0] * 30, index=1)]
    answer = ask("--smi", write(Path("gpu.csv"), smi_csv(sorted(both, key=lambda row: row.at))))
    assert (answer.word, answer.code, answer.directional) == ("host-bound", 0, False)
    assert answer.because.endswith("; 1 idle card left out")
    assert {d["entity"]: d["word"] for d in answer.document["devices"]} == {
        "gpu 0": "void",
        "gpu 1": "host-bound",
    }


def test_cards_that_differ_are_undecided(ask: Ask) -> None:
    both = [*rows([99.0] * 30, index=0), *rows([30.0] * 30, index=1)]
    answer = ask("--smi", write(Path("gpu.csv"), smi_csv(both)))
    assert (answer.word, answer.because) == ("undecided", "2 cards differ: 1 undecided, 1 host-bound")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Error: Unable to connect to host engine.\n", "PK148"),
        ("Error setting watches. Result: The third-party Profiling module returned an error\n", "PK147"),
        ("Unable to watch: requires the host engine to be running as root\n", "PK146"),
    ],
)
def test_a_sampler_that_failed_is_void_and_says_why(ask: Ask, text: str, code: str) -> None:
    answer = ask("--dcgm", write(Path("dmon.txt"), text))
    assert (answer.word, answer.code) == ("void", 4)
    assert text.strip() in answer.because
    step = answer.document["verdict"]["next_step"]
    assert step.endswith(f" (perfkit explain {code})")  # after what to do
    assert answer.document["devices"] == []


def test_a_card_without_load_is_void_and_not_host_bound(ask: Ask) -> None:
    answer = ask("--smi", steady_smi(0))
    assert (answer.word, answer.code, answer.because) == ("void", 4, "0.0 % over 31 samples")


def test_false_zeros_are_void(ask: Ask) -> None:
    answer = ask("--smi", steady_smi(97), "--dcgm", dcgm(0.0, 0.0))
    assert answer.fired["PK144"]["scope"] == "dmon.txt, gpu 0"
    assert answer.directional or answer.word == "undecided"


def test_the_document_has_the_names_of_the_contract(ask: Ask) -> None:
    answer = ask("--smi", steady_smi(97), "--dcgm", dcgm(0.90, 0.40))
    by_method = {device["method"]: device for device in answer.document["devices"]}
    smi_row, dcgm_row = by_method["nvidia-smi"], by_method["dcgm"]
    assert (smi_row["device"], smi_row["events"], smi_row["window_us"]) == (0, 31, 30e6)
    assert smi_row["nvml_util_pct"] == 97.0 and "sm_active_ratio" not in smi_row
    assert dcgm_row["sm_active_ratio"] == pytest.approx(0.9)
    assert dcgm_row["tensor_active_ratio"] == pytest.approx(0.4)
    assert "nvml_util_pct" not in dcgm_row and "window_us" not in dcgm_row
    measured = {(m["name"], m["n"], m["n_unit"]) for m in answer.document["measurements"]}
    assert ("nvml_util_pct", 31, "samples") in measured and ("sm_active_ratio", 31, "samples") in measured
    assert answer.methods[("dcgm", "SM active")]["question"] == "how many SMs had work?"


# A trace and samples of the same time


def test_agreement_is_said_and_makes_the_finding_strong(ask: Ask) -> None:
    answer = ask(trace(0.30), "--smi", steady_smi(31))
    assert (answer.word, answer.code) == ("host-bound", 0)
    assert answer.because.endswith("; NVML util agrees (31.0 %, n = 30)")
    first = answer.document["findings"][0]
    assert first["strength"] == "strong" and "independent method" in first["rule"]


def test_a_trace_that_is_blind_to_replays_leaves_the_word_to_the_samples(ask: Ask) -> None:
    answer = ask(trace(0.30, replays=500), "--smi", steady_smi(97), "--dcgm", dcgm(0.90))
    assert (answer.word, answer.code) == ("device-bound", 0)
    assert "the trace is void: 500 of 500 graph launches" in answer.because
    assert answer.fired["PK101"]["effect"] == "void"
    assert "blind to 500 graph launches without operations (PK101)" in answer.fired["PK158"]["message"]


def test_a_difference_of_one_time_is_explained_and_leaves_no_verdict(ask: Ask) -> None:
    answer = ask(trace(0.30), "--smi", steady_smi(97))
    assert (answer.word, answer.code) == ("undecided", 3)
    assert answer.because.startswith(
        "device-op time of chrome-trace 30.0 %, NVML util of nvidia-smi 97.0 % (n = 30): the sampler saw more"
    )
    assert answer.strengths == {"weak"}
    (comparison,) = answer.document["comparisons"]
    assert (comparison["times"], comparison["agree"]) == ("same time", False)


def test_a_busy_device_with_empty_sms_is_told_to_fill_them(ask: Ask) -> None:
    answer = ask(trace(0.95), "--smi", steady_smi(97), "--dcgm", dcgm(0.10))
    assert (answer.word, answer.code, answer.directional) == ("device-bound", 3, True)
    assert answer.because.endswith("; NVML util agrees (97.0 %, n = 30); SM active only 10.0 %")
    assert answer.fired["PK166"]["message"] == "device busy 95.0 %, SM active 10.0 % (dcgm, n = 31)"
    assert answer.strengths == {"weak"}
    assert "larger batches" in answer.document["verdict"]["next_step"]
    assert "PK116" not in answer.fired and "PK155" in answer.fired


@pytest.mark.parametrize(("sm", "samples", "code"), [(0.6, SECONDS + 1, 0), (0.1, 5, 0), (0.85, 31, 0)])
def test_sms_that_are_half_full_or_hardly_sampled_are_a_note_at_most(
    sm: float, samples: int, code: int, ask: Ask
) -> None:
    answer = ask(trace(0.95), "--smi", steady_smi(97), "--dcgm", dcgm(sm, samples=samples))
    assert (answer.word, answer.code) == ("device-bound", code)
    assert [answer.fired[code]["effect"] for code in ("PK166",) if code in answer.fired] == (
        ["note"] if sm < 0.8 else []
    )


def test_a_log_of_another_card_than_the_traces_number_supports_nothing(ask: Ask) -> None:
    same = ask(trace(0.30), "--smi", steady_smi(30))
    assert "strong" in same.strengths and "PK168" not in same.fired
    other = ask(trace(0.30), "--smi", steady_smi(30, index=3))
    assert (other.word, other.code) == ("host-bound", 0)
    assert "strong" not in other.strengths
    assert other.fired["PK168"]["message"].startswith("device 0 of chrome-trace and gpu 3 of nvidia-smi")
    assert "NVML util agrees, if it is of the same card" in other.because


def test_the_sampler_of_another_card_is_found_out(ask: Ask) -> None:
    samples = [*rows([0.0] * 31, index=0), *rows([95.0] * 31, index=3)]
    answer = ask(trace(0.95), "--smi", write(Path("gpu.csv"), smi_csv(samples)))
    assert answer.word == "undecided"
    assert answer.because.endswith("not the card of the trace")


def test_samples_of_another_time_confirm_nothing(ask: Ask) -> None:
    later = steady_smi(97, start=START + timedelta(hours=2))
    answer = ask(trace(0.30), "--smi", later)
    assert (answer.word, answer.code) == ("host-bound", 0)
    assert answer.fired["PK159"]["message"].startswith("device-op time and NVML util: different times")
    assert "strong" not in answer.strengths


@pytest.mark.parametrize("offset", ["+02:00", "+0200", "2"])
def test_the_time_zone_of_a_log_can_be_said(ask: Ask, offset: str) -> None:
    local = steady_smi(31, start=START + timedelta(hours=2))
    answer = ask(trace(0.30), "--smi", local, "--utc-offset", offset)
    assert answer.because.endswith("; NVML util agrees (31.0 %, n = 30)")


def test_void_samples_do_not_cost_the_verdict_of_the_trace(ask: Ask) -> None:
    log = write(Path("dmon.txt"), "Error: Unable to connect to host engine.\n")
    answer = ask(trace(0.30), "--dcgm", log)
    assert (answer.word, answer.code) == ("host-bound", 0)
    assert "; the samples are void: no DCGM host engine" in answer.because


# The command itself


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a trace"),
        (["--smi", "gpu.csv", "--utc-offset", "noon"], "--utc-offset noon: give it as +HH:MM"),
        (["--smi", "gpu.csv", "--utc-offset", "+15:00"], "--utc-offset +15:00: give it as +HH:MM"),
        (["--smi", "gpu.csv", "--compare", "old.json"], "--compare takes one trace to compare, not 0"),
        (["--smi", "missing.csv"], "missing.csv: cannot be opened"),
        (["--smi", "notes.txt"], "notes.txt: no sampler's log that perfkit knows"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(capsys: Output, arguments: list[str], said: str) -> None:
    steady_smi(30)
    write(Path("notes.txt"), "remember the milk\n")
    assert app.main(["layer1", "--no-record", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and said in captured.err and captured.err.count("\n") == 1


def test_the_result_is_recorded_with_its_logs(capsys: Output) -> None:
    assert app.main(["layer1", "--smi", steady_smi(30), "--dcgm", dcgm(0.2)]) == 0
    with Investigation.open(Path("perfkit-investigation")) as investigation:
        (run,) = investigation.runs()
        stored = investigation.measurements()
    assert run.document["verdict"]["word"] == "host-bound"
    artifacts = {Path(m.measurement.artifact.path).name for m in stored if m.measurement.artifact}
    assert artifacts == {"gpu.csv", "dmon.txt"}


def test_logs_alone_in_the_terminal(capsys: Output) -> None:
    samples = [
        *rows([0.0] * 3 + [97.0] * 31, index=0),
        *rows([0.0] * 34, index=1),
        SmiRow(START + timedelta(seconds=60), 1, "[N/A]"),
    ]
    app.main(
        ["layer1", "--no-record", "--smi", write(Path("gpu.csv"), smi_csv(samples)), "--dcgm", dcgm(0.1)]
    )
    assert_golden("layer1_samples.txt", capsys.readouterr().out)


def test_a_trace_and_a_log_in_the_terminal(capsys: Output) -> None:
    app.main(["layer1", "--no-record", "--busy-only", trace(0.30), "--smi", steady_smi(97)])
    assert_golden("layer1_methods_disagree.txt", capsys.readouterr().out)
