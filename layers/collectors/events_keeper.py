"""The keeper of a server's request events: a small process that turns them off where perfkit no longer can.

    python …/bootstrap.py layers.collectors.events_keeper:main

On stdin it is told which server and which call (a line of JSON: headers may be secrets, and command lines are
seen by everybody), says `ready`, and waits. A second line means that the events are off: it ends. If stdin
closes without one, perfkit was killed: it makes the call. It lives in a session of its own, beyond Ctrl-C.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

import msgspec

from layers.collectors.server_adapters.adapter import ServerCallFailed
from layers.collectors.server_adapters.calls import Caller

READY = "ready"
TRIES, TRY_AGAIN_S = 5, 1.0
CALL_TIMEOUT_S = 60.0


class Duty(msgspec.Struct, frozen=True):
    """The server, and the call that turns its events off."""

    url: str
    headers: Mapping[str, str]
    verify: bool
    ca_file: str
    path: str
    body: Mapping[str, str]


def main() -> int:
    """The keeper process."""
    duty = msgspec.json.decode(sys.stdin.readline(), type=Duty)
    print(READY, flush=True)
    if sys.stdin.readline():
        return 0
    return 0 if turn_off(duty) else 1


def turn_off(duty: Duty) -> bool:
    """Make the call until the server answers: a refusal means that this run is not recorded any more."""
    caller = Caller(duty.url, duty.headers, duty.verify, duty.ca_file)
    for number in range(TRIES):
        if number:
            time.sleep(TRY_AGAIN_S)
        try:
            caller.post(duty.path, dict(duty.body), CALL_TIMEOUT_S)
        except ServerCallFailed:
            continue
        return True
    return False
