"""The checks of Layer 4: pure functions over one analysed A/B. The entries that they belong to are in
`guards_pairs` (how many, in which order, against which floor) and `guards_arms` (what was compared)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from layers.evidence.guard import Effect, Outcome
from layers.evidence.strength_table import AB_MIN_PAIRS, AB_STRONG_PAIRS
from layers.evidence.wording import counted, first_few, pct
from layers.layer4_ab.differences import is_declared, undeclared
from layers.layer4_ab.logs import less_one
from layers.layer4_ab.metrics import OUTPUT
from layers.layer4_ab.model import AbAnalysis, Arm, Count, Difference, GateState, Round, Start, StartsAre
from layers.layer4_ab.numbers import change, interval, size
from layers.layer4_ab.order import Shift, is_balanced
from layers.layer4_ab.treatment import ran

SHORTER, FAR_SHORTER = 0.01, 0.10
"""Of the output of a request, from one arm to the other: 10 % is the margin of MLPerf's TEST09; 1 % is
perfkit's choice, for a difference that a claim of some percent may consist of."""
LEAST_TO_SHOW = 2
"""Pairs that the rule judges; of one pair any difference counts."""
FAILED_APART = 0.01
"""Of the requests of an arm: a server that refuses work is faster at the rest. perfkit's choice."""
MOST_EXCLUDED = 0.5
"""Of the runs: what is left then is what a rule chose. SGLang-Omni's calibration contract stops there."""


def few_pairs(found: AbAnalysis) -> Outcome | None:
    n = found.primary.pairs if found.primary else 0
    return Outcome(n < AB_MIN_PAIRS, f"{counted(n, 'pair')} of starts; {AB_MIN_PAIRS} are the least")


def no_floor(found: AbAnalysis) -> Outcome | None:
    """Where the order is known the repeats inside the blocks are a floor of their own, from 4 pairs on."""
    if found.floors:
        return Outcome(False, f"{counted(found.floors[0].runs, 'A/A run')} beside this A/B")
    pairs = found.primary.pairs if found.primary else 0
    from_blocks = floor_is_measured(found)
    effect = Effect.NOTE if pairs >= AB_STRONG_PAIRS else None
    own = "repeats of an arm are all there is" if pairs > 1 else "no repeat of an arm"
    foreign = found.foreign_floor
    none = f"the A/A runs are like neither arm ({_told(foreign)})" if foreign else "no A/A run"
    return Outcome(not from_blocks or bool(foreign), f"{none}; {own}", effect)


def floor_is_measured(found: AbAnalysis) -> bool:
    """By A/A runs, or by the repeats of an arm in an order that is known and balanced."""
    pairs = [one for one in found.pairs if not (_lacks_metric(found, one.a) or _lacks_metric(found, one.b))]
    told = [pair.a_first for pair in pairs if pair.a_first is not None]
    ordered = len(told) == len(pairs) >= AB_STRONG_PAIRS and is_balanced(told)
    return bool(found.floors) or ordered


def inside_floor(found: AbAnalysis) -> Outcome | None:
    effect = found.primary
    if effect is None or effect.floor is None or not effect.clear_of_zero:
        return None
    text = f"{interval(effect)} against a floor of {size(effect.floor)}"
    return Outcome(abs(effect.mean) <= effect.floor, text)


def no_spread(found: AbAnalysis) -> Outcome | None:
    effect = found.primary
    if effect is None or effect.spread is None:
        return None
    same = effect.spread == 0 or effect.repeat_spread == 0
    return Outcome(same, f"{counted(effect.pairs, 'pair')} with a spread of {size(effect.spread)}")


def same_file(found: AbAnalysis) -> Outcome | None:
    """A file that holds both arms is told apart by what its runs were made with; a run is of one of them."""
    starts = {one.record: one.start for one in found.a.rounds if one.record}
    both = [f"{starts[one.record]} is {one.start}" for one in found.b.rounds if one.record in starts]
    if both:
        return Outcome(True, f"a run in both arms: {first_few(both)}")
    shared = {a.sha256 for a in found.a.artifacts} & {b.sha256 for b in found.b.artifacts}
    if not shared or found.differences:
        return Outcome(False, "no file is in both arms, or what tells its runs apart was named")
    paths = sorted({one.path for one in (*found.a.artifacts, *found.b.artifacts) if one.sha256 in shared})
    return Outcome(True, f"in both arms: {first_few(paths)}")


def unbalanced(found: AbAnalysis) -> Outcome | None:
    told = [pair.a_first for pair in found.pairs if pair.a_first is not None]
    if not found.pairs:
        return None
    if len(told) < len(found.pairs):
        return Outcome(True, "nothing tells when the runs were: the order is not known", Effect.NOTE)
    text = f"A ran first in {sum(told)} of {counted(len(told), 'pair')}"
    apart = _one_after_the_other(found)
    return Outcome(
        apart or not is_balanced(told), f"{text}; all of one arm before the other" if apart else text
    )


