"""The five cases of docs/cases/, and the tutorial on the engine: which commands of perfkit stand in them."""

from __future__ import annotations

from dataclasses import dataclass

SERVER = "{url}"
"""Stands for the address of the server that a step starts."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command: its arguments behind `perfkit`; the options of the engine that it asks, where it does not
    start one itself; the figures of the report that belong to it, by the ends of their names."""

    name: str
    arguments: tuple[str, ...]
    serve: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    text: bool = True
    """Whether its output stands in the page, beside its figures."""
    measured: bool = True
    """Whether it measures something here; else it reads a file, on any machine the same."""


@dataclass(frozen=True, slots=True)
class Case:
    """A page of that folder of docs/, and the steps whose output stands in it, in order."""

    name: str
    steps: tuple[Step, ...]
    folder: str = "cases"


AUDIO = ("--data", "audio:uniform,seconds=1-3,same")
SHORT = ("--repeats", "2", "--seconds", "3", "--warmup", "0.7")
PAIRS = ("--pairs", "4", "--seconds", "3", "--warmup", "1")
FEW = ("--pairs", "2", "--seconds", "2", "--warmup", "1")
"""Enough to see that a path never ran."""
ALL_ON = ("--engine-preset", "optimized")


def switched(name: str, off: str, on: str, *more: str, pairs: tuple[str, ...] = PAIRS) -> tuple[str, ...]:
    """An A/B of one switch with all others on, since they depend on each other."""
    return ("ab", *ALL_ON, "--set", f"{name}={off}", "--vs", f"{name}={on}", *pairs, *more)


def profiled(graphs: str) -> Step:
    serve = ("--preset", "optimized", "--set", f"cuda_graph={graphs}")
    arguments = ("layer1", "--server", SERVER, "--profile", "3", "--load", "4")
    return Step(f"trace-{graphs}", arguments, serve, ("-idle",))


PUBLISHED = "docs/examples/asr_knee_tables.json"
KNEE = Case(
    "asr-knee",
    (
        Step("public-curve", ("import", PUBLISHED), figures=("-sweep",), measured=False),
        Step("public-ledger", ("stages", PUBLISHED), figures=("-stages",), measured=False),
        Step(
            "stock",
            (
                "sweep",
                "--pipeline",
                "asr",
                "--engine-preset",
                "baseline",
                *AUDIO,
                *SHORT,
                "--max-concurrency",
                "64",
            ),
            figures=("-sweep",),
        ),
        Step(
            "ledger",
            ("stages", "--server", SERVER, "--profile", "15", "--load", "64"),
            ("--pipeline", "asr", "--preset", "baseline", "--limits", "stock", "--set", "encoder_cache=off"),
            ("-stages",),
        ),
        Step(
            "raised",
            (
                *("ab", "--pipeline", "asr", "--engine-preset", "baseline", "--set", "limits=stock"),
                *("--vs", "limits=raised", *AUDIO, *PAIRS, "--at", "64"),
            ),
            figures=("-ab-pairs",),
        ),
    ),
)

GRAPH = Case(
    "vocoder-graph",
    (
        profiled("off"),
        profiled("on"),
        Step(
            "ab",
            switched(
                "cuda_graph", "off", "on", "--at", "4", "--ran", 'engine_graph_replays_total{stage="vocoder"}'
            ),
            figures=("-ab-pairs",),
        ),
    ),
)

LOOKAHEAD = Case(
    "lookahead",
    (
        Step(
            "at-4",
            switched("lookahead", "off", "on", "--at", "4", "--ran", "engine_lookahead_steps_total"),
            figures=("-ab-pairs",),
        ),
        Step(
            "at-1",
            switched(
                "lookahead", "off", "on", "--at", "1", "--ran", "engine_lookahead_steps_total", pairs=FEW
            ),
        ),
    ),
)

HASH = Case(
    "device-hash",
    (
        Step(
            "stacks",
            (
                *(
                    "layer2",
                    "--launch",
                    "perfkit engine serve --preset baseline --port {port}",
                    "--load",
                    "8",
                ),
                *("--seconds", "8", "--suspect", "frame_keys.py:61"),
            ),
            figures=("-stacks",),
        ),
        Step(
            "ab",
            switched(
                *(
                    "radix_key",
                    "host",
                    "device",
                    "--at",
                    "4",
                    "--ran",
                    'engine_radix_keys_total{where="device"}',
                ),
                *("--unblocked", 'engine_graph_replays_total{stage="ar"}'),
            ),
            figures=("-ab-pairs",),
        ),
        Step(
            "outputs",
            ("regress", "--set", "radix_key=host", "--vs", "radix_key=device", "--both", "size=tiny"),
        ),
        Step(
            "keys",
            ("regress", "--key-layer", "python -m sample_engine.radix_keys --where device"),
        ),
    ),
)

LENGTHS = Case(
    "exact-length",
    (
        Step(
            "ledger",
            ("stages", "--server", SERVER, "--profile", "10", "--load", "16"),
            ("--preset", "optimized", "--set", "vocoder_batch=single"),
            ("-stages",),
        ),
        Step(
            "ab",
            switched(
                *("vocoder_batch", "single", "exact-length", "--at", "16"),
                *("--ran", 'engine_vocoder_items_total{path="batched"}'),
            ),
            figures=("-ab-pairs",),
        ),
        Step(
            "alone",
            switched(
                *("vocoder_batch", "single", "exact-length", "--at", "1"),
                *("--ran", 'engine_vocoder_items_total{path="batched"}'),
                pairs=FEW,
            ),
        ),
    ),
)

BASELINE = ("--preset", "baseline", "--allow-profilers")
LEARN = Case(
    "learn",
    (
        Step("layer1", ("layer1", "--server", SERVER, "--profile", "3", "--load", "4"), BASELINE),
        Step("stages", ("stages", "--server", SERVER, "--profile", "10", "--load", "8"), BASELINE),
    ),
    "tutorials",
)

TRACE = Case(
    "trace",
    (
        Step(
            "figure",
            ("layer1", "--trace", "docs/examples/decode_loop.json.gz"),
            figures=("-idle",),
            text=False,
        ),
    ),
    "tutorials",
)

CASES = (KNEE, GRAPH, LOOKAHEAD, HASH, LENGTHS, LEARN, TRACE)
