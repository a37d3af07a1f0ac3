"""The prefix-cache keys of frames as a program: rows in, keys out, a line of JSON each.

    python -m sample_engine.radix_keys --where device     one kernel on the device, as in the decode step
    python -m sample_engine.radix_keys --where host       blake2b on the host, as in the old way

The first line says what rows and keys are. Both ways go through the code that the engine runs; it says
nothing of how fast that is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from sample_engine.device import Device
from sample_engine.dtypes import INT64
from sample_engine.models.sizes import CHANNELS
from sample_engine.open_device import open_device
from sample_engine.primitives.radix import FOLD
from sample_engine.stages.frame_keys import frame_keys
from sample_engine.stages.payloads import EOS_ID

CODES = 1024
"""Values of a channel, as the codebooks of the largest size have."""
BATCH = 64
"""Rows of one step."""
BUDGET_BYTES = 16 << 20
WATCHDOG_S = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Answers every row on stdin."""
    parser = argparse.ArgumentParser(prog="sample_engine.radix_keys", description="Keys of frames.")
    parser.add_argument("--where", choices=("device", "host"), default="device")
    parser.add_argument("--device", choices=("auto", "cuda", "emulated"), default="auto")
    given = parser.parse_args(arguments)
    head = {"channels": CHANNELS, "values": CODES, "range": FOLD, "reserved": [EOS_ID]}
    print(json.dumps(head), flush=True)
    rows = [json.loads(line)["row"] for line in sys.stdin]
    with open_device(given.device, BUDGET_BYTES, WATCHDOG_S) as device:
        for start in range(0, len(rows), BATCH):
            for key in keys_of(device, given.where, rows[start : start + BATCH]):
                print(json.dumps({"key": key}))
    return 0


def keys_of(device: Device, where: str, rows: Sequence[Sequence[int]]) -> list[int]:
    """The keys of one batch, through the stage's own code."""
    stream, shape = device.streams[0], (len(rows), CHANNELS)
    slot, out = device.pinned(shape, INT64), device.pinned(shape[:1], INT64)
    slot.array[:] = rows
    frames, keys = stream.empty(shape, INT64), stream.empty(shape[:1], INT64)
    stream.copy_in(frames, slot)
    frame_keys("device" if where == "device" else "host", device, stream, [shape]).write(keys, frames)
    stream.copy_out(out, keys)
    stream.synchronize()
    return [int(key) for key in out.array]


if __name__ == "__main__":
    sys.exit(main())
