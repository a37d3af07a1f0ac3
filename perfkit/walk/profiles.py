"""How much of everything each profile asks for, and what that is enough for."""

from __future__ import annotations

from collections.abc import Mapping

from parsers.errors import UsageError
from perfkit.walk.model import Part, Profile

ONE_TRACE = "medium: one trace, strong where an independent method supports it"
ONE_LEDGER = "medium: one ledger"
THREE_CAPTURES = "strong where its captures agree"
ONE_CURVE = "medium: two repeats a load, strong needs three"


def _reaches(sweep: str, a_b: str, answers: str) -> Mapping[Part, str]:
    return {
        Part.PREFLIGHT: "facts, no findings",
        Part.LAYER1: ONE_TRACE,
        Part.STAGES: ONE_LEDGER,
        Part.LAYER2: THREE_CAPTURES,
        Part.LAYER3: sweep,
        Part.LAYER4: a_b,
        Part.LAYER5: answers,
    }


QUICK = Profile(
    name="quick",
    minutes="5 to 8",
    load=16,
    trace_s=2.0,
    events_s=6.0,
    capture_s=8.0,
    captures=3,
    active_captures=1,
    concurrencies=(1, 4, 16, 64),
    sweep_repeats=2,
    sweep_s=3.0,
    pairs=4,
    pass_s=4.0,
    warmup_s=0.7,
    answers=("--concurrency=4", "--no-stream"),
    can="names the place where the time goes; tells a large effect (tens of percent) from none; sees answers "
    "that a change breaks at one load",
    cannot="be strong on one trace, one ledger or two repeats a load; see an effect of a few percent, or "
    "percentiles beyond p95; see answers that break alone, streamed, or at the edge of a batch size",
    reaches=_reaches(
        ONE_CURVE,
        "strong where the interval of 4 pairs is clear of 0 and of what A does to itself",
        "bit-exact at 4 at a time, cold and warm, whole answers; none of 24 items still allows 11.7 %",
    ),
)
STANDARD = Profile(
    name="standard",
    minutes="20 to 35",
    load=16,
    trace_s=5.0,
    events_s=20.0,
    capture_s=25.0,
    captures=3,
    active_captures=3,
    concurrencies=(1, 2, 4, 8, 16, 32, 64),
    sweep_repeats=3,
    sweep_s=10.0,
    pairs=6,
    pass_s=15.0,
    warmup_s=2.0,
    answers=("--concurrency=1,4,5,16",),
    can="be strong where the table says so for stacks, sweep and A/B; see effects of about five percent",
    cannot="be strong on one trace or one ledger, unless another method agrees",
    reaches=_reaches(
        "strong: three repeats a load",
        "strong: 6 pairs; effects of about five percent",
        "bit-exact alone, on both sides of a batch size and together, cold and warm, whole and streamed",
    ),
)
THOROUGH = Profile(
    name="thorough",
    minutes="55 to 90",
    load=16,
    trace_s=5.0,
    events_s=60.0,
    capture_s=25.0,
    captures=5,
    active_captures=5,
    concurrencies=(1, 2, 4, 8, 16, 32, 64),
    sweep_repeats=5,
    sweep_s=30.0,
    pairs=12,
    pass_s=30.0,
    warmup_s=5.0,
    answers=("--concurrency=1,4,5,16",),
    can="see effects of one to two percent on a quiet machine, and p99 at the higher loads",
    cannot="say what other hardware, another model or another data set would do",
    reaches=_reaches(
        "strong: five repeats a load",
        "strong: 12 pairs; effects of one to two percent on a quiet machine",
        "bit-exact alone, on both sides of a batch size and together, cold and warm, whole and streamed",
    ),
)
PROFILES = {profile.name: profile for profile in (QUICK, STANDARD, THOROUGH)}


def profile_named(name: str) -> Profile:
    """UsageError where there is none."""
    if name not in PROFILES:
        raise UsageError(f"--profile {name}: there are {', '.join(PROFILES)}")
    return PROFILES[name]
