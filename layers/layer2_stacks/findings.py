"""What somebody should do about a thread: findings with their strength, negative ones included.

The first one is the verdict in a sentence. Then what is ruled out, and the lines that stand out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.guard import Checked
from layers.evidence.measurement import Artifact, Measurement
from layers.evidence.strength import Judgement, judge_strength
from layers.evidence.strength_table import Stacks
from layers.evidence.wording import limit, pct
from layers.layer2_stacks import measurements as named
from layers.layer2_stacks.because import AFTER_WAIT, UNDER_LOAD, because, next_step
from layers.layer2_stacks.guards_capture import IDLE_SERVER, NO_LOG
from layers.layer2_stacks.guards_thread import NO_CORE
from layers.layer2_stacks.model import Row, ScopeAnalysis, Share
from layers.layer2_stacks.reading import Reading
from layers.layer2_stacks.wording import called_from, counts, interval, line
from layers.layer2_stacks.words import STANDS_OUT, Word, deciding, mostly_waits, poorest, word_of

NO_WORD = "the captures do not tell which word it is"
UNTOLD = f"strong but for {NO_LOG.title}: whether the profiler kept up is not told"
WORKS = 0.5
"""Of a line's time: on a CPU for more, it mostly works there; for less, it mostly waits in a call."""
ALL_OF_IT = 0.1
"""Where less is left, Amdahl's law gives tenfold and more: no number that helps."""
LINES_TOLD = 3
"""Findings on single lines; the table has more."""


def findings_of(
    reading: Reading,
    guards: Sequence[Checked],
    measured: Sequence[Measurement],
    artifacts: Sequence[Artifact],
    *,
    kernel_agrees: bool = False,
) -> list[Finding]:
    """Of the thread; `kernel_agrees`: schedstat says the same of its time on a CPU."""
    word, (decides, _) = word_of(reading), deciding(reading)
    first = [row.share for row in reading.main.lines[:1]]
    facts = Stacks(*poorest(reading), agree=all(share.agrees is not False for share in (decides, *first)))
    doubt = NO_WORD if word is Word.UNDECIDED else ""
    judged = _judged(facts, guards, kernel_agrees=kernel_agrees, doubt=doubt)
    if judged is None:
        return []
    idle = IDLE_SERVER.fired_in(guards) is not None
    found = _Found(reading, word, judged, tuple(measured), tuple(artifacts), idle)
    ruled_out = [] if idle else found.ruled_out(no_core=NO_CORE.fired_in(guards) is not None)
    return [*found.verdict(), *ruled_out, *found.lines(guards)]


def _judged(
    facts: Stacks, guards: Sequence[Checked], *, kernel_agrees: bool = False, doubt: str = ""
) -> Judgement | None:
    """By the table; not strong where nobody says that the profiler kept up."""
    judged = judge_strength(facts, guards, clear=True, methods_agree=kernel_agrees, doubt=doubt)
    if judged is not None and judged.strength is Strength.STRONG and NO_LOG.fired_in(guards):
        return Judgement(Strength.MEDIUM, f"{UNTOLD} ({facts.counted})", False)
    return judged


