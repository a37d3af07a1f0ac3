"""What a decoder's thread does when nothing runs."""

from __future__ import annotations

import time
from typing import Any

from sample_engine.device import Device
from sample_engine.scheduling.queue import StageQueue

IDLE_S = 0.25
"""How often an idle thread looks whether it shall end, and whether the device is still there."""
NAP_S = 1e-3
"""Between two looks at requests that wait and may not enter yet."""


def rest(waiting: StageQueue[Any], entrance: StageQueue[Any], device: Device) -> None:
    """Wait for something in `entrance`; only a nap if some are `waiting` already. An idle device that is lost
    is noticed here.
    """
    if len(waiting):
        time.sleep(NAP_S)
        return
    entrance.wait(IDLE_S)
    device.streams[0].synchronize()