def _one_after_the_other(found: AbAnalysis) -> bool:
    begun = {arm: [s.begun_ns for s in found.starts if s.arm is arm and s.kept] for arm in (Arm.A, Arm.B)}
    a, b = ([at for at in begun[arm] if at is not None] for arm in (Arm.A, Arm.B))
    return len(found.pairs) > 1 and bool(a and b) and (max(a) < min(b) or max(b) < min(a))


def drifted(found: AbAnalysis) -> Outcome | None:
    return _shifted(found.drift, "from the first run to the last")


def order_matters(found: AbAnalysis) -> Outcome | None:
    return _shifted(found.order_effect, "from the first of a pair to the second")


def _shifted(shift: Shift | None, where: str) -> Outcome | None:
    if shift is None:
        return None
    low, high = (f"{100 * less_one(log):+.2f}" for log in (shift.low, shift.high))
    return Outcome(shift.is_clear, f"{change(shift.value)} [{low}, {high}] {where} (n = {shift.n})")


def first_dropped(found: AbAnalysis) -> Outcome | None:
    return Outcome(bool(found.first_round), f"left out of both arms: {found.first_round or 'nothing'}")


def runs_excluded(found: AbAnalysis) -> Outcome | None:
    rounds = found.rounds
    if not rounds:
        return None
    gone = [one for one in rounds if one.excluded]
    kept = f"{len(rounds) - len(gone)} of {counted(len(rounds), 'run')} kept"
    why = first_few(dict.fromkeys(f"{one.arm} {one.start}: {one.excluded}" for one in gone))
    effect = Effect.NOTE if len(gone) <= MOST_EXCLUDED * len(rounds) else None
    return Outcome(bool(gone), f"{kept}; {why}" if gone else kept, effect)


def two_states(found: AbAnalysis) -> Outcome | None:
    arms = " and ".join(found.two_states)
    return Outcome(bool(arms), f"runs of {arms or 'neither arm'} form two groups")


def one_start(found: AbAnalysis) -> Outcome | None:
    """Where an arm has several runs and they all shared a server."""
    shared = [arm for arm in (Arm.A, Arm.B) if _shares(found, arm)]
    names = " and ".join(shared)
    return Outcome(bool(shared), f"all runs of {names or 'no arm'} shared one server start")


def _shares(found: AbAnalysis, arm: Arm) -> bool:
    starts = [start for start in found.starts if start.arm is arm]
    return len(starts) == 1 and len(starts[0].rounds) > 1


def starts_untold(found: AbAnalysis) -> Outcome | None:
    told = found.a.starts_told and found.b.starts_told
    taken = {
        StartsAre.FILE: "each file is taken as one server start",
        StartsAre.RUN: "each run is taken as one server start, as --starts run says",
        StartsAre.ARM: "each arm is taken as one server start, as --starts arm says",
    }[found.question.starts]
    return Outcome(not told, "perfkit started the servers" if told else taken)


def unpaired_starts(found: AbAnalysis) -> Outcome | None:
    """A start that served nothing is told nowhere else: its pair has no ratio."""
    dead = [start for start in found.starts if not any(_served(one) for one in start.rounds)]
    if dead:
        return Outcome(True, f"served nothing: {first_few(map(_start_text, dead))}")
    lacking = [one for pair in found.pairs for one in (pair.a, pair.b) if _lacks_metric(found, one)]
    names = first_few(map(_start_text, (*found.unpaired, *lacking)))
    return Outcome(bool(names), f"without a partner: {names or 'none'}", Effect.NOTE)


def _served(one: Round) -> bool:
    return one.swept.throughput_rps > 0


def _lacks_metric(found: AbAnalysis, start: Start) -> bool:
    return found.primary is not None and start.log(found.primary.metric) is None


def _start_text(start: Start) -> str:
    return f"{start.arm} {start.name}"


def arms_differ(found: AbAnalysis) -> Outcome | None:
    """Without a declared variable one difference is the variable; more than one is nobody's experiment."""
    question = found.question
    declared = [name for name in (question.variable, *question.derived) if name]
    unmeant = undeclared(found.differences, declared)
    if not question.variable and len(unmeant) == 1:
        return Outcome(False, f"they differ in {_told(unmeant)} alone")
    return Outcome(bool(unmeant), _told(unmeant) or "nothing undeclared differs")


def _told(differences: Sequence[Difference]) -> str:
    return first_few(f"{one.name}: {one.a} against {one.b}" for one in differences)


def arms_alike(found: AbAnalysis) -> Outcome | None:
    """Only where a variable was declared that the recordings tell: else nothing says what differs."""
    variable = found.question.variable
    if not variable:
        return None
    known = any(is_declared(name, [variable]) for one in found.rounds for name in one.facts)
    differs = any(is_declared(one.name, [variable]) for one in found.differences)
    if not known:
        return Outcome(True, f"{variable} is in no recording: nothing shows that it was set", Effect.NOTE)
    return Outcome(not differs, f"{variable} is {'other' if differs else 'the same'} in the arms")


