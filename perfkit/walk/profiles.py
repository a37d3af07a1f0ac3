"""How much of everything each profile asks for, and what that is enough for."""

from __future__ import annotations

from parsers.errors import UsageError
from perfkit.walk.model import Profile

QUICK = Profile(
    name="quick",
    minutes="5 to 8",
    load=16,
    trace_s=2.0,
    events_s=6.0,
    capture_s=8.0,
    captures=3,
    max_concurrency=32,
    sweep_repeats=2,
    sweep_s=3.0,
    pairs=4,
    pass_s=4.0,
    warmup_s=0.7,
    concurrencies="1,4",
    can="names the place where the time goes; tells a large effect (tens of percent) from none",
    cannot="one trace and one ledger are medium at best, two repeats a load as well; an effect of a few "
    "percent, and percentiles beyond p95, stay unknown",
)
STANDARD = Profile(
    name="standard",
    minutes="25 to 35",
    load=16,
    trace_s=5.0,
    events_s=20.0,
    capture_s=25.0,
    captures=3,
    max_concurrency=64,
    sweep_repeats=3,
    sweep_s=10.0,
    pairs=6,
    pass_s=15.0,
    warmup_s=2.0,
    concurrencies="1,4,5,16",
    can="strong where the table says so for stacks, sweep and A/B; effects of about five percent",
    cannot="one trace and one ledger stay medium unless another method agrees",
)
THOROUGH = Profile(
    name="thorough",
    minutes="80 to 120",
    load=16,
    trace_s=5.0,
    events_s=60.0,
    capture_s=25.0,
    captures=5,
    max_concurrency=64,
    sweep_repeats=5,
    sweep_s=30.0,
    pairs=12,
    pass_s=30.0,
    warmup_s=5.0,
    concurrencies="1,4,5,16",
    can="effects of one to two percent on a quiet machine; p99 at the higher loads",
    cannot="what other hardware, another model or another data set would do",
)
PROFILES = {profile.name: profile for profile in (QUICK, STANDARD, THOROUGH)}


def profile_named(name: str) -> Profile:
    """UsageError where there is none."""
    if name not in PROFILES:
        raise UsageError(f"--profile {name}: there are {', '.join(PROFILES)}")
    return PROFILES[name]
