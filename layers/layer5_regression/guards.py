"""The guards on recorded outputs: what makes two arms look the same that are not, or that show nothing.

OUTPUT_GUARDS look at the whole comparison; those on how arms were collected are in `guards_collected`.
"""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard
from layers.evidence.strength_table import OUTPUTS_MIN_ITEMS
from layers.evidence.wording import limit
from layers.layer5_regression import guard_checks as checks
from layers.layer5_regression.guard_checks import ALIKE_LIMIT
from layers.layer5_regression.model import Analysis

LAYER = "layer5"

NOTHING = Guard(
    code="PK550",
    name="nothing-to-compare",
    layer=LAYER,
    effect=Effect.VOID,
    sees="No difference.",
    cause="Both arms are empty, or every request of both failed: there is nothing that could differ.",
    detection="Not one sample has an output that is not empty, in either arm.",
    remedy="Read why requests failed (`error` of the records), then collect again.",
    source="mlcommons/inference#1500: a compliance test that passed on an empty file.",
    check=checks.nothing_to_compare,
)

UNEQUAL = Guard(
    code="PK551",
    name="unequal-sets",
    layer=LAYER,
    effect=Effect.VOID,
    sees="All samples that both arms have agree.",
    cause="One arm lost the samples that would not: a crash, a filter, another data set.",
    detection="A sample (item, cell, repeat) of one arm that the other has not.",
    remedy="Collect the arm that lacks them again; ids must name the same item in both.",
    source="vLLM's check walks two outputs side by side, so what one lacks passes with a warning.",
    check=checks.unequal_sets,
)

DOUBLED = Guard(
    code="PK552",
    name="doubled-samples",
    layer=LAYER,
    effect=Effect.VOID,
    sees="More samples than items.",
    cause="A file that was appended to by two runs; ids that are not unique; retries that were kept.",
    detection="An item twice in an arm with the same cell and repeat.",
    remedy="Give repeats a `repeat`, or record each run into a file of its own.",
    source="perfkit's choice: with two outputs for one item either may be the one that agrees.",
    check=checks.doubled,
)

CONTROL = Guard(
    code="PK553",
    name="negative-control-missed",
    layer=LAYER,
    effect=Effect.VOID,
    sees="A pass.",
    cause="A comparison that cannot fail: it compares an arm with itself, or what all outputs share.",
    detection="Faults planted into a copy of the very data (a byte flipped in every sample, an end cut off, "
    "a sample left out, one doubled, two swapped), of which one was not found.",
    remedy="This is a fault of perfkit: report it with the files. Do not use the result.",
    source="vLLM asserts that its batch-invariance test fails without the feature.",
    check=checks.control_missed,
)

NOT_DETERMINISTIC = Guard(
    code="PK554",
    name="not-shown-deterministic",
    layer=LAYER,
    effect=Effect.NOTE,
    sees="Bytes that differ, or that are the same by luck.",
    cause="An engine whose answers depend on what it batches together differs from itself; nobody knows "
    "whether this one does until it was asked twice at the same load.",
    detection="A cell without a second run of A (--aa), or in which that one differs from the first.",
    remedy="Give a second run of A. Where A differs from itself: concurrency 1, a deterministic mode, or "
    "more items, since the comparison is then one of right and wrong.",
    source="sglang-omni#1357: two runs of one build differ in 27 of 800 transcripts, at 8 at a time.",
    check=checks.not_deterministic,
)

LOST = Guard(
    code="PK555",
    name="outputs-lost",
    layer=LAYER,
    effect=Effect.VOID,
    sees="An arm like any other.",
    cause="A collection that was cut, a file that was cut or damaged: what is left agrees.",
    detection="A record that cannot be read or whose checksum does not hold; fewer samples than planned.",
    remedy="Record again, or copy damaged files again, until every planned sample is there.",
    source="What `lost` (--json) lists.",
    check=checks.records_lost,
)

UNANSWERED = Guard(
    code="PK556",
    name="unanswered-in-both",
    layer=LAYER,
    effect=Effect.DIRECTIONAL,
    sees="Fewer samples compared than asked.",
    cause="Requests that fail in both arms (too long, refused, timed out) say nothing of the change, and may "
    "be the very ones that the changed path serves.",
    detection="A sample without an output, or with an empty one, in both arms.",
    remedy="Leave such items out of both arms, or mend what fails, and collect again.",
    source="perfkit's choice; sglang#5734: empty outputs of long inputs alone.",
    check=checks.unanswered,
)

ALIKE = Guard(
    code="PK557",
    name="all-outputs-alike",
    layer=LAYER,
    effect=Effect.VOID,
    sees="All samples agree.",
    cause="One answer to everything: an error text with status 200, a constant, an input that got lost.",
    detection=f"More than {limit(ALIKE_LIMIT)} of the items of an arm have one and the same output; void "
    "where all have.",
    remedy="Read one of them. Send items whose answers must differ.",
    source="sglang-omni#1221: a whole ladder was withdrawn because the client sent empty texts.",
    check=checks.all_alike,
)

