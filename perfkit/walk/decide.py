"""What follows from a part: on, to the kernels, or the end. Pure, and every decision says why."""

from __future__ import annotations

from layers.evidence.verdict import Exit
from perfkit.walk.model import Decision, Outcome, Part, Way

KERNELS_INSTEAD = (Part.STAGES, Part.LAYER2, Part.LAYER3, Part.LAYER4, Part.LAYER5)
"""Of little use where the device is the limit: what they find is host time that nobody waits for."""
GAINS = ("improvement",)
WEAKENS = {
    Part.PREFLIGHT: "nothing says whether the machine was fit, nor what exactly is installed",
    Part.LAYER1: "nobody knows whether host or device is the limit: a line of the host may cost time that "
    "nobody waits for",
    Part.STAGES: "nobody knows which stage holds the requests: a line may belong to one that nobody waits "
    "for",
    Part.LAYER2: "no line is named: what to try comes from symptoms and queues alone",
    Part.LAYER3: "what was found holds at the load that was sent alone",
    Part.LAYER4: "nothing is proved: a cause is proposed at best",
    Part.LAYER5: "nothing says that the answers stay right",
}
"""What is missing where a part was left out, or could not be run."""


def decide(outcome: Outcome) -> Decision:
    """By the part's word and exit code."""
    if outcome.failed:
        return Decision(Way.ON, f"{outcome.part.label} could not be run: {WEAKENS[outcome.part]}")
    return RULES[outcome.part](outcome)


def _preflight(outcome: Outcome) -> Decision:
    if outcome.exit_code == Exit.INVALID:
        return Decision(
            Way.ON, "the machine is not fit as it is; every number below is to be taken with that"
        )
    return Decision(Way.ON, "the baseline is recorded; Layer 1 comes first, since it rules out most")


def _layer1(outcome: Outcome) -> Decision:
    if outcome.word == "device-bound" and not outcome.directional:
        return Decision(Way.KERNELS, "the device is busy: kernels and roofline, not the host")
    if outcome.word == "device-bound":
        return Decision(Way.ON, "device-bound is a hint only, so the host is looked at as well")
    if outcome.word == "host-bound":
        hint = ", as far as a hint goes" if outcome.directional else ""
        return Decision(Way.ON, f"the device waits{hint}: which stage, then which line")
    if outcome.exit_code == Exit.INVALID:
        return Decision(Way.ON, "Layer 1 measured nothing, so neither host nor device is ruled out")
    return Decision(Way.ON, "neither host nor device is ruled out")


def _stages(outcome: Outcome) -> Decision:
    if outcome.word == "scheduling-bound":
        return Decision(Way.ON, "requests wait more than they are worked on: limits first, then lines")
    if outcome.word == "stage-bound":
        return Decision(Way.ON, "one stage does most of it: which line of its thread")
    return Decision(Way.ON, "no single stage stands out; the scheduling thread is looked at")


def _layer2(outcome: Outcome) -> Decision:
    if outcome.word in ("blocked", "burning-cpu"):
        return Decision(Way.ON, "a line stands out: how the service answers to load, then a change of it")
    return Decision(Way.ON, "no line stands out; how the service answers to load")


def _layer3(outcome: Outcome) -> Decision:
    if outcome.exit_code == Exit.INVALID:
        return Decision(Way.ON, "the sweep does not stand; what was found before it does")
    return Decision(Way.ON, f"the curve is {outcome.word}; now one change, against the noise of none")


def _layer4(outcome: Outcome) -> Decision:
    if outcome.word in GAINS:
        return Decision(Way.ON, "it gains: are the answers still the same?")
    return Decision(Way.END, f"{outcome.word}: there is no gain to keep, so no answers to compare")


def _layer5(outcome: Outcome) -> Decision:
    if outcome.word in ("identical", "equivalent"):
        return Decision(Way.END, "the answers are the same")
    return Decision(Way.END, f"{outcome.word}: the change is not to be kept as it is")


RULES = {
    Part.PREFLIGHT: _preflight,
    Part.LAYER1: _layer1,
    Part.STAGES: _stages,
    Part.LAYER2: _layer2,
    Part.LAYER3: _layer3,
    Part.LAYER4: _layer4,
    Part.LAYER5: _layer5,
}
