"""The guards of Layer 1 on sampled series: when a mean of NVML, nvidia-smi or DCGM is not what it seems to
be.

One entry per guard, with the trap in words; the functions that look for them are in `sampled_checks`.
"""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard
from layers.evidence.strength_table import METHODOLOGY, SERIES_MIN_SAMPLES
from layers.evidence.wording import limit
from layers.layer1_gpu_busy import sampled_checks as checks
from layers.layer1_gpu_busy.reading_coverage import LOST_SHARE, TOO_LITTLE_KNOWN
from layers.layer1_gpu_busy.sampled import HOLE_PERIODS
from layers.layer1_gpu_busy.sampled_checks import (
    FAKE_ZERO_SAMPLES,
    HOLE_SHARE,
    IDLE_INSIDE_SHARE,
    IDLE_SHARE,
    MOVES_SHARE,
    RAMP_SHARE,
    SampledFacts,
)
from layers.layer1_gpu_busy.sampled_word import IMPOSSIBLE_BY, SM_EFFECTIVE, SM_INEFFECTIVE

NVML_UTILISATION = "NVML, nvmlUtilization_t: percent of the past period in which one or more kernels ran"

NO_SAMPLED_VALUES = Guard(
    code="PK140",
    name="no-sampled-values",
    layer="layer1",
    effect=Effect.VOID,
    sees="A log without one value of how busy the GPU was.",
    cause="The sampler answered N/A, failed, or was asked for other fields. None of these is 0 %.",
    detection="No sample of NVML utilisation, GR active or SM active of the entity.",
    remedy="See what the log says instead of values; record utilization.gpu (nvidia-smi) or fields 203, "
    "1001, 1002 and 1004 (dcgmi dmon).",
    source="Spellings of no value in public nvidia-smi and dcgmi logs; three wrappers that read them as 0.",
    check=checks.no_values,
)

FEW_SAMPLED_VALUES = Guard(
    code="PK141",
    name="few-sampled-values",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A mean of a handful of samples.",
    cause="So few are biased to the ramp, not merely noisy.",
    detection=f"Fewer than {SERIES_MIN_SAMPLES} samples, or different times of them, from the first to the "
    "last that is above 0.",
    remedy=f"Sample under steady load until there are {SERIES_MIN_SAMPLES}: at one a second, half a minute.",
    source=f"{METHODOLOGY}, layer 1.",
    check=checks.few_values,
)

RAMP_ONLY = Guard(
    code="PK142",
    name="ramp-only",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A moderate mean of a series that rises to its end.",
    cause="The log covers the start of the load (loading, warm-up, first requests) and stops with it.",
    detection=f"More than {limit(RAMP_SHARE)} of the active samples lie before the first that comes near the "
    "upper level (90 % of the 90th percentile).",
    remedy="Sample longer, and leave out the ramp: start the sampler once the load is steady.",
    source=f"{METHODOLOGY}, layer 1.",
    check=checks.ramp_only,
)

IDLE_THROUGHOUT = Guard(
    code="PK143",
    name="idle-throughout",
    layer="layer1",
    effect=Effect.VOID,
    sees="A card at 0 % for the whole log.",
    cause="Nothing ran on this card while it was sampled: no load, or another card did the work (nvidia-smi "
    "and DCGM count in PCI order and ignore CUDA_VISIBLE_DEVICES).",
    detection=f"Every busy field is 0 in every sample; or at most {limit(IDLE_SHARE)} on average while "
    f"another card of the log has more than {limit(MOVES_SHARE)}: then a note, and the card is left out.",
    remedy="Nothing ran: send load while it samples. Or look at the card that moved; map by UUID (nvidia-smi "
    "-L).",
    source="CUDA_DEVICE_ORDER in the CUDA C++ programming guide; perfkit: an idle card is no slow service.",
    check=checks.idle_throughout,
)