SILENT = Guard(
    code="PK558",
    name="silent-sound",
    layer=LAYER,
    effect=Effect.VOID,
    sees="Sound of the right length.",
    cause="A vocoder that was never called, or given zeros: silence equals silence.",
    detection="All samples of a sound are the same; a note where only some sounds are silent.",
    remedy="Listen to one; check the path from codes to sound.",
    source="perfkit's choice.",
    check=checks.silent,
)

CUT = Guard(
    code="PK559",
    name="all-answers-cut",
    layer=LAYER,
    effect=Effect.DIRECTIONAL,
    sees="All samples agree.",
    cause="Every answer stopped at a limit of tokens: what comes behind it, and the end, was never run.",
    detection="Every answer of both arms ends for a length limit; a note where some do.",
    remedy="Raise max_tokens until most answers end by themselves.",
    source="sgl-project/sglang#5734 and MLPerf's rule on output length: what differs late is cut off.",
    check=checks.all_cut,
)

NOT_FINITE = Guard(
    code="PK560",
    name="not-finite-output",
    layer=LAYER,
    effect=Effect.VOID,
    sees="Outputs that are equal to the byte.",
    cause="NaN or infinity in both arms: broken alike. Compared as numbers NaN would differ from itself and "
    "hide the rest.",
    detection="An output of floating point numbers that holds NaN or infinity.",
    remedy="Find the first step that makes one; a correctness regression comes after that.",
    source="unslothai/unsloth#9708: a row of NaN became an empty text.",
    check=checks.not_finite,
)

FEW = Guard(
    code="PK561",
    name="few-outputs",
    layer=LAYER,
    effect=Effect.DIRECTIONAL,
    sees="Not one sample differs.",
    cause="None of a few still allows many: none of 5 allows 45 % to differ, none of 20 allows 14 %.",
    detection=f"Fewer than {OUTPUTS_MIN_ITEMS} items, in however many cells; a note beside a difference.",
    remedy="More items, longer and of other shapes.",
    source="The exact one-sided 95 % bound of a binomial share, 1 - 0.05^(1/n).",
    check=checks.few_samples,
)

SWAPPED = Guard(
    code="PK562",
    name="answers-of-other-items",
    layer=LAYER,
    effect=Effect.NOTE,
    sees="Samples that differ wholly.",
    cause="The answers are right and went to the wrong requests: an order that a batch did not restore, a "
    "slot that was used again.",
    detection="A sample of B whose output is what A answered to another item of the same cell.",
    remedy="Look where results are given back to requests: sorted batches, slots after a cancel.",
    source="Bucketed batches must restore their order (sglang-omni#569).",
    check=checks.swapped,
)

LOAD_DEPENDENT = Guard(
    code="PK563",
    name="answers-depend-on-load",
    layer=LAYER,
    effect=Effect.NOTE,
    sees="A that differs from itself between two cells.",
    cause="Sums in another order at another batch size or graph; a padded row; a cache that changes answers.",
    detection="An item that A answers in another way in another cell.",
    remedy="It is a fact about A, not about the change. Where it matters: batch-invariant kernels.",
    source="Thinking Machines, batch_invariant_ops: 1,000 greedy answers, 80 different ones; sglang#34683.",
    check=checks.load_dependent,
)

NO_BASELINE = Guard(
    code="PK564",
    name="differences-without-baseline",
    layer=LAYER,
    effect=Effect.DIRECTIONAL,
    sees="Samples that differ.",
    cause="Nobody knows how many differ without any change.",
    detection="Samples differ in cells that cannot be judged bit-exact, and neither a second run of A (--aa) "
    "nor expected answers say how many may.",
    remedy="Collect A once more and give it with --aa, or give items with their expected answers.",
    source="torchbench runs eager twice and has a status of its own where the two differ.",
    check=checks.no_baseline,
)

MARGIN = Guard(
    code="PK565",
    name="margin-not-resolved",
    layer=LAYER,
    effect=Effect.DIRECTIONAL,
    sees="No significant loss.",
    cause="Too few items to find one: a gate that would pass whatever happens is no evidence.",
    detection="The loss that this many items would have shown in 80 % of cases, or the upper end of the "
    "error rate's interval, is above the margin (--margin).",
    remedy="More items, or a margin that is honest about what these can show.",
    source="TensorRT-LLM prints what its gates can detect: 31 points of WER with 32 items of VoxPopuli.",
    check=checks.margin_not_resolved,
)

SAME_FILES = Guard(
    code="PK574",
    name="same-file-in-two-arms",
    layer=LAYER,
    effect=Effect.VOID,
    sees="Not one byte differs.",
    cause="One recording was given twice, or a run wrote over the one before: nothing is compared.",
    detection="A file (or a folder that perfkit collected) that two arms were read from; links are followed.",
    remedy="Record each run into a file of its own: A, B, and A once more.",
    source="mlcommons/inference#1500 and vLLM's negative control: a comparison must be able to fail.",
    check=checks.same_files,
)

OUTPUT_GUARDS: tuple[Guard[Analysis], ...] = (
    *(NOTHING, UNEQUAL, DOUBLED, CONTROL, NOT_DETERMINISTIC, LOST, UNANSWERED, ALIKE, SILENT, CUT),
    *(NOT_FINITE, FEW, SWAPPED, LOAD_DEPENDENT, NO_BASELINE, MARGIN, SAME_FILES),
)
