"""The bundled engine's six switches, as a study needs them: one entry each, in the order of the ladder.

An entry says what the switch needs, under which load it can act at all, what proves that it ran, what it lets
run, where its effect would show, and what it costs. Nothing here is measured: these are the hypotheses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SPEECH, NEW_AUDIO, SAME_AUDIO = "speech", "new audio", "same audio"
"""Loads, by name (`studies.LOADS`)."""
TTS, ASR = "tts", "asr"


@dataclass(frozen=True, slots=True)
class Switch:
    """`off` and `on` are its values; `needs` the values of others without which it cannot engage; `pipelines`
    those in which it has a part. `ran` is the counter that only the switched path moves, `unblocks` counters
    of what it lets run. Where its effect shows: the share of `thread` below `place` (Layer 2), or the `queue`
    of a stage (the ledger). `costs`: counters and gauges that tell what it takes."""

    name: str
    off: str
    on: str
    load: str
    pipelines: tuple[str, ...]
    ran: str
    symptom: str
    hypothesis: str
    needs: Mapping[str, str] = field(default_factory=dict)
    unblocks: tuple[str, ...] = ()
    thread: str = ""
    place: str = ""
    queue: str = ""
    costs: tuple[str, ...] = ()


GRAPH_REPLAYS, LOOKAHEAD_STEPS = (
    'engine_graph_replays_total{stage="ar"}',
    'engine_lookahead_steps_total{stage="ar"}',
)
ENGINE_SWITCHES = (
    Switch(
        name="radix_key",
        off="host",
        on="device",
        load=SPEECH,
        pipelines=(TTS,),
        ran='engine_radix_keys_total{where="device"}',
        symptom="the decoder's thread copies every frame out, waits, hashes it and copies the key in",
        hypothesis="hashing on the device costs a few kernels and lets a step run without the host: the wait "
        "goes, and with it what forbids a captured graph and a step launched ahead",
        unblocks=(GRAPH_REPLAYS, LOOKAHEAD_STEPS),
        thread="ar",
        place="frame_keys.py",
    ),
    Switch(
        name="cuda_graph",
        off="off",
        on="on",
        load=SPEECH,
        pipelines=(TTS, ASR),
        needs={"radix_key": "device"},
        ran=GRAPH_REPLAYS,
        symptom="each kernel of a step is launched by itself, and the device waits for the launches",
        hypothesis="a step that is captured once is one launch afterwards, so the host is no longer the slow "
        "side",
        thread="ar",
        place="launch",
        costs=("engine_graph_bytes", "engine_graph_captures_total"),
    ),
    Switch(
        name="lookahead",
        off="off",
        on="on",
        load=SPEECH,
        pipelines=(TTS, ASR),
        needs={"radix_key": "device"},
        ran=LOOKAHEAD_STEPS,
        symptom="the host waits for the rows of a step before it launches the next",
        hypothesis="a step launched before the last one is read gives the device work while the host "
        "collects; below two rows the plain path is taken",
        thread="ar",
        place="staging.py",
        costs=('engine_dropped_rows_total{stage="ar"}',),
    ),
    Switch(
        name="vocoder_batch",
        off="single",
        on="exact-length",
        load=SPEECH,
        pipelines=(TTS,),
        ran='engine_vocoder_items_total{path="batched"}',
        symptom="chunks of speech wait for the vocoder, which works on them one by one",
        hypothesis="chunks of exactly equal length that wait at once share a launch: most of what a chunk "
        "costs is launching it",
        queue="vocoder",
    ),
    Switch(
        name="encoder_thread",
        off="off",
        on="on",
        load=NEW_AUDIO,
        pipelines=(ASR,),
        ran='engine_encoder_batches_total{thread="own"}',
        symptom="every admission stalls the running batch for as long as its audio is encoded",
        hypothesis="an encoder with a thread and a stream of its own runs beside the decoder's steps",
        queue="encoder",
    ),
    Switch(
        name="encoder_cache",
        off="off",
        on="on",
        load=SAME_AUDIO,
        pipelines=(ASR,),
        ran='engine_encoder_cache_total{result="hit"}',
        symptom="audio that was encoded a moment ago is encoded again",
        hypothesis="states kept by the content of their audio spare the encoder's work; it can act only "
        "where audio comes again",
        queue="encoder",
        costs=("engine_encoder_cache_entries", "engine_device_used_bytes"),
    ),
)


@dataclass(frozen=True, slots=True)
class HostPoint:
    """A synchronise, a copy out or a computation of the host inside a step. `place` and `thread` are where
    Layer 2 sees its own cost, `where` the engine's code; `present`: the values of switches with which it is
    there. `prevents` are counters of what cannot run beside it, `goes_with` the switch that removes it and
    `hidden_by` the one that lets other work pass meanwhile; empty where there is none."""

    name: str
    kind: str
    where: str
    load: str
    thread: str
    place: str
    present: Mapping[str, str] = field(default_factory=dict)
    prevents: tuple[str, ...] = ()
    goes_with: str = ""
    hidden_by: str = ""


HOST_POINTS = (
    HostPoint(
        name="the key of each frame",
        kind="copy out, synchronise, host computation, copy in",
        where="sample_engine/stages/frame_keys.py, HostKeys.write",
        load=SPEECH,
        thread="ar",
        place="frame_keys.py",
        present={"radix_key": "host"},
        prevents=(GRAPH_REPLAYS, LOOKAHEAD_STEPS),
        goes_with="radix_key",
    ),
    HostPoint(
        name="the rows of a decoder's step",
        kind="copy out, synchronise",
        where="sample_engine/stages/staging.py, Staging.read",
        load=SPEECH,
        thread="ar",
        place="staging.py",
        hidden_by="lookahead",
    ),
    HostPoint(
        name="rows handed to their requests",
        kind="host computation",
        where="sample_engine/scheduling/outlets.py, behind DecodeLoop._resolve",
        load=SPEECH,
        thread="ar",
        place="outlets.py",
        hidden_by="lookahead",
    ),
    HostPoint(
        name="the samples of a chunk of speech",
        kind="copy out, synchronise",
        where="sample_engine/stages/vocoder.py, VocoderStage._read",
        load=SPEECH,
        thread="vocoder",
        place="_read",
    ),
    HostPoint(
        name="the states of an audio",
        kind="synchronise, and a copy out above handoff_bytes",
        where="sample_engine/stages/encoder.py, execute_resolve, and sample_engine/stages/handoff.py",
        load=NEW_AUDIO,
        thread="encoder",
        place="encoder.py",
        present={"encoder_thread": "on"},
        hidden_by="encoder_thread",
    ),
    HostPoint(
        name="the ids of a step of the asr decoder",
        kind="copy out, synchronise",
        where="sample_engine/stages/staging.py, Staging.read",
        load=NEW_AUDIO,
        thread="decode",
        place="staging.py",
        hidden_by="lookahead",
    ),
)
"""Every one in a step of the bundled engine: what `grep synchronize, copy_out` finds below stages/, and the
host's work behind it."""


def switch_named(name: str) -> Switch:
    """The entry of a switch."""
    return next(one for one in ENGINE_SWITCHES if one.name == name)
