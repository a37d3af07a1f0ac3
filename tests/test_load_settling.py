"""What ended is settled a few at a time, in order, with looks at the sockets between."""

from __future__ import annotations

import asyncio
from pathlib import Path

from layers.collectors.load.connection import Connection
from layers.collectors.load.driver import SETTLED_AT_ONCE
from layers.collectors.load.exchange import Exchange
from layers.collectors.load.flight import Flight
from layers.collectors.load.loops import ClosedLoop
from layers.collectors.load.plan import Extent, Load
from layers.collectors.load.records import Phase
from layers.collectors.load.wire_log import WireLog
from tests.load_builders import plan_for

ENDED = 11


class Noting(ClosedLoop):
    """Notes which requests it settled."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.settled: list[int] = []

    def _settle(self, connection: Connection | None, exchange: Exchange) -> None:
        self.settled.append(exchange.sequence)


def test_many_that_end_at_once_do_not_keep_the_loop_from_the_sockets(tmp_path: Path) -> None:
    seen: list[int] = []

    async def end_all() -> list[int]:
        loop = asyncio.get_running_loop()
        plan, log = (
            plan_for(tmp_path, 1, Load(ENDED), Extent(requests=ENDED)),
            WireLog(tmp_path / "w", 0),
        )
        with Flight(tmp_path / "flight", ENDED) as flight:
            driver = Noting(loop, plan, 0, {}, log, flight)
            for slot in range(ENDED):
                driver._ended(None, Exchange(slot, 1, Phase.MEASURED, "i", b"", 0, slot))
            while len(driver.settled) < ENDED:
                await asyncio.sleep(0)  # one turn of the loop, in which sockets are looked at
                seen.append(len(driver.settled))
            log.close()
        return driver.settled

    assert asyncio.run(end_all()) == list(range(ENDED))
    assert seen == [SETTLED_AT_ONCE, 2 * SETTLED_AT_ONCE, ENDED]
