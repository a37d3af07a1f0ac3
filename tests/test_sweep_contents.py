"""A sweep that is read back knows how right its answers were, and what of the server's account is missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from layers.collectors.load.item import Item
from layers.collectors.load.plan import EndpointChoice, Load
from layers.evidence.record_log import RecordLog
from layers.layer3_sweep.assemble import BEGAN_ANEW, Assembled, assemble
from layers.layer3_sweep.collect import run_sweep
from layers.layer3_sweep.model import Accuracy
from layers.layer3_sweep.sweep_folder import read_plan, samples_folder, write_plan
from tests.load_servers import Asked, Script, answer, serving
from tests.sweep_runs import Heard, sweep_plan

HIGHER = "2 at a time"
ITEMS = 24


class Recurring:
    """The same items at every load; the warm-up says which load it is."""

    name, regime, recurring = "recurring", "the same items", True

    def nonce(self, part: str) -> str:
        return ""

    def measured(self, part: str) -> Sequence[Item]:
        return [Item(f"i{n}", text=f"{n} is a number") for n in range(ITEMS)]

    def warmup(self, part: str) -> Sequence[Item]:
        return [Item(f"w{n}", text=f"warm-up {n} of {part}") for n in range(4)]


class Echo:
    """Says what it is asked; at the higher load it says something else to every other item."""

    def __init__(self, faithful: bool) -> None:
        self._faithful, self._loaded = faithful, False

    def __call__(self, asked: Asked) -> Script:
        if asked.head.startswith(b"GET"):
            return [answer(b'{"data": []}')]
        text = json.loads(asked.body)["messages"][0]["content"]
        self._loaded |= HIGHER in text
        every_other = text[0].isdigit() and int(text.split()[0]) % 2 == 0
        mixed_up = every_other and self._loaded and not self._faithful
        said = {"message": {"content": "something else" if mixed_up else text}, "finish_reason": "stop"}
        return [answer(json.dumps({"choices": [said]}).encode())]


def swept(folder: Path, faithful: bool) -> Assembled:
    with serving(Echo(faithful)) as server:
        plan = sweep_plan(server.port, repeats=1, endpoint=EndpointChoice("chat", stream=False))
        folder.mkdir(exist_ok=True)
        write_plan(folder, plan)
        assert run_sweep(plan, folder, Recurring(), Heard()) == ""
    return assemble(folder, plan, recurring=True)


def fired(found: Assembled) -> list[list[str]]:
    """The guards on content that fired in each pass, but for those on its size."""
    return [[c.code for c in checks if c.fired and c.code != "PK323"] for checks in found.checked]


def test_answers_are_compared_with_those_at_the_least_load(tmp_path: Path) -> None:
    found = swept(tmp_path / "sweep", faithful=True)
    right = Accuracy("exact-match", 1.0, ITEMS, 0)
    assert [one.accuracy for one in found.passes] == [right, right] and fired(found) == [[], []]


def test_a_load_that_changes_answers_is_told(tmp_path: Path) -> None:
    found = swept(tmp_path / "sweep", faithful=False)
    assert [one.accuracy.value for one in found.passes if one.accuracy] == [1.0, 0.5]
    assert fired(found) == [[], ["PK321"]]


class Named(Recurring):
    """Items that say which data set they are of."""

    def __init__(self, mix: str) -> None:
        self._mix = mix

    def measured(self, part: str) -> Sequence[Item]:
        return [Item(f"i{n}", text=f"{n} of {self._mix}") for n in range(ITEMS)]


def test_a_cell_is_loaded_with_its_mix_and_its_answers_are_those_of_the_first_with_it(tmp_path: Path) -> None:
    """The server forgets what is right once it has met the other mix."""
    seen: list[str] = []

    def script(asked: Asked) -> Script:
        if asked.head.startswith(b"GET"):
            return [answer(b'{"data": []}')]
        text = json.loads(asked.body)["messages"][0]["content"]
        seen.append(text)
        said = "forgotten" if text.endswith("short") and any(one.endswith("long") for one in seen) else text
        choice = {"message": {"content": said}, "finish_reason": "stop"}
        return [answer(json.dumps({"choices": [choice]}).encode())]

    cells = tuple({"mix": mix} for mix in ("short", "long", "short"))
    mixes = {"short": "text", "long": "text"}
    with serving(script) as server:
        plan = sweep_plan(server.port, repeats=1, cells=cells, mixes=mixes, loads=(Load(1),))
        (tmp_path / "sweep").mkdir()
        write_plan(tmp_path / "sweep", plan)
        datas = {mix: Named(mix) for mix in mixes}
        assert run_sweep(plan, tmp_path / "sweep", Recurring(), Heard(), mixes=datas) == ""
    asked = [text.rpartition(" ")[2] for text in seen if text[0].isdigit()]
    assert asked == ["short"] * ITEMS + ["long"] * ITEMS + ["short"] * ITEMS
    found = assemble(tmp_path / "sweep", read_plan(tmp_path / "sweep"), recurring=True)
    assert [one.settings for one in found.passes] == [*cells]
    assert [one.accuracy.value for one in found.passes if one.accuracy] == [1.0, 1.0, 0.0]


def test_a_server_that_restarts_inside_a_pass_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    found = swept(folder, faithful=True)
    window = found.passes[0].window
    part = next(iter(found.records.values()))[0].part
    samples = samples_folder(folder / part.folder)
    samples.mkdir(parents=True, exist_ok=True)
    assert window.start_ns is not None and window.end_ns is not None
    with RecordLog(samples / "samples-server-metrics.log") as log:
        for at_ns, count in ((window.start_ns, 9.0), (window.end_ns, 1.0)):
            values = {"tgi_request_queue_duration_count": count, "tgi_request_queue_duration_sum": count}
            log.append({"kind": "r", "mono_ns": at_ns, "wall_ns": 0, "call_ns": 1, "values": values})
    again = assemble(folder, found.plan, recurring=True)
    assert again.lost == (f"1 at a time, repeat 1: {BEGAN_ANEW}",)
    assert again.passes[0].server is not None and again.passes[0].stage_ms is None
