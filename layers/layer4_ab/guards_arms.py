"""The guards on what was compared: one variable, the same data, a path that ran, right answers."""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard
from layers.layer4_ab import guard_checks as checks
from layers.layer4_ab.model import AbAnalysis

ARMS_DIFFER = Guard(
    code="PK520",
    name="arms-differ",
    layer="layer4",
    effect=Effect.VOID,
    sees="An effect, and two causes.",
    cause="More than one thing is different between the arms: the load tool, the model, a setting "
    "that came along.",
    detection="Facts of the recordings that differ and were not declared. Without a declared variable a "
    "single one is taken as it.",
    remedy="Change one thing. Where several belong together say --variable NAME, or a pattern; "
    "--derived NAME for what follows from it.",
    source="SGLang-Omni profiling methodology (sgl-project/sglang-omni#1798): one variable.",
    check=checks.arms_differ,
)

ARMS_ALIKE = Guard(
    code="PK521",
    name="variable-is-the-same",
    layer="layer4",
    effect=Effect.VOID,
    sees="A comparison of a switch that was never turned.",
    cause="The declared variable has one value in both arms: this was an A/A. A note where no "
    "recording has it.",
    detection="The facts of the recordings under the name of --variable.",
    remedy="Check how the setting reaches the server; perfkit sweep records the server's own account of it.",
    source="sglang-omni#1608: with a least batch of 2, a run at 1 at a time measured the synchronous "
    "path twice.",
    check=checks.arms_alike,
)

DATA_DIFFER = Guard(
    code="PK522",
    name="data-differ",
    layer="layer4",
    effect=Effect.VOID,
    sees="Two arms that were asked different things.",
    cause="Another number of requests, or prompts of another length: the ratio is that of the data.",
    detection="Requests of a run, or input tokens a request, that differ by more than 1 %.",
    remedy="Give both arms the same items in the same order, with the same seed.",
    source="Measured by simulation: the same prompts make a ratio of medians 8 times as exact as "
    "prompts of each arm's own.",
    check=checks.data_differ,
)

UNTREATED = Guard(
    code="PK523",
    name="untreated-arm",
    layer="layer4",
    effect=Effect.VOID,
    sees="An effect of a path that did not run.",
    cause="The switch is set and its path never taken: a batch that is too small, a bypass, a fallback.",
    detection="What --ran names was seen in both arms or in neither (lines of logs, growth of counters).",
    remedy="Find the condition that the path waits for, and load the server so that it is met.",
    source="sglang-omni#1608: the switched branch ran in 635 of 800 steps, and in none at 1 at a time.",
    check=checks.untreated,
)

UNCHECKED = Guard(
    code="PK524",
    name="treatment-unchecked",
    layer="layer4",
    effect=Effect.NOTE,
    sees="An effect with no proof that its cause was there.",
    cause="Nothing shows that the switched path ran in one arm and not in the other.",
    detection="No --ran PATTERN. The finding is at most of medium strength.",
    remedy="Name a counter or a line of the log that only the switched path leaves: --ran, --log-a, --log-b.",
    source="SGLang-Omni profiling methodology (sgl-project/sglang-omni#1798), treatment check.",
    check=checks.unchecked,
)

OUTPUTS_SHORTER = Guard(
    code="PK526",
    name="outputs-differ-in-length",
    layer="layer4",
    effect=Effect.VOID,
    sees="A speed-up of answers that end earlier.",
    cause="A change of decoding, a stop token, a truncated output: less work, not faster work.",
    detection="Output tokens, or seconds of audio, a request differ by more than 10 %; or by more than "
    "1 % and by the rule that judges A/Bs (directional). A run without any, beside others that have some.",
    remedy="Compare outputs item by item; fix the number of tokens (ignore EOS) for a measurement of speed.",
    source="MLPerf inference, TEST09: mean output tokens within 10 %.",
    check=checks.outputs_shorter,
)

FAILURES_DIFFER = Guard(
    code="PK527",
    name="failures-differ",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="Higher throughput, fewer answers.",
    cause="One arm sheds or fails more requests: the others are those which were easy to serve.",
    detection="The failed shares of the arms differ by more than 1 point.",
    remedy="Compare at a load that both arms serve whole.",
    source="sglang-omni#1340: at 64 at a time a limit sheds 3 % of the requests.",
    check=checks.failures_differ,
)

AT_ONCE = Guard(
    code="PK528",
    name="arms-at-once",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="Two servers that were loaded at the same time.",
    cause="On one machine each takes from the other what it needs: the ratio is that of a fight.",
    detection="Runs of the two arms overlap on the wall clock.",
    remedy="Run one arm after the other, ABBA; at once only on cards, cores and links of their own.",
    source="L. Bulej et al., Duet Benchmarking, ICPE 2020: both at once cancels noise only where "
    "neither takes from the other.",
    check=checks.at_once,
)

