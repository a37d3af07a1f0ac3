"""What batching and scheduling policies are worth to the tts pipeline, on the emulated device.

python -m benchmarks.engine_scheduling [--size small] [--rounds 9] [--requests 96] [--only policies]

One engine in this process, without HTTP, and a closed loop. A round runs every arm once on the same requests,
in turn forwards and backwards; between arms the engine is reconfigured. The first round warms up; all others
count. Ratios are within a round: their median, and the lowest and highest.

Batching: as many clients as slots, continuous against static, on mixed lengths (1 to 20 words) and on very
short ones (1 word each, so all of a batch end at once); and continuous with coalescing, which lets in four at
a time. Policies: three times as many clients as slots, so that a queue stands in front of the decoder; nine
of ten requests have 1 or 2 words, one has 20. Latencies of all rounds are taken together for p99, which needs
n = 368.

*Busy* is the share of the time in which the device ran kernels or copies, *device ms* that time a request;
*rows* are those of a decode step and *chunks* those of a launch of the vocoder, in the mean. Then the claims,
as held or not; a gain holds if the 95 % interval of the median ratio is above 1 (n = 6 at least).
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.engine_loop import EngineLoop, Pass, speech
from benchmarks.engine_vocoder import say
from sample_engine.bench.percentiles import percentile
from sample_engine.scheduling.request import Request

SLOTS = 16
WAITING_CLIENTS = 3 * SLOTS
LONG_WORDS = 20
SHORT_ONES, SHORT_HEAVY_ONES = 6, 2
"""Times as many requests, for a load to last about as long."""
VERY_SHORT = "batching, very short"
MS_PER_S = 1e3

Arm = Mapping[str, object]
Found = dict[str, list[Pass]]

COALESCED: Arm = {"batching": "continuous", "prefill_coalesce": 4, "prefill_coalesce_wait_ms": 5.0}
USUAL: Arm = {
    "batching": "continuous",
    "policy": "per-stage",
    "prefill_coalesce": 1,
    "prefill_coalesce_wait_ms": 0.0,
}


@dataclass(frozen=True, slots=True)
class Study:
    """Arms that are run on the same requests; the first one is what the others are compared with."""

    name: str
    words: Sequence[int]
    clients: int
    arms: Mapping[str, Arm]

    def requests(self, round_number: int) -> list[Request]:
        """In another order each round."""
        words = list(self.words)
        random.Random(round_number).shuffle(words)
        return [speech(f"r{round_number}n{index}", count) for index, count in enumerate(words)]


def studies(requests: int) -> list[Study]:
    mixed = [1 + index % LONG_WORDS for index in range(requests)]
    short_heavy = [
        LONG_WORDS if index % 10 == 0 else 1 + index % 2 for index in range(requests * SHORT_HEAVY_ONES)
    ]
    batching: dict[str, Arm] = {one: {"batching": one} for one in ("static", "continuous")}
    batching["continuous by fours"] = COALESCED
    policies: dict[str, Arm] = {
        one: {"policy": one} for one in ("unified", "per-stage", "per-stage-length-aware")
    }
    return [
        Study("batching, mixed lengths", mixed, SLOTS, batching),
        Study(VERY_SHORT, [1] * (requests * SHORT_ONES), SLOTS, batching),
        Study("policies, short-heavy", short_heavy, WAITING_CLIENTS, policies),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare batching and policies of the engine.")
    parser.add_argument("--size", default="small")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=96)
    parser.add_argument("--only", default="", help="the studies whose name begins so")
    asked = parser.parse_args()
    wanted = [one for one in studies(asked.requests) if one.name.startswith(asked.only)]
    loop = EngineLoop(size=asked.size, max_running_requests=SLOTS)
    print(f"{loop.engine.device.name}, tts {asked.size}, {SLOTS} slots, {asked.rounds} rounds")
    held = [report(study, rounds(loop, study, asked.rounds)) for study in wanted]
    loop.close()
    sys.exit(0 if all(held) else 1)


def rounds(loop: EngineLoop, study: Study, count: int) -> Found:
    """The first round warms up."""
    found: Found = defaultdict(list)
    for index in range(count + 1):
        names = sorted(study.arms, reverse=bool(index % 2))
        for name in names:
            loop.configure({**USUAL, **study.arms[name]})
            measured = loop.run(study.requests(index), study.clients)
            if index:
                found[name].append(measured)
    return found


def report(study: Study, found: Found) -> bool:
    print(f"{study.name}: {len(study.words)} requests, {study.clients} clients")
    head = f"  {'arm':24}{'done/s':>8}{'p50 ms':>8}{'p99 ms':>8}{'busy':>6}"
    compared_with = next(iter(study.arms))
    print(f"{head}{'device ms':>11}{'rows':>7}{'chunks':>8}   done/s over {compared_with}")
    for name in study.arms:
        passes = found[name]
        speed = median(one.done_per_s for one in passes)
        work = median(one.device_ms_a_request for one in passes)
        rows, chunks = median(one.rows for one in passes), median(one.chunks for one in passes)
        print(
            f"  {name:24}{speed:8.1f}{tail_ms(passes, 0.5):>8}{tail_ms(passes, 0.99):>8}"
            f"{median(one.busy for one in passes):6.0%}{work:11.2f}{rows:7.1f}{chunks:8.2f}   "
            + spread(ratios(passes, found[compared_with]))
        )
    return say(claims(study, found))


def claims(study: Study, found: Found) -> dict[str, bool]:
    if "static" in study.arms:
        gain = ratios(found["continuous"], found["static"])
        if study.name == VERY_SHORT:
            return {f"on very short ones continuous gains nothing: {interval(gain)}": not is_gain(gain)}
        return {f"on mixed lengths continuous is faster: {interval(gain)}": is_gain(gain)}
    unified, staged, aware = (found[name] for name in study.arms)
    faster, fastest = ratios(staged, unified), ratios(aware, staged)
    tails = [tail_s(one) for one in (unified, staged, aware)]
    held = {
        f"per-stage is faster than unified: {interval(faster)}": is_gain(faster),
        f"length-aware is faster than per-stage: {interval(fastest)}": is_gain(fastest),
    }
    if all(tails):
        held["p99 the other way round"] = tails[0] < tails[1] < tails[2]
    return held


def ratios(passes: Sequence[Pass], others: Sequence[Pass]) -> list[float]:
    """Throughput within a round."""
    return [one.done_per_s / other.done_per_s for one, other in zip(passes, others, strict=True)]


def interval(values: Sequence[float]) -> str:
    """Of the median ratio, 95 %."""
    found = percentile(values, 0.5)
    return f"{found.low:.2f} to {found.high:.2f}, 95 %" if found else f"n = {len(values)} is too small"


def is_gain(values: Sequence[float]) -> bool:
    """The whole interval is above 1."""
    found = percentile(values, 0.5)
    return found is not None and found.low > 1


def spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f}, n = {len(values)})"


def tail_s(passes: Sequence[Pass], share: float = 0.99) -> float:
    """Of all rounds together; 0 where there are too few requests."""
    found = percentile([latency for one in passes for latency in one.latencies_s], share)
    return found.value if found else 0.0


def tail_ms(passes: Sequence[Pass], share: float) -> str:
    value_s = tail_s(passes, share)
    return f"{value_s * MS_PER_S:.0f}" if value_s else "n small"


if __name__ == "__main__":
    main()
