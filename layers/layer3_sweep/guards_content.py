"""The guards on content: was it new to the server, was the same amount answered, and was it right?"""

from __future__ import annotations

from math import sqrt

from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, limit
from layers.layer3_sweep.accuracy import ERROR_RATES, Metric
from layers.layer3_sweep.content import CUT_SHARE, ContentFacts
from layers.layer3_sweep.data_sets.beginnings import BEGINNING_CHARACTERS
from layers.layer3_sweep.model import Accuracy

HITS_TOLD = 0.01
"""vLLM's own proposal for when to warn (vllm#52884)."""
HITS_MATTER = 0.10
"""perfkit's choice: a tenth of the prompt work gone shows in any curve."""
LENGTH_CHANGE = 0.05
"""perfkit's choice: within the spread of repeats that sweeps of servers show (2 to 7 %)."""
CONTRADICTING_SHARE = 0.02
"""perfkit's choice; the last event of an answer may repeat a count."""
TOKENS_AN_EVENT = 1.05
"""perfkit's choice: an end token without text is less."""
RATE_ALLOWED = 0.002
"""0.2 points of WER or CER, and SAME_ALLOWED of exact matches, whatever n: four times the differences that
SGLang-Omni's records show between loads of a sound server (WER 0.0122 to 0.0127)."""
SAME_ALLOWED = 0.01
Z_95 = 1.96
"""Two-sided 95 % of the normal distribution."""
LEFT_OUT_TOLD = 0.01
AUDIO_CHANGE = 0.02
"""perfkit's choice: the length of speech by a sound server varies less over some dozen items."""
FEW_ITEMS = 20
"""perfkit's choice, as for samples: fewer contents stand for nothing."""


def _cached(facts: ContentFacts) -> Outcome | None:
    shares = [share for share in (facts.hit_share, facts.cached_share) if share is not None]
    if not shares:
        return None
    share = max(shares)
    meant = facts.recurring and not facts.marked
    effect = Effect.NOTE if meant or share < HITS_MATTER else None
    why = "; items recur at every load" if meant else ""
    return Outcome(share >= HITS_TOLD, f"{100 * share:.1f} % hits in a cache of the server{why}", effect)


def _warmed_up(facts: ContentFacts) -> Outcome:
    text = f"{facts.warmup_shared} of {counted(facts.items, 'measured item')} begin as a warm-up item does"
    return Outcome(facts.warmup_shared > 0 and not facts.marked, text)


def _lengths(facts: ContentFacts) -> Outcome | None:
    mean, least, asked = facts.tokens.mean, facts.least_tokens_mean, facts.tokens.asked_mean
    if mean is None or (least is None and asked is None):
        return None
    text, changed, short = f"{mean:.1f} tokens an answer", False, False
    if least is not None:
        text += f", {least:.1f} at the least load"
        changed = abs(mean - least) > LENGTH_CHANGE * least
    if asked is not None:
        text += f", {asked:.1f} asked for"
        short = mean < (1 - LENGTH_CHANGE) * asked
    return Outcome(changed or short, text, None if changed else Effect.NOTE)


def _counts(facts: ContentFacts) -> Outcome | None:
    tokens = facts.tokens
    if not tokens.served or (not tokens.counted and not tokens.events):
        return None
    missing, wrong = tokens.served - tokens.counted, tokens.contradicting
    text = f"of {counted(tokens.served, 'answer')} {missing} do not say their tokens"
    text += f" and {wrong} say another number than their events carry"
    contradict = wrong > CONTRADICTING_SHARE * tokens.counted
    return Outcome(missing > 0 or contradict, text, None if contradict else Effect.NOTE)


def _clumped(facts: ContentFacts) -> Outcome | None:
    if not facts.tokens.events:
        return None
    each = facts.tokens.tokens_of_events / facts.tokens.events
    return Outcome(each > TOKENS_AN_EVENT, f"{each:.2f} tokens an event")


