"""What the bundled engine must show on the emulated device, all of it, by the benchmarks of its parts.

python -m benchmarks.engine [--only PART] [--quick] [--realtime]

Each part is a program of its own with its own page of numbers, and says of each claim whether it holds on
this machine. Here they run one after the other, each alone on the machine; at the end stands which held. The
exit code is 1 if one did not. `--quick` takes few rounds, to see that everything runs. All of it takes
half an hour.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A module of this folder, and how few rounds show that it runs."""

    name: str
    module: str
    shows: str
    quick_rounds: int
    realtime: bool = False


PARTS = (
    Part("device", "engine_device", "launch-bound for the right reason", 40, realtime=True),
    Part("vocoder", "engine_vocoder", "graphs by chunk length; exact-length batches", 30, realtime=True),
    Part("decode", "engine_decode", "graph, lookahead and key by batch; the same codes", 8, realtime=True),
    Part("traces", "engine_traces", "an eager server's trace is host-bound, one with graphs busier", 1),
    Part("batches", "engine_batches", "service time against batch, and the best batch", 3),
    Part("scheduling", "engine_scheduling", "static and continuous batching; policies", 2),
    Part("knee", "engine_asr_knee", "limits of the asr pipeline, stock and raised", 1),
    Part("stall", "engine_asr_stall", "the stall of the running batch by the encoder", 5),
    Part("asr", "engine_asr_switches", "encoder thread, cache, batching in the asr pipeline", 2),
    Part("presets", "engine_presets", "all on against all off, end to end", 2),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="All benchmarks of the bundled engine.")
    parser.add_argument("--only", choices=[part.name for part in PARTS], action="append")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--realtime", action="store_true", help="where a part can: ahead of other processes")
    asked = parser.parse_args()
    wanted = [part for part in PARTS if not asked.only or part.name in asked.only]
    codes = {part: run(part, quick=asked.quick, realtime=asked.realtime) for part in wanted}
    print("\nin all")
    for part, code in codes.items():
        print(f"  {'holds' if code == 0 else 'DOES NOT HOLD':14}{part.name:12}{part.shows}")
    sys.exit(1 if any(codes.values()) else 0)


def run(part: Part, *, quick: bool, realtime: bool) -> int:
    """Its exit code; what it prints goes to the same place."""
    command = [sys.executable, "-m", f"benchmarks.{part.module}"]
    command += [f"--rounds={part.quick_rounds}"] * quick + ["--realtime"] * (realtime and part.realtime)
    print(f"\n{part.name}: {part.shows}\n$ {' '.join(['python', *command[1:]])}", flush=True)
    begun_s = time.monotonic()
    code = subprocess.run(command, check=False).returncode
    print(f"({time.monotonic() - begun_s:.0f} s)", flush=True)
    return code


if __name__ == "__main__":
    main()
