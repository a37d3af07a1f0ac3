"""The guards on how a sweep was set up: PK340 to PK345, each where it fires and where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from layers.evidence.guard import Checked, Effect, apply_guards
from layers.layer3_sweep.guards_grid import ARMS_GUARDS, SETUP_GUARDS, Arms, SetUp, same_value

REPORTED = {"max_batch": 8, "engine": {"cuda-graph": True, "max_batch": 8}, "name": "x"}


def of_pass(code: str, **setup: Any) -> Checked | None:
    made: dict[str, Any] = {"asked": {}, "reported": REPORTED}
    checked = apply_guards(SETUP_GUARDS, SetUp(**made | setup))
    return next((c for c in checked if c.code == code), None)


def of_arms(code: str, **arms: Any) -> Checked | None:
    made: dict[str, Any] = {
        "models": {"": ("a", "b"), "control": ("b",)},
        "machines": {"": "here", "control": ""},
        "passes": {("", 0): 21, ("control", 0): 21},
    }
    checked = apply_guards(ARMS_GUARDS, Arms(**made | arms))
    return next((c for c in checked if c.code == code), None)


def fired(checked: Checked | None) -> bool:
    assert checked is not None
    return checked.fired


def test_pk340_voids_a_cell_whose_setting_the_server_does_not_run_with() -> None:
    told = of_pass("PK340", asked={"max_batch": "16", "cuda_graph": "on"})
    assert told is not None and told.fired and told.effect is Effect.VOID
    assert told.message == "max_batch=16 was asked for, the server says 8"
    assert not fired(of_pass("PK340", asked={"max_batch": "8", "cuda_graph": "on"}))
    assert of_pass("PK340") is None
    assert of_pass("PK340", asked={"max_batch": "16"}, reported=None) is None


def test_pk341_tells_settings_that_nobody_confirms() -> None:
    assert fired(of_pass("PK341", asked={"limits": "raised"}))
    assert fired(of_pass("PK341", asked={"max_batch": "8"}, reported=None))
    assert not fired(of_pass("PK341", asked={"max-batch": "8"}))
    assert of_pass("PK341") is None


@pytest.mark.parametrize(
    ("asked", "reported", "same"),
    [
        ("8", 8, True),
        ("8", 8.0, True),
        ("on", True, True),
        ("off", False, True),
        ("on", False, False),
        ("Host", "host", True),
        ("host", "device", False),
        ("0", False, True),
        ("8", None, False),
    ],
)
def test_a_value_is_compared_as_a_switch_a_number_or_a_word(asked: str, reported: Any, same: bool) -> None:
    assert same_value(asked, reported) is same


def test_pk342_tells_of_a_burst_that_was_refused() -> None:
    told = of_pass("PK342", warmup=64, warmup_shed=14)
    assert told is not None and told.fired and told.effect is Effect.NOTE
    assert told.message == "14 of 64 requests of the warm-up were shed"
    assert not fired(of_pass("PK342", warmup=64))
    assert of_pass("PK342") is None


def test_pk343_tells_arms_that_serve_other_models() -> None:
    assert not fired(of_arms("PK343"))
    assert fired(of_arms("PK343", models={"": ("a",), "control": ("b",)}))
    assert of_arms("PK343", models={"": ("a",), "control": ()}) is None


def test_pk344_tells_arms_that_share_a_machine() -> None:
    assert not fired(of_arms("PK344"))
    assert fired(of_arms("PK344", machines={"": "here", "control": "here"}))
    assert of_arms("PK344", machines={"": "here"}) is None


def test_pk345_tells_cells_that_were_measured_less_than_others() -> None:
    assert not fired(of_arms("PK345"))
    told = of_arms("PK345", passes={("", 0): 21, ("", 1): 18})
    assert told is not None and told.fired and told.message == "from 18 to 21 passes an arm or cell"
    assert of_arms("PK345", passes={("", 0): 21}) is None