FALSE_ZEROS = Guard(
    code="PK144",
    name="false-zeros",
    layer="layer1",
    effect=Effect.VOID,
    sees="A busy field that is exactly 0 while the card works.",
    cause="Profiling fields stop after some Xid errors, and read 0 while counters are shared too fast.",
    detection=f"A busy field at exactly 0 over {FAKE_ZERO_SAMPLES} samples or more, while another one is "
    "above 50 %, or while power or SM clock doubles or memory moves by 1 GiB.",
    remedy="Restart the DCGM host engine, look for Xid errors (dmesg), sample once a second, cross-check "
    "with nvidia-smi.",
    source="NVIDIA/DCGM issues 303 (zeros after Xid 31) and 169 (zeros of multiplexed counters).",
    check=checks.fake_zeros,
)

MIG_WITHOUT_UTILISATION = Guard(
    code="PK145",
    name="mig-without-utilisation",
    layer="layer1",
    effect=Effect.VOID,
    sees="N/A for the utilisation of a card that is drawing hundreds of watts.",
    cause="NVML gives no utilisation of a partitioned card (MIG), nor of its instances.",
    detection="The log says that MIG is enabled, and no busy field has a value; directional where the "
    "card's NVML utilisation has one, since it is that of no instance.",
    remedy="dcgmi dmon -e 1001,1002,1004 on the instances (dcgmi discovery -c lists them); values are "
    "relative to the instance.",
    source="nvidia-smi 590 on an H200 with MIG: [N/A] at 295 W; NVIDIA/DCGM issue 80.",
    check=checks.mig_without_values,
)

SAMPLER_NOT_PERMITTED = Guard(
    code="PK146",
    name="sampler-not-permitted",
    layer="layer1",
    effect=Effect.VOID,
    sees="A log that says that something is not permitted.",
    cause="Profiling counters need administrator rights unless the driver is told otherwise, and a "
    "container needs SYS_ADMIN.",
    detection="The sampler's own words; a note where the busy fields have values all the same.",
    remedy="Run the host engine as root, give the container SYS_ADMIN, or set "
    "NVreg_RestrictProfilingToAdminUsers=0.",
    source="NVIDIA ERR_NVGPUCTRPERM; NVIDIA/DCGM issue 196; dcgm-exporter issue 165.",
    check=checks.not_permitted,
)

PROFILING_COUNTERS_HELD = Guard(
    code="PK147",
    name="profiling-counters-held",
    layer="layer1",
    effect=Effect.VOID,
    sees="dcgmi dmon that ends with an error of the third-party Profiling module.",
    cause="Before Hopper one program at a time holds the profiling counters of the whole machine: "
    "dcgm-exporter, another host engine, nsys GPU metrics or ncu.",
    detection="The sampler's own words.",
    remedy="dcgmi profile --pause there, or stop the other; else fall back to utilization.gpu.",
    source="NVIDIA/DCGM issues 3, 56 and 62; dcgm-exporter issue 7.",
    check=checks.counters_held,
)

SAMPLER_FAILED = Guard(
    code="PK148",
    name="sampler-failed",
    layer="layer1",
    effect=Effect.VOID,
    sees="A log that holds an error of the sampler.",
    cause="No host engine, no driver, a lost GPU, or a field that this card has not.",
    detection="The sampler's own words; a note where the busy fields have values all the same.",
    remedy="Do what the words ask: start nv-hostengine, mend the driver, ask for fields that the card has.",
    source="dcgmi's and nvidia-smi's error texts; NVIDIA/DCGM issues 50 and 119; nvidia-docker issue 1671.",
    check=checks.sampler_failed,
)

SEVERAL_PROCESSES = Guard(
    code="PK149",
    name="several-processes",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A utilisation that your service does not make alone.",
    cause="The card's fields count everything that runs on it, of every user and container.",
    detection="More than one process on the card (nvidia-smi pmon or --query-compute-apps).",
    remedy="Measure on a card of your own, or before, with and after your load.",
    source="NVIDIA/go-dcgm issue 25: per-process values do not sum to the card's.",
    check=checks.several_processes,
)