def data_differ(found: AbAnalysis) -> Outcome | None:
    return Outcome(
        bool(found.data_differences), _told(found.data_differences) or "the same, where it is told"
    )


def untreated(found: AbAnalysis) -> Outcome | None:
    if not found.treatment:
        return None
    return Outcome(not ran(found.treatment), _counted(found.treatment))


def unchecked(found: AbAnalysis) -> Outcome | None:
    seen = bool(found.treatment)
    return Outcome(not seen, _counted(found.treatment) if seen else "nothing shows that the path ran (--ran)")


def _counted(counts: Sequence[Count]) -> str:
    return first_few(one.text for one in counts)


def outputs_shorter(found: AbAnalysis) -> Outcome | None:
    """A small difference has to be one by the rule of A/Bs, too: which items a short run got to is chance."""
    told = [[OUTPUT.of(one.swept) for one in arm] for arm in _kept_of(found)]
    some, none = ([any(holds(value) for value in arm) for arm in told] for holds in (bool, _is_none_at_all))
    if any(some) and any(none):
        arms = " and ".join(name for name, lacks in zip("AB", none, strict=True) if lacks)
        return Outcome(True, f"a run of {arms} has no output at all, and others have")
    output = found.output
    if output is None:
        return None
    by, a, b = output.ratio - 1, fmean(output.a), fmean(output.b)
    far, shown = abs(by) > FAR_SHORTER, output.claimed or output.pairs < LEAST_TO_SHOW
    effect = None if far else Effect.DIRECTIONAL
    text = f"{a:,.4g} → {b:,.4g} of output a request ({100 * by:+.1f} %)"
    return Outcome(far or (shown and abs(by) > SHORTER), text, effect)


def _is_none_at_all(value: float | None) -> bool:
    return value == 0


def failures_differ(found: AbAnalysis) -> Outcome | None:
    a, b = (_failed_share(arm) for arm in _kept_of(found))
    if a is None or b is None:
        return None
    text = f"{pct(a)} of the requests of A and {pct(b)} of those of B were shed or failed"
    return Outcome(abs(a - b) > FAILED_APART, text)


def _failed_share(rounds: Sequence[Round]) -> float | None:
    counts = [one.swept.counts for one in rounds if one.swept.counts.told]
    asked = sum(one.asked for one in counts)
    return sum(one.shed + one.errors for one in counts) / asked if asked else None


def _kept_of(found: AbAnalysis) -> tuple[list[Round], list[Round]]:
    kept = [one for one in found.rounds if not one.excluded]
    return [one for one in kept if one.arm is Arm.A], [one for one in kept if one.arm is Arm.B]


def at_once(found: AbAnalysis) -> Outcome | None:
    """Runs of the two arms that overlap in time, on one machine as far as anybody knows."""
    spans = [(r.arm, r.begun_ns, r.ended_ns) for r in found.rounds]
    told = [(arm, begun, ended) for arm, begun, ended in spans if begun is not None and ended is not None]
    if len(told) < len(spans):
        return None
    a, b = ([(begun, ended) for arm, begun, ended in told if arm is one] for one in (Arm.A, Arm.B))
    together = sum(max(x[0], y[0]) < min(x[1], y[1]) for x in a for y in b)
    return Outcome(together > 0, f"{counted(together, 'pair')} of runs of both arms overlap in time")


def accuracy_unchecked(found: AbAnalysis) -> Outcome | None:
    gate = found.gates["accuracy"]
    return Outcome(gate.state is GateState.NOT_SHOWN, gate.because)


def accuracy_lost(found: AbAnalysis) -> Outcome | None:
    gate = found.gates["accuracy"]
    if gate.state is GateState.NOT_SHOWN:
        return None
    return Outcome(gate.state is GateState.FAILED, gate.because)


def tails_without_n(found: AbAnalysis) -> Outcome | None:
    said = first_few(found.untold_tails)
    return Outcome(bool(said), f"left out: {said}" if said else "every percentile has its n")


def lost_files(found: AbAnalysis) -> Outcome | None:
    lost = [*found.a.lost, *found.b.lost, *(found.again.lost if found.again else ())]
    return Outcome(bool(lost), first_few(lost) or "all of it was read")


def loads_of_one_arm(found: AbAnalysis) -> Outcome | None:
    said = first_few(found.one_sided_loads)
    return Outcome(bool(said), f"left out: {said}" if said else "both arms have the same loads")


def ended_early(found: AbAnalysis) -> Outcome | None:
    why = found.a.ended_early or found.b.ended_early
    return Outcome(bool(why), why or "every run that was planned, or nobody planned any")


def machine_changed(found: AbAnalysis) -> Outcome | None:
    """Of experiments that perfkit ran: others have no snapshots to compare."""
    changes = [*found.a.changes, *found.b.changes]
    runs = {text.partition(":")[0] for text in changes}
    effect = Effect.NOTE if len(runs) <= MOST_EXCLUDED * len(found.rounds) else None
    return Outcome(bool(changes), first_few(changes) or "nothing that was looked at", effect)
