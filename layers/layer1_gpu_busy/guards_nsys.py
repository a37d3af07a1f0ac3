"""The guards of Layer 1 on nsys exports: traps that no chrome trace has.

One entry per guard; the functions that look for them are in `nsys_guard_checks`. They are checked beside the
guards on traces, and do not apply to any other kind of file.
"""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard
from layers.evidence.wording import limit
from layers.layer1_gpu_busy import nsys_guard_checks as checks
from layers.layer1_gpu_busy.guard_checks import TraceFacts
from layers.layer1_gpu_busy.guards import LAUNCHES_WITHOUT_OPERATIONS
from layers.layer1_gpu_busy.nsys_guard_checks import NEWEST_SCHEMA, OVERHEAD_SHARE
from parsers.nsys_model import CUT_BELOW_SHARE

NSYS_EVENTS_MISSING = Guard(
    code="PK118",
    name="nsys-events-missing",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A busy ratio from an export whose own messages say that events may be missing.",
    cause="A buffer of CUPTI overflowed, the recording began or ended in the middle of the work, or the "
    "process was not followed from its start. Missing operations count as idle.",
    detection="Messages of nsys in DIAGNOSTIC_EVENT (exports since 2024; older ones have none). A note "
    "where the ratio is device-bound already.",
    remedy="Record again, shorter, wrapping the launch of the whole service: perfkit nsys run -- COMMAND.",
    source="Messages of real exports, nsys 2024.4 to 2026.1; vllm issues 5132, 10708 and 31337 (ranks "
    "without kernels).",
    check=checks.events_missing,
)

GRAPH_REPLAYS_AS_A_WHOLE = Guard(
    code="PK119",
    name="graph-replays-as-a-whole",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A kernel table that lacks most of the work of a service that runs CUDA graphs.",
    cause="nsys records a replay as one interval by default (--cuda-graph-trace=graph). Its kernels are in "
    "no table, so kernel counts, groups, communication and per-kernel times are incomplete, and the gaps "
    "inside a replay count as busy.",
    detection="Rows of CUPTI_ACTIVITY_KIND_GRAPH_TRACE. A note unless the verdict depends on them.",
    remedy="For a kernel table record with --cuda-graph-trace=node (perfkit nsys run --graphs node), over a "
    "short stretch, since it slows launches. For a busy ratio the default is the better choice.",
    source="nsys user guide, CUDA graph trace; public post-mortems that read whole-graph recordings as 99 % "
    "idle.",
    check=checks.whole_replays,
)

CUT_EXPORT = Guard(
    code="PK120",
    name="cut-export",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A recording of minutes with events in one second of it.",
    cause="The export was cut to a stretch of time, or a short program ran in a long recording. What lies "
    "outside is unknown, not idle.",
    detection=f"All events lie within {limit(CUT_BELOW_SHARE)} of the stated duration, or the export says "
    "that it was cut. Launches at its end are then not missed.",
    remedy="Judge by the device window alone; export without --times for the whole recording.",
    source="A public H100 export of 1 s cut from 296 s.",
    check=checks.cut,
)

DEVICES_NOT_MAPPED = Guard(
    code="PK121",
    name="devices-not-mapped",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Several processes that all ran on device 0.",
    cause="CUDA numbers the devices that a process may see from 0, and exports before schema 3.17 do not "
    "say which GPU that is. Processes that share a GPU then look like several half-idle GPUs.",
    detection="More than one process without TARGET_INFO_CUDA_DEVICE. A note where no two processes share "
    "an ordinal.",
    remedy="Export again with nsys 2025.1 or newer, or look up CUDA_VISIBLE_DEVICES of each process.",
    source="nsys export schema, TARGET_INFO_CUDA_DEVICE; CUDA programming guide on CUDA_VISIBLE_DEVICES.",
    check=checks.not_mapped,
)

GPU_METRICS_REFUSED = Guard(
    code="PK122",
    name="gpu-metrics-refused",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A recording with GPU metrics asked for and none in it.",
    cause="Performance counters are for administrators unless the driver is told otherwise.",
    detection="ERR_NVGPUCTRPERM in the messages of nsys, and no samples.",
    remedy="As root, or with the driver option NVreg_RestrictProfilingToAdminUsers=0, or in a container "
    "with CAP_SYS_ADMIN. perfkit layer1 --live and dcgmi need none of these on most systems.",
    source="https://developer.nvidia.com/ERR_NVGPUCTRPERM",
    check=checks.metrics_refused,
)

PROCESS_WITHOUT_OPERATIONS = Guard(
    code="PK123",
    name="process-without-operations",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A multi-process service in which only some ranks seem to use the GPU.",
    cause="nsys follows a forked child only when told to, so a worker's launches or its kernels can be "
    "missing altogether.",
    detection="Processes with kernel or graph launches and no device operation.",
    remedy="Record with --trace-fork-before-exec=true (perfkit nsys run does), or start workers by spawn.",
    source="vllm issues 5132 and 10708, PR 23802.",
    check=checks.process_without_operations,
)

PROFILER_IN_THE_GAPS = Guard(
    code="PK124",
    name="profiler-in-the-gaps",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Idle gaps that exist only while nsys records.",
    cause="A launching thread flushes the profiler's buffers or instruments a module, and the device runs "
    "dry meanwhile.",
    detection="PROFILER_OVERHEAD and CUPTI overhead of launching threads during more than "
    f"{limit(OVERHEAD_SHARE)} of the idle time.",
    remedy="Record steady state after a warm-up, with fewer things traced; measure the gaps without a "
    "tracer (perfkit layer1 --live).",
    source="nsys export documentation, 'Remove ranges overlapping with overhead'.",
    check=checks.profiler_in_the_gaps,
)

UNKNOWN_NSYS_SCHEMA = Guard(
    code="PK125",
    name="unknown-nsys-schema",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Numbers from an export of an nsys newer than perfkit knows.",
    cause="Columns may have changed their meaning.",
    detection=f"A schema newer than {'.'.join(map(str, NEWEST_SCHEMA))}; a note while its first number is "
    "the same.",
    remedy="Compare one number with `nsys stats`; update perfkit.",
    source="nsys export schema: a major version breaks scripts, a minor one may.",
    check=checks.unknown_schema,
)

NO_KERNEL_ROWS = Guard(
    code="PK126",
    name="no-kernel-rows",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A kernel time of 0 % on a device that did copies.",
    cause="The export holds no kernel and no replay: nothing was launched, or the table is missing because "
    "kernels were not recorded. An absent table is not a measurement of 0.",
    detection="Device operations, none of them a kernel or a replay.",
    remedy=f"Check the launches ({LAUNCHES_WITHOUT_OPERATIONS.code}) and the tables that were exported; "
    "record again.",
    source="nsys exports tables lazily: one without rows is absent.",
    check=checks.no_kernels,
)

NSYS_GUARDS: tuple[Guard[TraceFacts], ...] = (
    NSYS_EVENTS_MISSING,
    GRAPH_REPLAYS_AS_A_WHOLE,
    CUT_EXPORT,
    DEVICES_NOT_MAPPED,
    GPU_METRICS_REFUSED,
    PROCESS_WITHOUT_OPERATIONS,
    PROFILER_IN_THE_GAPS,
    UNKNOWN_NSYS_SCHEMA,
    NO_KERNEL_ROWS,
)
