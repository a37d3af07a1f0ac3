"""The guard on the card that bounds are for: the one that the user names, where the trace names its own."""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard, Outcome
from layers.layer1_gpu_busy.guard_checks import NAME_CHARACTERS, TraceFacts
from layers.layer1_gpu_busy.roofline.gpu_table import is_another
from layers.layer1_gpu_busy.symptoms.device import S8


def _another_card(facts: TraceFacts) -> Outcome | None:
    asked, own = facts.trace.bounds_for, facts.device.busy.device_name if facts.device else ""
    if not asked or not own:
        return None
    text = f"--gpu {asked[:NAME_CHARACTERS]}, and the trace names {own[:NAME_CHARACTERS]}"
    return Outcome(is_another(own, asked), text)


ANOTHER_CARD_NAMED = Guard(
    code="PK198",
    name="another-card-named",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A distance to the roofline, or matrix products far above theirs, of a card that was not there.",
    cause="--gpu names another card than the trace does (deviceProperties). It goes before the trace's own "
    "name, which need not be in the table; peak rates of two cards differ by up to 2x and more.",
    detection="Both names are in the table of cards, and no card bears both. The busy ratios and their "
    f"verdict rest on no card, so it is a note; the distance to the roofline is a hint, and {S8.code} says "
    "whose bound it took.",
    remedy="Leave out --gpu where the trace's own name is in the table (perfkit roofline --list-gpus).",
    source="perfkit: the rates of layers/layer1_gpu_busy/roofline/gpu_table.py, each with its datasheet.",
    check=_another_card,
)

CARD_GUARDS: tuple[Guard[TraceFacts], ...] = (ANOTHER_CARD_NAMED,)