SCALE_SUSPECTED = Guard(
    code="PK150",
    name="scale-suspected",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Values on another scale than their field has.",
    cause="Somebody multiplied or divided: NVML and DCGM 203 count to 100, DCGM profiling fields to 1.",
    detection="Values that the metric cannot have; or a utilisation of fractions that never passes 1.",
    remedy="Give the sampler's own output.",
    source="DCGM field definitions; nvmlUtilization_t is a whole percent.",
    check=checks.scale,
)

SAMPLING_CLOCK_STEPPED = Guard(
    code="PK151",
    name="sampling-clock-stepped",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Samples whose times go back.",
    cause="The clock was set, two loggers wrote one file, or files were joined out of order.",
    detection="A sample whose time lies before the one above it; the order of the file is kept.",
    remedy="One logger per file; look at where the times jump.",
    source="perfkit: a window cut by such a clock takes in the wrong samples.",
    check=checks.clock_stepped,
)

DAMAGED_LOG = Guard(
    code="PK152",
    name="damaged-log",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Lines that are no samples.",
    cause="A cut last line, rows of another layout, cells that are no numbers.",
    detection=f"Any line or cell given up; a note up to {limit(LOST_SHARE)} of the samples.",
    remedy="Look at the lines that the message names.",
    source="Public logs with cut lines, repeated headers and mixed output.",
    check=checks.damaged_log,
)

HOLES_IN_THE_SERIES = Guard(
    code="PK153",
    name="holes-in-the-series",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A series with stretches where nobody looked.",
    cause="The sampler stalled (a slow driver call, a busy host), and often when the GPU was busiest.",
    detection=f"Steps longer than {HOLE_PERIODS} times the median; a note up to {limit(HOLE_SHARE)} of the "
    "time.",
    remedy="One long-lived sampler (-l, dmon) instead of one call per sample; persistence mode on.",
    source="A public RTX 4090 log at 1 s with a hole of 7.3 s; netdata issue 10362 (calls of 6 s).",
    check=checks.holes,
)

UNNAMED_CARD = Guard(
    code="PK154",
    name="unnamed-card",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A log that does not say of which card it is.",
    cause="The query had no index, uuid or pci.bus_id. Rows of several cards then look like one series.",
    detection="No such column; a note where times tell the rows of one pass apart.",
    remedy="Add timestamp and index to --query-gpu.",
    source="MaxContextFinder issue 6: several GPUs read as one.",
    check=checks.unnamed_card,
)

UTILISATION_OVER_READING = Guard(
    code="PK155",
    name="utilisation-over-reading",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A utilisation near 100 %.",
    cause="It counts the time that any kernel was resident: one thread on one SM counts like all of them.",
    detection="Utilisation or GR active at the device-bound threshold or above, with SM active below "
    f"{limit(SM_INEFFECTIVE)} or not measured.",
    remedy=f"dcgmi dmon -e 1002,1004, or perfkit layer1 --live. From {limit(SM_EFFECTIVE)} SM active on the "
    "device may be full; below it, larger batches or fewer, larger kernels come first.",
    source=f"{NVML_UTILISATION}; DCGM user guide, SM activity; NordicHPC/sonar issue 181.",
    check=checks.over_reading,
)

UTILISATION_WITHOUT_MEMORY = Guard(
    code="PK156",
    name="utilisation-without-memory",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A busy card with no memory in use and no process.",
    cause="The first reading after the driver loads (persistence mode off) shows its own start-up, such as "
    "ECC scrubbing, often as 100 %.",
    detection="Samples with utilisation above 0 and exactly 0 bytes in use.",
    remedy="nvidia-smi -pm 1, or leave out the first samples.",
    source="nvml.h on utilisation during initialisation; an L40S capture: 100 % at 145 W with 0 MiB in use.",
    check=checks.reading_without_memory,
)

