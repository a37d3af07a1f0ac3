"""A sweep that is killed and resumed: no request is lost, none is sent twice."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from layers.collectors.load.records import Outcome, Phase
from tests.evidence_builders import start_process
from tests.load_builders import whole
from tests.load_servers import HANG, Asked, Script, Server
from tests.sweep_runs import REQUESTS, loaded, read_all, sweep_plan, swept

LONG_S = 60.0
NEVER = 10**9
SWEEP = """
import sys
from pathlib import Path
from tests.sweep_runs import sweep_plan, swept

swept(Path(sys.argv[1]), sweep_plan(int(sys.argv[2])))
"""


def measured_texts(server: Server) -> Counter[bytes]:
    """What the server was asked for in measured requests, and how often."""
    found = (re.search(rb"measured ([^.]*)\.", asked.body) for asked in server.asked)
    return Counter(one[1] for one in found if one)


def kill_when_asked(server: Server, folder: Path, asked: int) -> None:
    """Run the sweep in a process of its own and kill that once the server was asked so often."""
    process = start_process(SWEEP, str(folder), str(server.port))
    give_up = time.monotonic() + LONG_S
    while len(server.asked) < asked:
        assert time.monotonic() < give_up and process.poll() is None
        time.sleep(0.005)
    orphans = psutil.Process(process.pid).children()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert psutil.wait_procs(orphans, timeout=LONG_S)[1] == []


@pytest.mark.parametrize("kills", [(3, 31), (17, 60, 75)])
def test_no_request_is_lost_or_sent_twice_however_often_a_sweep_is_killed(
    tmp_path: Path, kills: tuple[int, ...]
) -> None:
    folder, held = tmp_path / "sweep", iter(kills)
    until = next(held)

    def script(asked: Asked) -> Script:
        """From the one on at which the sweep is to be killed, no answer comes."""
        return [HANG] if asked.number + 1 >= until else [0.01, *whole()]

    with loaded(script) as server:
        for asked in kills:
            kill_when_asked(server, folder, asked)
            until = next(held, NEVER)
        assert swept(folder, sweep_plan(server.port)) == ""
        texts = measured_texts(server)
    parts = read_all(folder)
    assert len(parts) == 4 and any(len(of_pass) > 1 for of_pass in parts.values())
    assert set(texts.values()) == {1}
    unfinished = 0
    for key, of_pass in parts.items():
        records = [r for one in of_pass for r in one.records if r.phase is Phase.MEASURED]
        assert sorted(r.sequence for r in records) == list(range(REQUESTS)), key
        assert {r.outcome for r in records} <= {Outcome.OK, Outcome.UNFINISHED}
        unfinished += sum(r.outcome is Outcome.UNFINISHED for r in records)
    assert unfinished <= 2 * len(kills) and 4 * REQUESTS - unfinished <= len(texts)