def _accuracy(facts: ContentFacts) -> Outcome | None:
    here, least = facts.accuracy, facts.least_accuracy
    if here is None or here.metric == Metric.AUDIO:
        return None
    text = f"{here.metric} {here.value:.4f} over {counted(here.items, 'answer')}"
    left_out = here.left_out / (here.items + here.left_out)
    if here.left_out:
        text += f"; {here.left_out} more had none to judge"
    if least is None or least.metric != here.metric:
        return Outcome(left_out > LEFT_OUT_TOLD, text, Effect.NOTE)
    worse = loss(here, least) > allowed_loss(here, least)
    text += f"; at the least load {least.value:.4f} over {least.items}"
    return Outcome(worse or left_out > LEFT_OUT_TOLD, text, None if worse else Effect.NOTE)


def loss(here: Accuracy, least: Accuracy) -> float:
    """By how much a pass is less accurate than the least load; negative where it is more."""
    change = here.value - least.value
    return change if here.metric in ERROR_RATES else -change


def allowed_loss(here: Accuracy, least: Accuracy) -> float:
    """What chance does between two shares of so many answers at 95 %; never less than a stated floor.

    Answers count as the trials, although words are judged: errors of one answer hang together.
    """
    n = here.items + least.items
    pooled = min(1.0, (here.value * here.items + least.value * least.items) / n)
    chance = Z_95 * sqrt(pooled * (1 - pooled) * (1 / here.items + 1 / least.items))
    return max(chance, RATE_ALLOWED if here.metric in ERROR_RATES else SAME_ALLOWED)


def _audio_cut(facts: ContentFacts) -> Outcome | None:
    if facts.audio_ratio is None:
        return None
    text = f"{facts.audio_ratio:.3f} of the audio of the least load"
    if facts.audio_items:
        text += f"; {facts.audio_cut} of {counted(facts.audio_items, 'item')} below {CUT_SHARE:g} of theirs"
    return Outcome(abs(facts.audio_ratio - 1) > AUDIO_CHANGE or facts.audio_cut > 0, text)


def _few_items(facts: ContentFacts) -> Outcome:
    again = facts.requests > facts.items and not facts.marked
    times = f", each asked {facts.requests / facts.items:.1f} times as it is" if again else ""
    text = f"{counted(facts.items, 'item')} for {counted(facts.requests, 'request')}{times}"
    return Outcome(facts.items < FEW_ITEMS or again, text)


CONTENT_CACHED = Guard(
    code="PK316",
    name="content-cached",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="A point that is fast beside its neighbours, and the more so the later it was run.",
    cause="Part of what was asked lay in a cache of the server, of prefixes or of encoded content, and cost "
    "nothing. Passes share their content unevenly, so that this bends the curve.",
    detection=f"Hits by the server's own counters, or cached tokens by its usage, from {limit(HITS_TOLD)} of "
    f"the look-ups; a note below {limit(HITS_MATTER)}, and where items are meant to recur.",
    remedy="Fresh items, or a mark in every request (--data text,fresh or …,nonce); flush caches between "
    "passes; or turn the cache off.",
    source="vllm#52884, vllm#54227: throughput 1.86 times too high, single points 76 %.",
    check=_cached,
)

WARMUP_SHARED = Guard(
    code="PK317",
    name="warmup-shares-content",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="First requests of a pass that are far faster than the rest.",
    cause="Items of the warm-up begin as measured ones do: the warm-up filled the cache for them.",
    detection=f"The first {BEGINNING_CHARACTERS} characters of a measured item (a block of vLLM's prefix "
    "cache, 16 tokens), or its file of audio, are those of a warm-up item.",
    remedy="Give more items, or such as begin differently; perfkit's own sets never share any.",
    source="LMBenchmark#35, sglang#13934: one request of 21,000 tokens with a TTFT of 60 ms.",
    check=_warmed_up,
)

LENGTHS_DIFFER = Guard(
    code="PK318",
    name="output-lengths-differ",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="Requests a second that rise, or latency that falls, although tokens a second do not.",
    cause="Answers are longer or shorter than at the least load, or end before the length that was asked "
    "for: the points did other work. Sampling, limits of length and lost output do that.",
    detection=f"Mean tokens an answer off by more than {limit(LENGTH_CHANGE)} from the least load's; a note "
    "where it only falls short of what was asked for.",
    remedy="Fix the length: ignore_eos with max_tokens, temperature 0; compare tokens a second.",
    source="vllm#13333 (512 asked, 43 answered), sglang#10746.",
    check=_lengths,
)