IDLE_EDGES_DECIDE = Guard(
    code="PK157",
    name="idle-edges-decide",
    layer="layer1",
    effect=Effect.NOTE,
    sees="Two means of one log that lead to different verdicts.",
    cause="The sampler ran before or after the load. perfkit judges from the first to the last sample above "
    "0, as it does with traces.",
    detection="The means of that stretch and of the whole log fall on different sides of a threshold.",
    remedy="Start and stop the sampler with the load, so that there is nothing to choose.",
    source="perfkit: the window decides more than anything else.",
    check=checks.idle_edges,
)

IDLE_INSIDE_THE_LOAD = Guard(
    code="PK173",
    name="idle-inside-the-load",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A low mean of a log that is 0 most of the time.",
    cause="There was no steady load: a few requests, or nothing but a blip at both ends. Idle time without "
    "requests says nothing of the host.",
    detection=f"More than {limit(IDLE_INSIDE_SHARE)} of the samples from the first to the last above 0 are "
    "exactly 0.",
    remedy="Sample while the service works without a pause: start the load first, stop it last.",
    source="perfkit's table of n: samples inside the load window.",
    check=checks.idle_inside,
)

SHARES_EXCLUDE_EACH_OTHER = Guard(
    code="PK174",
    name="shares-exclude-each-other",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Tensor pipes that are busier than the multiprocessors that they are part of.",
    cause="The fields are of two cards, of two times, or one counter has stopped.",
    detection="SM active above the resident time, or tensor active or SM occupancy above SM active, by more "
    f"than {limit(IMPOSSIBLE_BY)}.",
    remedy="Sample all fields of one card with one tool in one pass, and compare again.",
    source="DCGM field definitions 1001 to 1004: each is a part of the one before.",
    check=checks.exclude_each_other,
)

READINGS_WITHOUT_VALUE = Guard(
    code="PK182",
    name="readings-without-value",
    layer="layer1",
    effect=Effect.VOID,
    sees="A mean of the few readings that had a value.",
    cause="The sampler had none to give (N/A, Unknown Error, blank) or one that cannot be: the card was "
    "lost, the counters were shared, the container lost its device. Often that is when the card was busy.",
    detection=f"Fewer than {limit(TOO_LITTLE_KNOWN)} of the readings of the field that the card is judged by "
    f"have a value; directional where more than {limit(LOST_SHARE)} of those of any busy field have none, "
    "else a note.",
    remedy="See what the log says instead (dmesg for Xid); sample again with fields that the card gives "
    "throughout.",
    source="NVIDIA/DCGM issue 244 (N/A for some of the fields); nvidia-docker issue 1671 (Unknown Error "
    "after hours).",
    check=checks.partly_known,
)

SAMPLED_GUARDS: tuple[Guard[SampledFacts], ...] = (
    NO_SAMPLED_VALUES,
    FEW_SAMPLED_VALUES,
    RAMP_ONLY,
    IDLE_THROUGHOUT,
    FALSE_ZEROS,
    MIG_WITHOUT_UTILISATION,
    SAMPLER_NOT_PERMITTED,
    PROFILING_COUNTERS_HELD,
    SAMPLER_FAILED,
    SEVERAL_PROCESSES,
    SCALE_SUSPECTED,
    SAMPLING_CLOCK_STEPPED,
    DAMAGED_LOG,
    HOLES_IN_THE_SERIES,
    UNNAMED_CARD,
    UTILISATION_OVER_READING,
    UTILISATION_WITHOUT_MEMORY,
    IDLE_EDGES_DECIDE,
    IDLE_INSIDE_THE_LOAD,
    SHARES_EXCLUDE_EACH_OTHER,
    READINGS_WITHOUT_VALUE,
)
