"""The guards on the experiment: how many pairs of which starts, in which order, against which floor."""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard
from layers.layer4_ab import guard_checks as checks
from layers.layer4_ab.model import AbAnalysis

TOO_FEW_PAIRS = Guard(
    code="PK500",
    name="too-few-pairs",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="A ratio of two runs, and no idea how far such ratios lie apart.",
    cause="One or two pairs of server starts were run; a t interval over two reaches 13 standard "
    "errors either way.",
    detection="Fewer than 3 pairs of starts. A start is the unit, however many requests or rounds it has.",
    remedy="Run 4 pairs or more, A B B A A B B A, a fresh server for each run.",
    source="T. Kalibera, R. Jones, Rigorous Benchmarking in Reasonable Time, 2013: only the top "
    "level gives degrees of freedom.",
    check=checks.few_pairs,
)

FLOOR_NOT_MEASURED = Guard(
    code="PK501",
    name="floor-not-measured",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="A difference of some percent between two servers.",
    cause="Nobody knows how far two servers of the same kind differ here: restarts alone gave 9.6 % "
    "on one machine.",
    detection="No A/A run beside the A/B (--aa), none from earlier, and no balanced order that is "
    "known. From 4 pairs on a note: the repeats of each arm are a floor of their own.",
    remedy="Run one configuration twice or more under the same protocol and give the results with --aa.",
    source="SGLang-Omni profiling methodology (sgl-project/sglang-omni#1798), layer 4.",
    check=checks.no_floor,
)

INSIDE_FLOOR = Guard(
    code="PK502",
    name="inside-the-floor",
    layer="layer4",
    effect=Effect.NOTE,
    sees="An interval that is clear of no difference.",
    cause="Two runs of the same thing differ by as much under this protocol.",
    detection="The interval excludes 0 and the effect is not beyond the A/A floor. It is not claimed.",
    remedy="Quieten the machine, or run the pairs that it takes to see the effect.",
    source="sglang-omni#2011: +0.43 % against an A/A of 1.82 % is no claim, +2.79 % against 0.82 % is one.",
    check=checks.inside_floor,
)

NO_SPREAD = Guard(
    code="PK503",
    name="ratios-without-spread",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="Pairs that agree to the last digit.",
    cause="Copies of one file, or numbers that were rounded until nothing was left of their noise.",
    detection="The log-ratios of all pairs, or all repeats of the arms, are the same number.",
    remedy="Give the results of separate runs, as the load tool wrote them.",
    source="perfkit: measured throughputs of separate runs never agree to the last digit.",
    check=checks.no_spread,
)

SAME_FILE = Guard(
    code="PK504",
    name="same-file-in-both-arms",
    layer="layer4",
    effect=Effect.VOID,
    sees="A perfect tie.",
    cause="A file, or a copy of it, was named for both arms, and nothing tells its runs apart.",
    detection="The sha256 of a file of A is that of a file of B; or a run of A has the times of one of B to "
    "the last digit.",
    remedy="Name other files, or say which runs are whose: --a-where revision=base --b-where revision=new.",
    source="perfkit.",
    check=checks.same_file,
)

ORDER_UNBALANCED = Guard(
    code="PK505",
    name="order-not-balanced",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="All of A, then all of B.",
    cause="Whatever changed meanwhile (heat, a neighbour, a cache) is counted as the effect: a "
    "drift of 3 % makes A A A B B B claim in 45 to 99 % of cases.",
    detection="An arm ran first in more than half of the pairs, or wholly before the other. A note "
    "where no times are recorded.",
    remedy="Run A B B A; say the order of recorded runs with --order ABBA where files do not tell.",
    source="Measured by simulation, run noise 0.5 %; pyperf, hyperfine#21 and google/benchmark#1051 "
    "on interleaving.",
    check=checks.unbalanced,
)

DRIFT = Guard(
    code="PK506",
    name="drift-across-runs",
    layer="layer4",
    effect=Effect.NOTE,
    sees="Pairs that scatter more than the machine seems to.",
    cause="All runs together became faster or slower over the session.",
    detection="A line through all runs, with an offset for B, has a slope whose 95 % interval excludes 0.",
    remedy="Nothing, where the order is balanced: it has no part in the mean. Else run the pairs again.",
    source="perfkit; least squares over the starts in their order.",
    check=checks.drifted,
)

