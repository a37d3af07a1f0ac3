"""The guards on what stands behind a claim: clocks, the stage that was improved, the suspect's own share."""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard
from layers.layer4_ab import evidence_checks as checks
from layers.layer4_ab.model import AbAnalysis

CLOCKS_DIFFER = Guard(
    code="PK535",
    name="arm-clocks-differ",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="An arm that is faster on a card that ran faster.",
    cause="The clocks of the card were other in one arm: heat, a limit that somebody set, or what the change "
    "itself draws. What is left at equal clocks is within the noise.",
    detection="The claim over the ratio of the arms' median SM clocks is within its interval or floor.",
    remedy="Lock the clocks for all runs (nvidia-smi -lgc), or show that the change lowers them.",
    source="NVIDIA/nvbench: a difference counts where it shows in cycles (time x clock) as well.",
    check=checks.clocks_differ,
)

BEYOND_AMDAHL = Guard(
    code="PK525",
    name="gain-beyond-the-stage",
    layer="layer4",
    effect=Effect.VOID,
    sees="A gain that is larger than what was improved.",
    cause="The baseline was slow for another reason, or the change did something else as well.",
    detection="The whole interval lies above 1 / (1 - share) of the stage (--stage NAME: by the runs of A, a "
    "ledger, or as declared). A note where --unblocked names what went from 0 to something.",
    remedy="Measure the baseline again; or show what the change unblocked (graph capture, lookahead).",
    source="sglang-omni#574: +30 % by a stage of 14 % of the time; the baseline was 7.66 where 9.10 "
    "was known.",
    check=checks.beyond_amdahl,
)

STAGE_UNTOLD = Guard(
    code="PK536",
    name="stage-share-untold",
    layer="layer4",
    effect=Effect.NOTE,
    sees="A stage that was named, and no bound on what its change can give.",
    cause="The server tells no times of its stages, or calls this one otherwise.",
    detection="--stage NAME, and neither the runs of A nor a ledger has its time.",
    remedy="Record one (perfkit stages) and give it with --ledger FILE; or say --stage NAME=SHARE.",
    source="Amdahl 1967; SGLang-Omni profiling methodology (sgl-project/sglang-omni#1798), 1.4.",
    check=checks.stage_untold,
)

SUSPECT_UNCHANGED = Guard(
    code="PK537",
    name="suspect-unchanged",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="A gain, and the line that was to be removed takes as much of the time as before.",
    cause="The gain comes from something else: another difference of the arms, or the state of the machine.",
    detection="--suspect PLACE, sampled in both arms: the 95 % interval of the change of its share holds 0 "
    "for every place, and an improvement is claimed.",
    remedy="Find what else differs (perfkit layer2 --compare on the captures of both arms), before taking "
    "the credit.",
    source="SGLang-Omni profiling methodology 1.2: the suspect's leaf share is causal evidence and outranks "
    "throughput.",
    check=checks.suspect_unchanged,
)

SUSPECT_UNSEEN = Guard(
    code="PK538",
    name="suspect-not-sampled",
    layer="layer4",
    effect=Effect.NOTE,
    sees="An A/B that was to show what became of a line, and does not.",
    cause="An arm could not be sampled (rights, a server that ended), the captures are void, or not alike.",
    detection="--suspect PLACE without a share in both arms, or with fewer than 200 ticks of one.",
    remedy="Read why; perfkit doctor says what sampling needs. perfkit layer2 --suspect does the same alone.",
    source="perfkit; 0 of 300 independent ticks still allows 1.0 %.",
    check=checks.suspect_unseen,
)

CACHE_ANSWERED = Guard(
    code="PK539",
    name="cache-answered",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="A stage that was improved, and no difference; or a gain that no change explains.",
    cause="Content that recurs lay in a cache of the server (encoded content, prefixes): the stage behind it "
    "was skipped. Where the arms differ in hits, the ratio is that of their caches.",
    detection="Hits by the servers' own counters from 1 % of look-ups on: a note where the arms are alike, "
    "or the variable is a cache; directional where they are more than 10 points apart.",
    remedy="Fresh items in every request (--data text,fresh or …,nonce), or the cache off in both arms.",
    source="sglang-omni#2088: 666 different files in a set of 1088 were cache hits within one pass.",
    check=checks.cache_answered,
)

EVIDENCE_GUARDS: tuple[Guard[AbAnalysis], ...] = (
    CLOCKS_DIFFER,
    BEYOND_AMDAHL,
    STAGE_UNTOLD,
    SUSPECT_UNCHANGED,
    SUSPECT_UNSEEN,
    CACHE_ANSWERED,
)
