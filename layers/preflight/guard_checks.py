"""What the guards of pre-flight look for: one pure function per guard."""

from __future__ import annotations

from collections.abc import Iterable

from layers.evidence.guard import Effect, Outcome
from layers.evidence.wording import FEW, counted, first_few
from layers.preflight.checkouts import SHORT_HASH
from layers.preflight.gpu_choice import GIB, MIN_SAMPLES, State
from layers.preflight.model import PreflightFacts
from layers.preflight.process_tree import Family, Kind
from layers.preflight.software import EditablePackage
from layers.preflight.watch import times
from parsers.series_model import Metric

STEADY_GOVERNOR = "performance"
MIN_CORES = 4
"""Scheduler, front, load client and samplers each want one (methodology 1.2: disjoint ranges of cores)."""
MAX_UNSEEN_SHARE = 0.2
"""Of the time of the samples, at its end. perfkit's choice."""
CALL_S = 1.0
"""Of a short time: the last call of a slow driver (340 ms reported) may still be under way."""


def persistent(facts: PreflightFacts) -> Outcome | None:
    return _in_state(facts, State.PERSISTENT)


def transient(facts: PreflightFacts) -> Outcome | None:
    return _in_state(facts, State.TRANSIENT)


def held(facts: PreflightFacts) -> Outcome | None:
    return _in_state(facts, State.HELD)


def unknown(facts: PreflightFacts) -> Outcome | None:
    return _in_state(facts, State.UNKNOWN, State.LOST)


def _in_state(facts: PreflightFacts, *states: State) -> Outcome | None:
    """A card in this state is a note where another one is free to be used instead."""
    if not facts.gpus:
        return None
    found = [one for one in facts.gpus if one.state in states and facts.wanted in (None, one.gpu.index)]
    said = [f"gpu {one.gpu.index}: {one.why}" for one in found]
    return _listed(said, "no card", Effect.NOTE if facts.chosen else None)


def few_samples(facts: PreflightFacts) -> Outcome | None:
    chosen = facts.chosen
    if chosen is None:
        return None
    said = f"gpu {chosen.gpu.index}: {counted(chosen.samples, 'sample')}"
    return Outcome(chosen.samples < MIN_SAMPLES, said)


def unseen_at_the_end(facts: PreflightFacts) -> Outcome | None:
    """Of the recommended card: how long nobody had looked at it when the time was over."""
    if facts.chosen is None or not facts.ended_ns:
        return None
    name = f"gpu {facts.chosen.gpu.index}"
    series = [s for recording in facts.recordings for s in recording.file.series if s.entity == name]
    looks = [times(one) for one in series if one.metric is Metric.NVML_UTIL_PCT]
    last_ns = [int(at_ns[-1]) for at_ns in looks if len(at_ns)]
    if not last_ns:
        return None
    unseen_s = max(0.0, (facts.ended_ns - max(last_ns)) / 1e9)
    said = f"{name}: no sample in the last {unseen_s:.1f} of {facts.asked_s:g} s"
    return Outcome(unseen_s > max(CALL_S, MAX_UNSEEN_SHARE * facts.asked_s), said)


def slowed_down(facts: PreflightFacts) -> Outcome | None:
    known = [gpu for gpu in facts.inventory.gpus if gpu.slowdowns is not None]
    said = [f"gpu {gpu.index}: {', '.join(gpu.slowdowns)}" for gpu in known if gpu.slowdowns]
    return _listed(said, "no card is slowed down") if known else None


def ecc_errors(facts: PreflightFacts) -> Outcome | None:
    known = [gpu for gpu in facts.inventory.gpus if gpu.ecc_uncorrected is not None]
    said = [f"gpu {gpu.index}: {counted(gpu.ecc_uncorrected or 0, 'error')}" for gpu in known]
    bad = [text for text, gpu in zip(said, known, strict=True) if gpu.ecc_uncorrected]
    return _listed(bad, "no uncorrected error") if known else None


def orphans(facts: PreflightFacts) -> Outcome:
    return _listed(map(_family, facts.of_kind(Kind.ORPHANS)), "no process is left of an earlier launch")


def abandoned(facts: PreflightFacts) -> Outcome | None:
    if not facts.gpus:
        return None
    return _listed(map(_family, facts.of_kind(Kind.ABANDONED)), "every holder of a GPU has a living session")


