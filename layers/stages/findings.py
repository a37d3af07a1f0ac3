"""What somebody should do about a ledger: findings with their strength, negative ones included.

The first one is the verdict in a sentence. Others say what refuses requests, how waits grow with load, which
batch would serve a stage best, and what holds others up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layers.evidence.finding import Finding, FindingKind
from layers.evidence.guard import Checked
from layers.evidence.measurement import Measurement
from layers.evidence.strength import Judgement, judge_strength
from layers.evidence.strength_table import StageLedger
from layers.evidence.symptom import Symptom
from layers.evidence.wording import counted, limit, pct
from layers.stages import measurements as named
from layers.stages.model import BatchFit, HeadOfLine, Row, RunLedger, SlowItem
from layers.stages.next_steps import batching_at, next_step, place_of
from layers.stages.signs import SLOW_TIMES
from layers.stages.thresholds import QUEUE_LIMIT, Word, fullest, holding, word_of

NEAR_LOAD = 0.10
"""Runs whose requests in flight differ by less are repeats of one load."""
EXPLAINS = 0.5
"""Of the spread of service times: below it batch size is not what they hang on."""
GAIN = 0.05
"""A predicted gain of less is within what runs differ by."""
MUCH = 0.10
"""Of end-to-end time: hops of less are left out of the sentence."""
WORTH_TELLING = 0.02
"""Of end-to-end time: signs that explain less waiting are left to --json."""
PHENOMENON = "a ledger shows the phenomenon, not its cause"
TABLE_DOUBT = "published means of an unknown number of requests, in one pass"


def findings_of(
    runs: Sequence[RunLedger],
    run: RunLedger,
    guards: Sequence[Checked],
    measured: Sequence[Measurement],
    symptoms: Sequence[Symptom] = (),
) -> list[Finding]:
    """Of the run of the verdict, beside the others; `guards` are those that concern it."""
    word = word_of(run)
    complete = None if run.means_only else run.counts.complete
    facts = StageLedger(complete, len(_repeats(runs, run)))
    doubt = TABLE_DOUBT if run.means_only else ""
    judged = judge_strength(facts, guards, clear=word is not Word.UNDECIDED, doubt=doubt)
    hinted = judge_strength(facts, guards, clear=False, doubt=PHENOMENON)
    if judged is None or hinted is None:
        return []
    found = _Found(runs, run, word, judged, tuple(measured), hinted)
    signs = (found.shed(), found.grows(), found.batches(), found.slow(), found.head_of_line())
    told = [one for part in (found.verdict(), found.ruled_out(), *signs) for one in part]
    return [*told, *(found.symptom(one) for one in symptoms if one.present)]


def _repeats(runs: Sequence[RunLedger], run: RunLedger) -> list[RunLedger]:
    """Runs at the same load with the same word, itself among them."""
    return [
        one
        for one in runs
        if abs(one.load - run.load) <= NEAR_LOAD * run.load and word_of(one) is word_of(run)
    ]


def because(run: RunLedger) -> str:
    """The verdict's reason, with its numbers."""
    full, held = fullest(run), holding(run)
    n = f"{counted(run.counts.complete, 'request')}, " if run.counts.complete else ""
    at = f"{n}{run.load:.3g} in flight" if run.load else n.rstrip(", ")
    waits = f"queue share {pct(run.queue_share)}"
    waits += f" and hops {pct(run.hop_share)}" if run.hop_share >= MUCH else ""
    most = f"most in front of {full.stage} ({pct(full.share + full.hop_share)})"
    works = f"{held.stage} works for {pct(held.work_share)}"
    said = {
        Word.SCHEDULING: f"{waits} of {run.e2e_ms.mean_ms:.4g} ms, {most}; limit {limit(QUEUE_LIMIT)}",
        Word.STAGE: f"{works} of {run.e2e_ms.mean_ms:.4g} ms; {waits}",
    }
    text = said.get(word_of(run), f"{waits} of {run.e2e_ms.mean_ms:.4g} ms; the busiest stage: {works}")
    return f"{text}; {pct(run.residual_share)} unaccounted ({at})"