ACCURACY_UNCHECKED = Guard(
    code="PK529",
    name="accuracy-gate-missing",
    layer="layer4",
    effect=Effect.NOTE,
    sees="A faster server, and nobody knows whether it is right.",
    cause="The runs hold no accuracy, or of one arm alone.",
    detection="No accuracy of the same metric in both arms.",
    remedy="Sweep with a data set that has answers, or run the regression of Layer 5, before calling "
    "it safe.",
    source="MLPerf inference, TEST01: accuracy is checked in the run whose speed is told.",
    check=checks.accuracy_unchecked,
)

ACCURACY_LOST = Guard(
    code="PK530",
    name="accuracy-lost",
    layer="layer4",
    effect=Effect.NOTE,
    sees="A faster server that is less right.",
    cause="The change costs accuracy, or requests were lost that had counted.",
    detection="The error rate rises by more than 0.0002 (WER) or 0.001 (CER), or another metric falls, "
    "and the pairs show it by the rule of A/Bs; or less of the items can be judged. The "
    "verdict is a regression then.",
    remedy="Find the items that changed (Layer 5) before anything else.",
    source="SGLang-Omni's acceptance rule for ASR (docs/developer_reference/asr_hill_climbing.md).",
    check=checks.accuracy_lost,
)

TAILS_WITHOUT_N = Guard(
    code="PK531",
    name="tails-without-n",
    layer="layer4",
    effect=Effect.NOTE,
    sees="A p99 of a hundred requests.",
    cause="It is the second largest value: its ratio is a lottery, and compares what two stragglers did.",
    detection="A percentile with fewer requests in a run than give it an interval (6, 36, 72, 368, "
    "3,688), or with an n that nobody tells. It is not compared.",
    remedy="Run longer; or compare p50 and p90.",
    source="W. J. Conover, Practical Nonparametric Statistics, 3.2; docs/sweep.md.",
    check=checks.tails_without_n,
)

LOST_FILES = Guard(
    code="PK532",
    name="results-lost",
    layer="layer4",
    effect=Effect.NOTE,
    sees="Fewer runs than files.",
    cause="Files, or runs in them, that could not be read, or tell no load or throughput.",
    detection="Anything of the named files that is not in the comparison.",
    remedy="Read what --json lists under `lost`.",
    source="pyperf and torchbench: data of one side alone are dropped in silence.",
    check=checks.lost_files,
)

LOADS_OF_ONE_ARM = Guard(
    code="PK533",
    name="loads-of-one-arm",
    layer="layer4",
    effect=Effect.NOTE,
    sees="A sweep of one arm beside a single run of the other.",
    cause="Loads that only one arm has can be compared with nothing.",
    detection="Loads without a run of the other arm, and A/A runs at others alone. They are left out.",
    remedy="Run the same loads in both arms.",
    source="perfkit.",
    check=checks.loads_of_one_arm,
)

MACHINE_CHANGED = Guard(
    code="PK534",
    name="machine-changed",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="A session that began on one machine and ended on another.",
    cause="A package, a clock, a limit or a neighbour's card changed between runs; or somebody changed it.",
    detection="Snapshots around the runs of perfkit's own experiments that differ from the first. Those "
    "runs do not count; a note up to half of them.",
    remedy="Undo it and repeat those runs: perfkit ab --resume does not, so begin a new experiment.",
    source="psf/pyperf#162: comparisons that ignore metadata; PK020 is the same for two runs.",
    check=checks.machine_changed,
)

ENDED_EARLY = Guard(
    code="PK540",
    name="experiment-ended-early",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="A result of fewer runs than were planned.",
    cause="It was interrupted, a server did not start or went away, or the disk was full. Who ends once a "
    "result shows finds one too often; and an arm whose server crashed is no better one.",
    detection="Runs of perfkit's own experiment that were not run.",
    remedy="perfkit ab --resume runs the rest; what stands is kept.",
    source="P. Armitage, C. McPherson, B. Rowe, Repeated Significance Tests on Accumulating Data, 1969: five "
    "looks claim falsely in 14 % of cases.",
    check=checks.ended_early,
)

ARM_GUARDS: tuple[Guard[AbAnalysis], ...] = (
    ARMS_DIFFER,
    ARMS_ALIKE,
    DATA_DIFFER,
    UNTREATED,
    UNCHECKED,
    OUTPUTS_SHORTER,
    FAILURES_DIFFER,
    AT_ONCE,
    ACCURACY_UNCHECKED,
    ACCURACY_LOST,
    TAILS_WITHOUT_N,
    LOST_FILES,
    LOADS_OF_ONE_ARM,
    MACHINE_CHANGED,
    ENDED_EARLY,
)