def _family(family: Family) -> str:
    on_gpu = f", {len(family.on_gpu)} on a GPU" if family.on_gpu else ""
    ids = ", ".join(str(process.pid) for process in family.members[:FEW])
    more = ", …" if len(family.members) > FEW else ""
    return f"{counted(len(family.members), 'process')} ({ids}{more}){on_gpu}: {family.why}"


def strangers(facts: PreflightFacts) -> Outcome | None:
    if all(gpu.processes is None for gpu in facts.inventory.gpus):
        return None
    said = [
        f"gpu {one.gpu}: {counted(len(one.pids), 'id')} that nobody here has"
        + (f", {one.memory_bytes / GIB:.1f} GiB" if one.memory_bytes else "")
        for one in facts.strangers
    ]
    return _listed(said, "every process on a GPU can be seen from here")


def broken_pins(facts: PreflightFacts) -> Outcome | None:
    pins = facts.software.pins
    if not pins:
        return None
    said = [
        f"{check.pin.name} {check.installed}, pinned {check.pin.wanted}" for check in pins if not check.kept
    ]
    return _listed(said, f"{counted(len(pins), 'pin')}, all kept")


def moved_checkout(facts: PreflightFacts) -> Outcome | None:
    named = [one for one in facts.software.editables if one.moved is not None]
    said = [f"{_editable(one)}, installed as {one.package.version}" for one in named if one.moved]
    return _listed(said, "editable packages run the commit of their version") if named else None


def dirty_checkout(facts: PreflightFacts) -> Outcome | None:
    known = [one for one in facts.software.editables if one.checkout]
    said = [_editable(one) for one in known if one.checkout and one.checkout.dirty_hash]
    return _listed(said, "editable packages are clean checkouts") if known else None


def unknown_checkout(facts: PreflightFacts) -> Outcome | None:
    editables = facts.software.editables
    said = [f"{one.package.name}: {one.problem}" for one in editables if one.checkout is None]
    return _listed(said, "every editable package has a commit") if editables else None


def _editable(one: EditablePackage) -> str:
    assert one.checkout is not None
    state = f", changes {one.checkout.dirty_hash[:SHORT_HASH]}" if one.checkout.dirty_hash else ""
    return f"{one.package.name} runs commit {one.checkout.commit[:SHORT_HASH]}{state}"


def newer_snapshot(facts: PreflightFacts) -> Outcome | None:
    sections = [section for name in ("checkpoint", "data") if (section := facts.snapshot.section(name)).facts]
    known = [section for section in sections if section.facts.get("is_newest_fetched") is not None]
    said = [
        f"{section.name} {section.facts.get('revision')} is not what refs/main names"
        for section in known
        if not section.facts["is_newest_fetched"]
    ]
    return _listed(said, "what is used is what refs/main names") if known else None


def silent_server(facts: PreflightFacts) -> Outcome | None:
    section = facts.snapshot.section("server")
    if not section.facts and not section.unavailable:  # none was named
        return None
    reasons = "; ".join(dict.fromkeys(section.unavailable.values()))
    answered = len(section.facts) > 1
    return Outcome(not answered, f"{len(section.facts) - 1} settings" if answered else reasons)


def clocked_down(facts: PreflightFacts) -> Outcome | None:
    governor = facts.snapshot.section("machine").facts.get("cpu_governor")
    if governor is None:
        return None
    return Outcome(governor != STEADY_GOVERNOR, f"CPU frequency governor {governor}")


def cpu_limited(facts: PreflightFacts) -> Outcome | None:
    machine = facts.snapshot.section("machine").facts
    quota, throttled = machine.get("cgroup.cpus"), machine.get("cgroup.throttled_periods")
    if not isinstance(quota, float):
        return None
    cores = machine.get("cpus_usable")
    said = f"{quota:g} cores of CPU time for {cores} cores, used up in {throttled or 0} periods so far"
    return Outcome(isinstance(cores, int) and quota < cores, said)


def few_cores(facts: PreflightFacts) -> Outcome | None:
    cores = facts.snapshot.section("machine").facts.get("cpus_usable")
    if not isinstance(cores, int):
        return None
    return Outcome(cores < MIN_CORES, counted(cores, "core"))


def _listed(said: Iterable[str], clear: str, effect: Effect | None = None) -> Outcome:
    """Fired with what is listed, or clear."""
    texts = list(said)
    return Outcome(bool(texts), first_few(texts) or clear, effect)