@dataclass(frozen=True, slots=True)
class _Found:
    """The runs, the one of the verdict, how far what it says carries and a hint does, its measurements."""

    runs: Sequence[RunLedger]
    run: RunLedger
    word: Word
    judged: Judgement
    measured: tuple[Measurement, ...]
    hinted: Judgement

    def verdict(self) -> Iterator[Finding]:
        names = (named.QUEUE_SHARE, named.HOP_SHARE, named.RESIDUAL_SHARE, named.E2E)
        said, advice = because(self.run), next_step(self.run)
        place = place_of(self.run)
        yield self._finding(said, f"{advice}. {place}" if place else advice, *names, kind=FindingKind.VERDICT)

    def ruled_out(self) -> Iterator[Finding]:
        """Waiting is not the problem, or work is not."""
        if self.word in (Word.STAGE, Word.BALANCED):
            waits = self.run.queue_share + self.run.hop_share
            said = f"scheduling is not the limit: requests wait for {pct(waits)} of their time"
            advice = "leave limits of admission and of the queues alone at this load"
        elif self.word is Word.SCHEDULING and self._is_waiting_longer_than_work():
            said = f"no stage's work is the largest part: {pct(holding(self.run).work_share)} in this stage"
            advice = "do not tune that stage's kernels before its queue is explained"
        else:
            return
        kind = FindingKind.CONSEQUENCE
        yield self._finding(said, advice, named.QUEUE_SHARE, named.E2E, negative=True, kind=kind)

    def _is_waiting_longer_than_work(self) -> bool:
        held = holding(self.run)
        return held.work_share < held.share + held.hop_share

    def shed(self) -> Iterator[Finding]:
        counts = self.run.counts
        if not counts.shed:
            return
        said = f"{counts.shed:,} of {counted(counts.all, 'request')} were refused; they are in no wait above"
        advice = "two limits, the one that refuses (backlog) and the one that queues (running): one at a time"
        yield self._finding(said, advice, named.SHED_SHARE, named.QUEUE_SHARE)

    def grows(self) -> Iterator[Finding]:
        """What the longest wait was at the next lower load."""
        lower = [one for one in self.runs if one.load < self.run.load * (1 - NEAR_LOAD)]
        if not lower:
            return
        before = lower[-1]
        rows = {_key(row): row for row in before.rows}
        pairs = [(rows[_key(row)], row) for row in self.run.rows if _key(row) in rows]
        if not pairs:
            return
        old, new = max(pairs, key=lambda pair: pair[1].mean_ms - pair[0].mean_ms)
        what = named.row_name(new.stage, new.kind, new.part)
        said = (
            f"from {before.load:.3g} to {self.run.load:.3g} in flight {what} grows most: {old.mean_ms:.4g} "
            f"to {new.mean_ms:.4g} ms a time, {pct(old.share)} to {pct(new.share)} of a request"
        )
        if new.held is not None:
            said += f"; it holds {new.held:.3g} at a time (Little: arrivals times time)"
        advice = "what lets requests out of it" if new.kind == "queue" else "its service time and its batch"
        yield self._finding(said, advice, named.QUEUE_SHARE, f"{what}_mean_ms")

    def batches(self) -> Iterator[Finding]:
        for fit in self.run.fits:
            if fit.r2 >= EXPLAINS and fit.gain >= GAIN:
                yield self._finding(_batch_text(fit), _batch_advice(fit, self.run), named.E2E)

    def slow(self) -> Iterator[Finding]:
        waits = {q.stage: q.share for q in self.run.queues}
        for slow in self.run.slow:
            if slow.waiting_share * waits.get(slow.stage, 0.0) >= WORTH_TELLING:
                advice = "what is special in it (length, retries, an allocation); a lane of its own for such"
                yield self._finding(_slow_text(slow), advice, named.QUEUE_SHARE)

    def head_of_line(self) -> Iterator[Finding]:
        for head in self.run.head_of_line:
            if head.share * head.mean_ms >= WORTH_TELLING * self.run.e2e_ms.mean_ms:
                advice = "hand over what is built in any order, or give long builds workers of their own"
                yield self._finding(_head_text(head), advice, named.HOP_SHARE)

    def symptom(self, symptom: Symptom) -> Finding:
        """A symptom with its numbers in words: what is usually behind it is a guess."""
        found = self._finding(f"{symptom.code} {symptom.title}", symptom.look_next, named.E2E)
        return replace(
            found,
            strength=self.hinted.strength,
            rule=self.hinted.rule,
            evidence=symptom.numbers,
            disproof=symptom.disproof,
        )

    def _finding(
        self,
        statement: str,
        recommendation: str,
        *names: str,
        negative: bool = False,
        kind: FindingKind = FindingKind.OBSERVATION,
    ) -> Finding:
        scope = self.run.name
        own = tuple(m for m in self.measured if m.scope == scope and m.name in names)
        return Finding(
            statement=statement,
            strength=self.judged.strength,
            rule=self.judged.rule,
            recommendation=recommendation,
            negative=negative,
            measurements=own,
            artifacts=self.run.artifacts,
            scope=scope,
            kind=kind,
        )


def _key(row: Row) -> tuple[str, str, str, bool]:
    return row.stage, row.kind, row.part, row.intended


def _batch_text(fit: BatchFit) -> str:
    law = f"{fit.a_ms:.3g} + {fit.b_ms:.3g}·B^{fit.p:g} ms"
    reach = "beyond what was seen" if fit.beyond_seen else "within what was seen"
    return (
        f"{fit.stage} {fit.kind}: time by batch size is {law} (R² {fit.r2:.2f}, "
        f"{counted(fit.batches, 'batch')}); "
        f"a batch of {fit.best_batch} ({reach}) would serve {pct(fit.gain)} more a second than the usual "
        f"{fit.usual_batch}"
    )


def _batch_advice(fit: BatchFit, run: RunLedger) -> str:
    check = f"a prediction: check it with perfkit sweep --param over the batch of {fit.stage}"
    side = batching_at(run, fit.stage)
    return f"{check}; {side}" if side else check


def _slow_text(slow: SlowItem) -> str:
    return (
        f"{slow.count:,} of {slow.n:,} in {slow.stage} {slow.kind} took {SLOW_TIMES:g} times the median of "
        f"{slow.median_ms:.3g} ms or more (up to {slow.max_ms:.4g} ms, request {slow.request}); "
        f"{pct(slow.waiting_share)} of all waiting there was beside one of them"
    )


def _head_text(head: HeadOfLine) -> str:
    return (
        f"{head.held:,} of {head.n:,} built requests of {head.stage} waited behind an earlier one that was "
        f"still built: {pct(head.share)} of {head.mean_ms:.3g} ms from build to queue"
    )
