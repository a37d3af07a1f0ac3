"""The command of each part: what to measure is the profile's, whom is the server's, how is the part's own."""

from __future__ import annotations

from perfkit.walk.model import Candidate, Part, Profile
from perfkit.walk.subject import Investigated

RESUMABLE = (Part.LAYER3, Part.LAYER4, Part.LAYER5)
"""Commands with --resume: they go on where they were killed."""


def arguments_of(
    part: Part, profile: Profile, whom: Investigated, url: str, candidate: Candidate | None
) -> list[str]:
    """The options of a part; `url` is where the server listens now, `candidate` what Layers 4 and 5 try."""
    if part is Part.PREFLIGHT:
        return [f"--server={url}"]
    if part in (Part.LAYER4, Part.LAYER5):
        assert candidate is not None and candidate.runs
        return _of_change(part, profile, whom, candidate)
    at = [f"--server={url}"]
    if part is Part.LAYER1:
        headers = [f"--header={header}" for header in whom.headers]
        bounds = [f"--{name}={value}" for name, value in whom.roofline.items()]
        return [*at, f"--profile={profile.trace_s:g}", f"--load={profile.load}", *bounds, *headers]
    if part is Part.STAGES:
        return [*at, f"--profile={profile.events_s:g}", f"--load={profile.load}", *whom.load_options()]
    if part is Part.LAYER2:
        amount = [f"--seconds={profile.capture_s:g}", f"--repeats={profile.captures}"]
        amount.append(f"--active-repeats={profile.active_captures}")
        return [*at, f"--load={profile.load}", *amount, *whom.load_options()]
    loads = ",".join(map(str, profile.concurrencies))
    amount = [f"--concurrency={loads}", f"--repeats={profile.sweep_repeats}"]
    passes = [f"--seconds={profile.sweep_s:g}", f"--warmup={profile.warmup_s:g}"]
    return [*at, *amount, *passes, *whom.load_options()]


def _of_change(part: Part, profile: Profile, whom: Investigated, candidate: Candidate) -> list[str]:
    b = "--a-a" if whom.a_a and part is Part.LAYER4 else f"--vs={candidate.vs}"
    arms = [f"--set={candidate.set_}", b, *candidate.common, *whom.load_options()]
    arms.append(f"--pipeline={whom.pipeline}")
    if part is Part.LAYER4:
        amount = [f"--pairs={profile.pairs}", f"--at={profile.load}"]
        passes = [f"--seconds={profile.pass_s:g}", f"--warmup={profile.warmup_s:g}"]
        proof = [*_if_said("--ran", candidate.ran), *_if_said("--unblocked", candidate.unblocks)]
        return [*arms, *amount, *passes, *([] if whom.a_a else proof)]
    return [*arms, *profile.answers, *_if_said("--counter", candidate.ran)]


def _if_said(option: str, value: str) -> list[str]:
    return [f"{option}={value}"] if value else []
