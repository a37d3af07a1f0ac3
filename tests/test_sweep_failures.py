"""A sweep against servers that misbehave: everything is classified, nothing is lost, and the sweep ends."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from layers.collectors.load.driver import Why
from layers.collectors.load.plan import EndpointChoice, Extent, Load, Timeouts
from layers.collectors.load.records import Outcome, Phase
from layers.layer3_sweep.protocol import PassKey
from tests.load_builders import ROLE, TOKEN, whole
from tests.load_servers import CLOSE, HANG, Asked, Script, Step, answer, chunk, chunked_head
from tests.sweep_runs import Heard, loaded, read_all, sweep_plan, swept

HALF_EVENT: Script = [chunked_head(), chunk(ROLE + TOKEN), chunk(TOKEN[:20]), CLOSE]
CLOSES_EARLY: Script = [answer(b"x" * 100)[:-50], CLOSE]
DRIP: list[Step] = [b"1\r\n:\r\n", 0.1]
DRIPPING: Script = [chunked_head(), *DRIP * 30]
SILENT_WAV: Script = [answer(b"", "audio/wav")]
BROKEN: Script = [answer(b'{"error": "broken"}', status="500 Internal Server Error")]
PATIENCE = {"hangs": Timeouts(first_byte_s=0.4), "drips": Timeouts(total_s=0.5)}
"""Only where a timeout is what is to be seen: a busy machine must not add others."""

MISBEHAVING: dict[str, tuple[Script, str, set[Outcome]]] = {
    "hangs": ([HANG], "chat", {Outcome.TIMEOUT_FIRST}),
    "answers 500": (BROKEN, "chat", {Outcome.HTTP_ERROR}),
    "sends half an event": (HALF_EVENT, "chat", {Outcome.TRUNCATED}),
    "closes early": (CLOSES_EARLY, "chat", {Outcome.TRUNCATED}),
    "drips": (DRIPPING, "chat", {Outcome.TIMEOUT_TOTAL}),
    "sends no audio": (SILENT_WAV, "speech", {Outcome.EMPTY}),
}


@pytest.mark.parametrize("name", MISBEHAVING)
def test_a_server_that_misbehaves_is_classified_and_not_asked_for_ever(tmp_path: Path, name: str) -> None:
    script, endpoint, outcomes = MISBEHAVING[name]
    heard = Heard()
    with loaded(lambda _: list(script)) as server:
        plan = sweep_plan(
            server.port,
            endpoint=EndpointChoice(endpoint),
            extent=Extent(requests=3, warmup_requests=1, drain_s=5.0),
            loads=(Load(1), Load(2), Load(4)),
            timeouts=PATIENCE.get(name, Timeouts()),
        )
        assert swept(tmp_path / "sweep", plan, heard) == ""
        asked = len(server.asked)
    assert [key for key, _, _ in heard.ends] == [PassKey(0, Load(1), 1), PassKey(0, Load(2), 1)]
    records = [r for parts in read_all(tmp_path / "sweep").values() for one in parts for r in one.records]
    assert {r.outcome for r in records} <= outcomes
    assert len(records) == asked or (name in PATIENCE and len(records) > asked)  # given up before it was read
    for _, found, _ in heard.ends:
        assert (found.ok, found.shed, found.errors) == (0, 0, 3)


def test_a_server_that_dies_in_the_middle_ends_its_passes_and_loses_no_request(tmp_path: Path) -> None:
    heard = Heard()
    with ExitStack() as stack:
        server = stack.enter_context(loaded(lambda _: [0.02, *whole()]))
        heard.on_move = lambda progress: stack.close() if progress.ok >= 5 else None
        extent = Extent(duration_s=600.0)
        plan = sweep_plan(server.port, extent=extent, server_gone_s=0.5)
        swept(tmp_path / "sweep", plan, heard)
    ((_, found, part),) = heard.ends
    assert part.ended == Why.SERVER_GONE and "no answer for" in part.error
    ((one,),) = read_all(tmp_path / "sweep").values()
    measured = [r for r in one.records if r.phase is Phase.MEASURED]
    assert {r.sequence for r in measured} == set(range(max(r.sequence for r in measured) + 1))
    served = sum(r.ok for r in one.records)
    assert found.ok == sum(r.ok for r in measured) and 5 <= served <= len(server.asked)
    assert {r.outcome for r in measured} - {Outcome.OK} >= {Outcome.REFUSED}


def test_a_sweep_that_is_told_to_end_keeps_what_it_has_and_goes_on_later(tmp_path: Path) -> None:
    told = threading.Event()

    def script(asked: Asked) -> Script:
        return [HANG] if asked.number >= 8 and not told.is_set() else whole()

    heard = Heard(on_move=lambda progress: told.set() if progress.ok == 8 else None)
    with loaded(script) as server:
        plan = sweep_plan(server.port, repeats=1)
        assert swept(tmp_path / "sweep", plan, heard, told=told.is_set) == "it was told to end"
        assert len(heard.ends) == 1 and not heard.ends[0][2].whole
        assert swept(tmp_path / "sweep", plan) == ""
        bodies = [asked.body for asked in server.asked if b"measured" in asked.body]
    assert len(bodies) == len(set(bodies))
    assert {len(parts) for parts in read_all(tmp_path / "sweep").values()} == {1, 2}
