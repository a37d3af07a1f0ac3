"""What a study recorded, as it would be if each configuration had the throughput that a test gives it.

Counters are those that the bundled engine would move: a key on the host refuses graphs and lookahead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from layers.evidence.measurement import Artifact
from layers.evidence.result import Result
from layers.evidence.verdict import Exit, Verdict
from layers.layer4_ab.model import Arm, Recorded, Round
from layers.layer4_ab.study.analyse import Found, analysed
from layers.layer4_ab.study.answers import Compared, references
from layers.layer4_ab.study.evidence import Evidence, Share, Waited, places_of
from layers.layer4_ab.study.jobs import beside
from layers.layer4_ab.study.judge import judge_study
from layers.layer4_ab.study.rounds import Rounds
from layers.layer4_ab.study.steps import Configuration, configurations
from layers.layer4_ab.study.studies import QUICK, Study
from layers.layer4_ab.study.switches import SAME_AUDIO, SPEECH
from tests.ab_builders import RUN_NS, run_of

Rate = Callable[[Configuration], float]
NOISE = (1.0, 0.998, 1.003, 1.001)
FOUR = replace(QUICK, rounds=4)
"""Four rounds conclude strongly, three weakly: most tests want no doubt of theirs."""


def usual(one: Configuration) -> float:
    """Graphs and lookahead act behind a key on the device; batches of the vocoder and the cache by
    themselves; the encoder's thread does nothing."""
    on, rate = one.settings, 20.0
    if on["radix_key"] == "device" and on["cuda_graph"] == "on":
        rate *= 2.0
    if on["radix_key"] == "device" and on["lookahead"] == "on":
        rate *= 1.1
    if on["vocoder_batch"] == "exact-length" and one.load == SPEECH:
        rate *= 1.5
    if on["encoder_cache"] == "on" and one.load == SAME_AUDIO:
        rate *= 1.3
    return rate


def counters(one: Configuration) -> dict[str, float]:
    """Growth of the counters that the study looks at."""
    on = one.settings
    free, speech = on["radix_key"] == "device", one.load == SPEECH
    same = one.load == SAME_AUDIO
    return {
        'engine_radix_keys_total{where="device"}': 900.0 * (free and speech),
        'engine_graph_replays_total{stage="ar"}': 300.0 * (free and speech and on["cuda_graph"] == "on"),
        'engine_lookahead_steps_total{stage="ar"}': 290.0 * (free and speech and on["lookahead"] == "on"),
        'engine_dropped_rows_total{stage="ar"}': 12.0 * (free and speech and on["lookahead"] == "on"),
        'engine_vocoder_items_total{path="batched"}': 80.0 * (speech and on["vocoder_batch"] != "single"),
        'engine_encoder_batches_total{thread="own"}': 40.0 * (not speech and on["encoder_thread"] == "on"),
        'engine_encoder_cache_total{result="hit"}': 70.0 * (same and on["encoder_cache"] == "on"),
    }


def timed(
    study: Study, rate: Rate = usual, of: Callable[[Configuration], Mapping[str, float]] = counters
) -> Rounds:
    """Every round, forwards and backwards in turn."""
    found: dict[str, list[Recorded]] = {}
    place = 0
    for number in range(study.rounds):
        cells = configurations(study)
        for one in cells if number % 2 == 0 else cells[::-1]:
            place += 1
            rps = rate(one) * NOISE[(number + one.place) % len(NOISE)]
            made = Round(
                arm=Arm.A,
                start=f"round {number + 1}, {one.name}",
                number=1,
                swept=run_of(rps, settings=dict(one.settings)),
                facts={"server": "sample-engine 1", **one.settings},
                data={},
                begun_ns=place * 2 * RUN_NS,
                ended_ns=(place * 2 + 1) * RUN_NS,
            )
            found.setdefault(one.key, []).append(
                Recorded((made,), (), of(one), (Artifact(f"{one.key}-{number}.json", "a" * 64, 9),), True)
            )
    return Rounds(found)


def seen(study: Study) -> dict[str, Evidence]:
    """Of every configuration that is looked at: half of the decoder's thread is in the host's keys where they
    are there, and half of a request waits for a vocoder without batches."""
    return {one.key: _evidence(study, one) for load in study.loads for one in beside(study, load)}


def _evidence(study: Study, one: Configuration) -> Evidence:
    shares = [
        Share(thread, place, value, max(0.0, value - 0.1), value + 0.1, 60, 1)
        for thread, places in places_of(study, one.load).items()
        for place in places
        for value in [_value(one, place)]
    ]
    waits = 0.5 if one.settings["vocoder_batch"] == "single" else 0.1
    ledger = (Waited("vocoder", "queue", 60, 200 * waits, waits), Waited("encoder", "queue", 60, 5.0, 0.05))
    return Evidence(one.key, tuple(shares), ledger, {'engine_graph_bytes{stage="ar"}': 1000.0})


def _value(one: Configuration, place: str) -> float:
    if place == "frame_keys.py":
        return 0.5 if one.settings["radix_key"] == "host" else 0.0
    return 0.2


def asked(study: Study, different: str = "") -> dict[str, Compared]:
    """All answers are those of the reference, but for those of the configuration of that key."""
    keys = set(references(study).values())
    return {
        one.key: _compared(one, "different" if one.key == different else "identical")
        for load in study.loads
        for one in beside(study, load)
        if one.key not in keys
    }


def _compared(one: Configuration, word: str) -> Compared:
    code = Exit.OK if word == "identical" else Exit.FAILED
    differ = 0 if word == "identical" else 3
    verdict = Verdict(word, False, f"{differ} of 41 samples differ", code)
    result = Result("regress", verdict, sections={"compared": 41, "different": differ})
    return Compared(one.key, one.name, result)


def found(study: Study = FOUR, rate: Rate = usual, different: str = "") -> Found:
    """Everything recorded."""
    return analysed(study, timed(study, rate), seen(study), asked(study, different))


def judged(study: Study = FOUR, rate: Rate = usual, different: str = "") -> Result:
    return judge_study(found(study, rate, different))