TOKEN_COUNTS = Guard(
    code="PK319",
    name="token-counts-contradict",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="Tokens a second, or a TPOT, that no device of this kind reaches.",
    cause="The server's usage and its own events disagree on how many tokens there were, or it does not say. "
    "Each event carries a token at least.",
    detection=f"More events than tokens, or running counts that sum up to another number, in more than "
    f"{limit(CONTRADICTING_SHARE)} of the answers; a note where answers lack their usage.",
    remedy="Ask for usage (stream_options.include_usage); read latencies and requests a second only.",
    source="vllm#10847, vllm#42532: counts off by 1.7 and 5 times.",
    check=_counts,
)

EVENTS_CLUMPED = Guard(
    code="PK320",
    name="several-tokens-an-event",
    layer="layer3",
    effect=Effect.NOTE,
    sees="Gaps between events that are long and regular, beside a short TPOT.",
    cause="An event carries several tokens: the server streams at intervals, speculates, or joins what "
    "waits. A gap between events is then no time of a token.",
    detection=f"Tokens by usage over events above {TOKENS_AN_EVENT:g}.",
    remedy="Read TPOT; stream every token (stream_interval 1) where gaps matter.",
    source="vllm#27485, sglang#36272.",
    check=_clumped,
)

ACCURACY_FALLS = Guard(
    code="PK321",
    name="accuracy-falls",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="A point that is fast, and whose answers nobody read.",
    cause="Answers are worse than at the least load: output is mixed up, cut or made from other state under "
    "load. Or accuracy counts only survivors: what was refused or failed is not judged.",
    detection=f"Worse than the least load by more than chance at 95 % and by {RATE_ALLOWED:g} of WER or CER, "
    f"{SAME_ALLOWED:g} of exact matches; a note where over {limit(LEFT_OUT_TOLD)} had no answer to judge.",
    remedy="Compare single answers with those at the least load; do not use the point before they agree.",
    source="vllm-omni#4318 (WER 1.8 % at 1, 12 % at 32), sglang-omni#1340 (survivors alone at 64).",
    check=_accuracy,
)

AUDIO_CUT = Guard(
    code="PK322",
    name="audio-cut-short",
    layer="layer3",
    effect=Effect.DIRECTIONAL,
    sees="Speech that gets faster under load.",
    cause="Answers hold less audio than the same text at the least load, or more: pieces were lost between "
    "stages, or the model ends elsewhere.",
    detection=f"Seconds of audio off by more than {limit(AUDIO_CHANGE)} from the least load's, or an item "
    f"with less than {limit(CUT_SHARE)} of its own there. Fresh items are compared by seconds a character.",
    remedy="Listen to one that is short; sweep with the same items at every load (--data text,same).",
    source="vllm-omni#4957: joined chunks were dropped, audio truncated under load.",
    check=_audio_cut,
)

FEW_CONTENTS = Guard(
    code="PK323",
    name="few-items",
    layer="layer3",
    effect=Effect.NOTE,
    sees="A sweep over a handful of prompts.",
    cause="A few contents stand for nothing but themselves, and what is asked again within a pass may come "
    "from a cache of the server.",
    detection=f"Fewer than {FEW_ITEMS} items, or more requests than items without a mark in each.",
    remedy="More items (--data …,items=N), or a mark in every request (…,nonce).",
    source="sglang-omni#2088: 666 different files in a set of 1088 were cache hits within one pass.",
    check=_few_items,
)

CONTENT_GUARDS: tuple[Guard[ContentFacts], ...] = (
    CONTENT_CACHED,
    WARMUP_SHARED,
    LENGTHS_DIFFER,
    TOKEN_COUNTS,
    EVENTS_CLUMPED,
    ACCURACY_FALLS,
    AUDIO_CUT,
    FEW_CONTENTS,
)