@dataclass(frozen=True, slots=True)
class _Found:
    """The thread, its word, how far what is said of it carries, and its measurements. `idle`: it may have had
    no work, so that a wait says nothing, and rules nothing out."""

    reading: Reading
    word: Word
    judged: Judgement
    measured: tuple[Measurement, ...]
    artifacts: tuple[Artifact, ...]
    idle: bool

    def verdict(self) -> Iterator[Finding]:
        tops = [named.leaf_name(named.key_of(row)) for row in self.reading.main.lines[:1]]
        shares = (named.WAITING, named.ON_CPU, named.HOLDS_LOCK)
        kind, step = FindingKind.VERDICT, UNDER_LOAD if self.idle else next_step(self.reading)
        yield self._finding(because(self.reading), step, *shares, *tops, kind=kind)

    def ruled_out(self, *, no_core: bool) -> Iterator[Finding]:
        """What the verdict says is not worth a look; what a thread that had no core computes is not told."""
        if self.word is Word.BLOCKED and no_core:
            return
        kind, main, on_cpu = FindingKind.CONSEQUENCE, self.reading.main, self.reading.on_cpu
        idle, named_share = self.reading.idle, named.WAITING
        if self.word is Word.BLOCKED and mostly_waits(self.reading):
            said = f"this thread's own code is not the limit: {_at_work(main)} ({counts(main)})"
            advice = "do not tune this thread's Python before its wait is explained"
        elif self.word is Word.BLOCKED and on_cpu is not None:
            said = f"what this thread computes is not the limit: {interval(on_cpu)} of its time on a CPU"
            advice, named_share = "do not tune its arithmetic before what it calls is explained", named.ON_CPU
        elif self.word in (Word.BURNING, Word.NOTHING) and idle is not None:
            said = f"waiting is not what this thread does: {interval(main.waiting)} of its ticks"
            advice = "leave locks and queues of this thread alone at this load"
        else:
            return
        yield self._finding(said, advice, named_share, negative=True, kind=kind)

    def lines(self, guards: Sequence[Checked]) -> Iterator[Finding]:
        """The lines that stand out by their interval: what each holds is measured, whatever the word."""
        ticks, captures = self.reading.main.total_ticks, sum(1 for n in self.reading.main.ticks if n)
        for row in self.reading.main.lines[:LINES_TOLD]:
            facts = Stacks(ticks, captures, row.share.agrees is not False)
            judged = _judged(facts, guards)
            if judged is not None and row.share.low >= STANDS_OUT:
                of = replace(self, judged=judged)
                no_work = self.idle and row.wait is not None
                advice = UNDER_LOAD if no_work else _line_advice(row, self.reading)
                yield of._finding(_line_text(row), advice, *_names(row))

    def _finding(
        self,
        statement: str,
        recommendation: str,
        *names: str,
        negative: bool = False,
        kind: FindingKind = FindingKind.OBSERVATION,
    ) -> Finding:
        return Finding(
            statement=statement,
            strength=self.judged.strength,
            rule=self.judged.rule,
            recommendation=recommendation,
            negative=negative,
            measurements=tuple(m for m in self.measured if m.name in names),
            artifacts=self.artifacts,
            scope=self.reading.scope.name,
            kind=kind,
        )


def _at_work(scope: ScopeAnalysis) -> str:
    own = next((row for row in scope.lines if row.wait is None), None)
    return f"the first line that does not wait is {line(own)} {interval(own.share)}" if own else "all wait"


def _names(row: Row) -> tuple[str, str]:
    key = named.key_of(row)
    return named.leaf_name(key), named.cpu_name(key)


def _line_text(row: Row) -> str:
    reached = f",{called_from(row)}" if row.callers else ""
    waits = f", waiting for {row.wait}" if row.wait is not None else ""
    return f"{line(row)} holds {interval(row.share)}{waits}{reached}; of all samples it is {pct(row.of_all)}"


def _line_advice(row: Row, reading: Reading) -> str:
    if row.wait is not None:
        return AFTER_WAIT[row.wait]
    running = reading.lines.get(named.key_of(row))
    if running is None or reading.on_cpu is None:
        return _untimed_advice(row, reading, running)
    if reading.idle is None:
        return f"it works there: {interval(running)} of the time on a CPU. {_gain(running)}"
    half = WORKS * row.share.value
    if running.high <= half:
        return f"it blocks there: on a CPU it is for {interval(running)} of the time. What does it call in C?"
    if running.low < half:
        return f"on a CPU it is for {interval(running)} of the time: part of it may be a call that blocks"
    return f"it works there: {interval(running)} of the time on a CPU. {_gain(row.share)}"


def _untimed_advice(row: Row, reading: Reading, lock: Share | None) -> str:
    """Where no capture tells what the line holds of a CPU; a share of CPU time is none of the thread's."""
    if reading.idle is not None:
        return _gain(row.share)
    if lock is not None:
        return f"it holds the lock there for {interval(lock)} of the time. {_gain(lock)}"
    return "how much of the thread's time that is, these captures do not tell"


def _gain(share: Share) -> str:
    """Amdahl's law for a line's share of the thread's time, by the upper end of its interval."""
    left = 1.0 - share.high
    if left < ALL_OF_IT:
        return "It may be all that the thread does"
    return f"Without it the thread gets {limit(round(1 / left - 1, 3))} faster at most"
