"""Every guard of pre-flight fires on its trap, and stays clear on the nearest thing that is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from layers.collectors.gpu.inventory_model import Gpu, Inventory
from layers.collectors.processes import Process
from layers.evidence.guard import Checked, Effect, apply_guards
from layers.evidence.verdict import Exit
from layers.preflight.checkouts import Checkout
from layers.preflight.facts import Fact, Section
from layers.preflight.gpu_choice import gpu_states, recommend
from layers.preflight.guards import PREFLIGHT_GUARDS
from layers.preflight.judge import judge
from layers.preflight.judge_difference import DIFFERENCE_GUARDS
from layers.preflight.model import PreflightFacts
from layers.preflight.packages import Package
from layers.preflight.pins import Pin, PinCheck
from layers.preflight.process_tree import Family, Kind, Unattributable
from layers.preflight.snapshot import Snapshot
from layers.preflight.software import EditablePackage, Software
from tests.gpu_builders import GIB, gpu, recording, sampled

IDLE, PEGGED = [0.0] * 30, [97.0] * 30
BURSTS = [0.0] * 29 + [90.0]
CLEAN_MACHINE: dict[str, Fact] = {
    "cpu_governor": "performance",
    "cgroup.cpus": 16.0,
    "cgroup.throttled_periods": 0,
    "cpus_usable": 16,
}


def facts(
    cards: Sequence[tuple[Gpu, Sequence[float], Sequence[float]]] = ((gpu(), IDLE, [0.0]),),
    wanted: int | None = None,
    machine: dict[str, Fact] | None = None,
    sections: Sequence[Section] = (),
    software: Software | None = None,
    **more: Any,
) -> PreflightFacts:
    """A clean machine with one idle card; what is given replaces its part."""
    gpus = [card for card, _, _ in cards]
    recorded = recording(*(s for card, util, memory in cards for s in sampled(card.index, util, memory)))
    states = gpu_states(gpus, [recorded])
    asked = [state for state in states if wanted in (None, state.gpu.index)]
    made = PreflightFacts(
        inventory=Inventory("580", "13.0", tuple(gpus)),
        recordings=(recorded,),
        problems=(),
        gpus=tuple(states),
        wanted=wanted,
        chosen=recommend(asked),
        families=(),
        strangers=(),
        software=software or Software(None),
        snapshot=Snapshot("now", (Section("machine", CLEAN_MACHINE | (machine or {})), *sections)),
        host_pids=True,
    )
    return replace(made, **more)


def check(found: PreflightFacts, name: str) -> Checked | None:
    return next((c for c in apply_guards(PREFLIGHT_GUARDS, found) if c.name == name), None)


def fires(found: PreflightFacts, name: str) -> bool | None:
    checked = check(found, name)
    return None if checked is None else checked.fired


def card(
    util: Sequence[float], memory: float = 0.0, index: int = 0
) -> tuple[Gpu, Sequence[float], Sequence[float]]:
    return gpu(index), util, [memory] * 30


def family(kind: Kind) -> Family:
    member = Process(100, 7, "S", 1, 100, 100, 1000, "python", "")
    return Family(kind, "key", (member,), (100,), "its launcher is gone")


def editable(moved: bool | None = False, dirty: str = "", known: bool = True) -> Software:
    package = Package("engine", "1.2+gabc1234", True, "file:///x", True, "", "/x")
    checkout = Checkout("/x", "abc1234" * 6, "main", 0, 0, dirty) if known else None
    return Software(None, (EditablePackage(package, checkout, moved, "" if known else "no checkout"),))


def pins(kept: bool) -> Software:
    return Software(None, pins=(PinCheck(Pin("f", "torch", ("==2.6.0",)), "2.7.0", kept),))


def cached(newest: bool | None) -> Section:
    return Section("checkpoint", {"revision": "1111", "is_newest_fetched": newest})


def answering(*settings: str) -> Section:
    facts: dict[str, Fact] = {"address": "http://x", **dict.fromkeys(settings, 1)}
    return Section("server", facts, {"/server_info": "HTTP 404"})


TRAPS: dict[str, tuple[PreflightFacts, PreflightFacts]] = {
    "persistent-contention": (facts([card(PEGGED)]), facts([card(BURSTS)])),
    "transient-contention": (facts([card(BURSTS)]), facts([card(IDLE)])),
    "memory-held": (facts([card(IDLE, 30.0 * GIB)]), facts([card(IDLE, 1.0 * GIB)])),
    "utilisation-unknown": (facts([(gpu(mig=True), [], [0.0])]), facts([card(IDLE)])),
    "few-gpu-samples": (facts([card(IDLE[:9])]), facts([card(IDLE[:10])])),
    "card-unseen-at-the-end": (
        facts(asked_s=30, ended_ns=30 * 10**9),
        facts(asked_s=3, ended_ns=3 * 10**9),
    ),
    "gpu-slowed-down": (
        facts([(gpu(slowdowns=("power cap",)), IDLE, [0.0])]),
        facts([(gpu(slowdowns=()), IDLE, [0.0])]),
    ),
    "ecc-errors": (
        facts([(gpu(ecc_uncorrected=2), IDLE, [0.0])]),
        facts([(gpu(ecc_uncorrected=0), IDLE, [0.0])]),
    ),
    "orphans": (facts(families=(family(Kind.ORPHANS),)), facts(families=(family(Kind.RUNNING),))),
    "abandoned-gpu-holders": (facts(families=(family(Kind.ABANDONED),)), facts()),
    "unattributable-processes": (facts(strangers=(Unattributable(0, (7777,), GIB),)), facts()),
    "pins-not-kept": (facts(software=pins(False)), facts(software=pins(True))),
    "checkout-moved-on": (facts(software=editable(moved=True)), facts(software=editable(moved=False))),
    "dirty-checkout": (facts(software=editable(dirty="ab" * 32)), facts(software=editable())),
    "checkout-unknown": (facts(software=editable(known=False, moved=None)), facts(software=editable())),
    "snapshot-not-main": (facts(sections=[cached(False)]), facts(sections=[cached(True)])),
    "server-tells-nothing": (facts(sections=[answering()]), facts(sections=[answering("/v1/models id")])),
    "cpu-clocks-vary": (facts(machine={"cpu_governor": "powersave"}), facts()),
    "cpu-time-limited": (facts(machine={"cgroup.cpus": 4.0}), facts()),
    "few-cores": (facts(machine={"cpus_usable": 2}), facts(machine={"cpus_usable": 4})),
}


def test_every_guard_has_its_trap_here() -> None:
    assert set(TRAPS) == {guard.name for guard in PREFLIGHT_GUARDS}


@pytest.mark.parametrize("name", TRAPS)
def test_the_guard_fires_on_its_trap_and_not_beside_it(name: str) -> None:
    trap, beside = TRAPS[name]
    assert fires(trap, name) is True
    assert fires(beside, name) is False


ONLY_WHERE_IT_APPLIES: dict[str, PreflightFacts] = {
    "persistent-contention": facts([]),
    "few-gpu-samples": facts([card(PEGGED)]),
    "gpu-slowed-down": facts([(gpu(slowdowns=None), IDLE, [0.0])]),
    "ecc-errors": facts([(gpu(ecc_uncorrected=None), IDLE, [0.0])]),
    "abandoned-gpu-holders": facts([]),
    "unattributable-processes": facts([(gpu(processes=None), IDLE, [0.0])]),
    "pins-not-kept": facts(),
    "checkout-moved-on": facts(software=editable(moved=None)),
    "dirty-checkout": facts(software=editable(known=False)),
    "checkout-unknown": facts(),
    "snapshot-not-main": facts(sections=[cached(None)]),
    "server-tells-nothing": facts(),
    "cpu-clocks-vary": facts(machine={"cpu_governor": None}),
    "cpu-time-limited": facts(machine={"cgroup.cpus": None}),
    "few-cores": facts(machine={"cpus_usable": None}),
}


@pytest.mark.parametrize("name", ONLY_WHERE_IT_APPLIES)
def test_a_guard_without_its_facts_says_nothing(name: str) -> None:
    assert fires(ONLY_WHERE_IT_APPLIES[name], name) is None


def test_contention_of_one_card_is_a_note_where_another_is_free() -> None:
    checked = check(facts([card(PEGGED), card(IDLE, index=1)]), "persistent-contention")
    assert checked is not None and checked.fired and checked.effect is Effect.NOTE


def test_contention_of_the_card_that_was_asked_for_is_not() -> None:
    found = facts([card(PEGGED), card(IDLE, index=1)], wanted=0)
    checked = check(found, "persistent-contention")
    assert checked is not None and checked.effect is Effect.VOID
    assert judge(found).verdict.exit_code == Exit.INVALID


@pytest.mark.parametrize(
    ("found", "word", "code", "directional"),
    [
        (facts(), "ready", Exit.OK, False),
        (facts([card(PEGGED)]), "contended", Exit.INVALID, False),
        (facts([(gpu(mig=True), [], [0.0])]), "undecided", Exit.NO_CONCLUSION, False),
        (facts([card(IDLE[:3])]), "ready", Exit.NO_CONCLUSION, True),
        (facts([]), "no-gpu", Exit.OK, False),
    ],
)
def test_verdicts(found: PreflightFacts, word: str, code: Exit, directional: bool) -> None:
    verdict = judge(found).verdict
    assert (verdict.word, verdict.exit_code, verdict.directional) == (word, code, directional)


def test_each_sampled_card_has_a_finding_and_only_the_free_one_a_negative() -> None:
    result = judge(facts([card(PEGGED), card(IDLE, index=1)]))
    refused, free = result.findings
    assert (refused.negative, free.negative) == (False, True)
    assert refused.strength == "medium" and "97 %" in refused.statement
    assert {m.scope for m in refused.measurements} == {"gpu 0"}


def test_the_command_that_uses_the_card_names_it_by_uuid() -> None:
    assert judge(facts()).verdict.next_step == "export CUDA_VISIBLE_DEVICES=GPU-0"


def test_no_more_than_a_few_names_stand_in_a_message() -> None:
    many = Software(None, pins=tuple(PinCheck(Pin("f", f"p{n}", ("==1",)), "2", False) for n in range(9)))
    checked = check(facts(software=many), "pins-not-kept")
    assert checked is not None and checked.message.endswith("and 6 more")


def test_processes_of_a_host_are_counted_with_their_memory() -> None:
    checked = check(facts(strangers=(Unattributable(0, (1, 2), None),)), "unattributable-processes")
    assert checked is not None and "gpu 0: 2 ids that nobody here has" in checked.message


def test_the_guard_of_differences_is_in_the_catalogue() -> None:
    from layers.catalogue import CATALOGUE

    names = {guard.name for guard in CATALOGUE}
    assert names >= {guard.name for guard in PREFLIGHT_GUARDS} | {g.name for g in DIFFERENCE_GUARDS}


@pytest.mark.parametrize(("asked_s", "fires"), [(3, False), (3.9, False), (4, True), (30, True)])
def test_a_card_that_nobody_saw_at_the_end_is_only_a_hint(asked_s: float, fires: bool) -> None:
    """Its thirty samples end at 2.9 s."""
    made = facts([(gpu(), [0.0] * 30, [0.0])], asked_s=asked_s, ended_ns=int(asked_s * 1e9))
    checked = {c.code: c for c in judge(made).guards}["PK028"]
    assert checked.fired is fires
    assert judge(made).verdict.directional is fires


def test_a_server_that_was_asked_for_too_long_tells_nothing() -> None:
    late = Section("server", {}, {"everything": "no answer in 40 s"})
    checked = check(facts(sections=[late]), "server-tells-nothing")
    assert checked is not None and checked.fired
    assert checked.message == "no answer in 40 s"
    assert check(facts(), "server-tells-nothing") is None