ORDER_EFFECT = Guard(
    code="PK507",
    name="order-effect",
    layer="layer4",
    effect=Effect.NOTE,
    sees="The second of two runs is always the better one.",
    cause="A run leaves something behind for the next: a warm page cache, a clock that came up, a "
    "heated card.",
    detection="Pairs with A first and pairs with B first differ, and the 95 % interval of that excludes 0.",
    remedy="Put the same pause and the same warm-up before every run.",
    source="D. R. Cox, Planning of Experiments, 1958, on cross-over designs.",
    check=checks.order_matters,
)

FIRST_DROPPED = Guard(
    code="PK508",
    name="first-round-dropped",
    layer="layer4",
    effect=Effect.NOTE,
    sees="A first round that is nothing like the others.",
    cause="Compilation, graph capture, caches that fill: what a warm-up was too short for.",
    detection="The first value is an outlier by the rejection rule (robust z above 3.5 and 20 % off the "
    "rest, of 5 or more) in at least half of the series. It is left out of both arms.",
    remedy="Nothing; or a longer warm-up, the same in both arms.",
    source="sglang-omni#1608: round 1 is off even after a warm-up, and without it bands are 10 to 34 "
    "times tighter.",
    check=checks.first_dropped,
)

RUNS_EXCLUDED = Guard(
    code="PK509",
    name="runs-excluded",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="Fewer runs in the ratio than were measured.",
    cause="Runs that a check of Layer 3 voids, that met others on their machine, or that the "
    "rejection rule takes out with their partners.",
    detection="Any run that does not count. A note up to half of the runs.",
    remedy="Read why (--json lists every run); repeat those runs on a quiet machine. They stay in "
    "the record.",
    source="SGLang-Omni calibration contract: whole rounds are dropped, kept on disk, and no more "
    "than half of them.",
    check=checks.runs_excluded,
)

TWO_STATES = Guard(
    code="PK510",
    name="two-states-of-a-server",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="Runs of one arm in two groups, and a mean that no run has.",
    cause="How fast a server is may be settled when it starts: 26 or 33 tokens a second, each "
    "steady to 0.02.",
    detection="A gap of more than 20 % of the median parts the starts of an arm into groups of 2 or "
    "more, each closer together than the gap. Nothing is left out then.",
    remedy="Find what differs between the starts (memory, clocks, graph capture) before comparing arms.",
    source="ROCm/legacy-rocm-build#6347; vllm-project/vllm#39903.",
    check=checks.two_states,
)

ONE_START = Guard(
    code="PK511",
    name="one-start-an-arm",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="Many rounds, a narrow interval.",
    cause="All rounds of an arm came from one server: they say how well that one server is known. "
    "One live A and one live B claim falsely in 36 to 76 % of cases.",
    detection="An arm with several runs and one start. The rounds are averaged, and count as one.",
    remedy="Restart the server for each run, or say with --starts run that it was.",
    source="Measured by simulation, start noise twice the run's; two identical servers differed by "
    "6.5 % (sglang-omni#1798).",
    check=checks.one_start,
)

STARTS_UNTOLD = Guard(
    code="PK512",
    name="starts-not-told",
    layer="layer4",
    effect=Effect.NOTE,
    sees="A number of pairs that rests on somebody's word.",
    cause="Results of load tools do not say whether the server was restarted between runs.",
    detection="Any results that perfkit did not record with a server of its own.",
    remedy="Say it: --starts file (a start a file), run (a start a run) or arm (one server an arm).",
    source="vllm-project/vllm#39903: performance is settled for an instance.",
    check=checks.starts_untold,
)

UNPAIRED = Guard(
    code="PK513",
    name="unpaired-starts",
    layer="layer4",
    effect=Effect.DIRECTIONAL,
    sees="More runs of one arm than of the other.",
    cause="A run failed or does not count, or somebody ran one arm on. A server that serves nothing in one "
    "start of four is no faster one.",
    detection="Starts whose partner, the neighbour in the order of running, is missing or does not "
    "count, or that lack the metric. They are left out. A note, but where a start served nothing.",
    remedy="Run the arms equally often; runs are not added until a result shows.",
    source="Golang benchstat, on not rerunning until it is significant.",
    check=checks.unpaired_starts,
)

PAIR_GUARDS: tuple[Guard[AbAnalysis], ...] = (
    TOO_FEW_PAIRS,
    FLOOR_NOT_MEASURED,
    INSIDE_FLOOR,
    NO_SPREAD,
    SAME_FILE,
    ORDER_UNBALANCED,
    DRIFT,
    ORDER_EFFECT,
    FIRST_DROPPED,
    RUNS_EXCLUDED,
    TWO_STATES,
    ONE_START,
    STARTS_UNTOLD,
    UNPAIRED,
)
