"""The guards of Layer 1 on traces: when a busy ratio of a trace is not what it seems to be.

One entry per guard, with the trap in words; the functions that look for them are in `guard_checks`.
"""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard
from layers.evidence.strength_table import TRACE_MIN_OPERATIONS, TRACE_MIN_STEPS
from layers.evidence.wording import limit
from layers.layer1_gpu_busy import guard_checks as checks
from layers.layer1_gpu_busy.guard_checks import (
    COMMUNICATION_SHARE,
    DOMINANT_SHARE,
    HOLE_SHARE,
    MISSING_LAUNCH_TOLERANCE,
    OUTLYING,
    QUEUED_SHARE,
    TraceFacts,
)
from layers.layer1_gpu_busy.runtime_calls import SEEN_SHARE
from layers.layer1_gpu_busy.symptoms.device import S12

GRAPH_REPLAY_BLIND_SPOT = Guard(
    code="PK101",
    name="graph-replay-blind-spot",
    layer="layer1",
    effect=Effect.VOID,
    sees="A low busy ratio on a service that runs CUDA or HIP graphs.",
    cause="The profiler recorded the call that launched a graph and not the operations that the graph ran. "
    "The replay time then counts as idle.",
    detection="Graph launch calls whose correlation id no device operation carries. The ratio is bounded "
    "from both sides; a conclusion that differs between the bounds is void.",
    remedy="Record again with graph nodes visible (torch: DISABLE_CUPTI_LAZY_REINIT=1, CUDA 12.6 or newer; "
    "nsys: --cuda-graph-trace=node), or use a method that sees replays: perfkit layer1 --live, --dcgm or "
    "--smi.",
    source="SGLang-Omni methodology 1.3 (torch 2.11 + CUDA 13: replays only as cudaGraphLaunch); ROCm "
    "before 7.2.2 (sglang PR 35390); pytorch PR 101879.",
    check=checks.replays,
)

SHORT_REPLAYS = Guard(
    code="PK102",
    name="short-replays",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Replays of one graph with different numbers of kernels.",
    cause="The profiler dropped part of some replays; a replay always runs all of its nodes.",
    detection="A list of operations that was recorded once and is a part of what another replay ran; a list "
    "that comes back is a graph of its own. A note where the lower bound is device-bound already.",
    remedy="Treat the ratio as a lower bound; record a shorter stretch, or update the driver and profiler.",
    source="sglang PR 35390 (448 of 512 replayed kernels recorded); rocm-systems PR 4361 (26 to 65 %, "
    "another share in each run); kineto issue 1062.",
    check=checks.short_replays,
)

LAUNCHES_WITHOUT_OPERATIONS = Guard(
    code="PK103",
    name="launches-without-operations",
    layer="layer1",
    effect=Effect.VOID,
    sees="Kernel launch calls on the host with nothing under them on the device.",
    cause="Kernels were dropped: a CUPTI buffer limit, a session that began too late, or a second profiler "
    "session in one process.",
    detection=f"More than {limit(MISSING_LAUNCH_TOLERANCE)} of the outermost kernel launch calls (captures "
    "apart) have no operation with their correlation id. Where those are the last launches, a hint (a note "
    "where the ratio is device-bound).",
    remedy="Record again, shorter and with a warm-up step before; compare launches with kernels per step.",
    source="pytorch issue 192021; tokenspeed PR 1287; kineto issue 996.",
    check=checks.unrecorded_launches,
)

NO_DEVICE_ACTIVITY = Guard(
    code="PK104",
    name="no-device-activity",
    layer="layer1",
    effect=Effect.VOID,
    sees="A trace without any device operation.",
    cause="A CPU-only run, a device that perfkit does not read, or device activity that was not recorded. "
    "None of these is a busy ratio of 0 %.",
    detection="No event of a device category.",
    remedy="Record with device activities (torch.profiler: ProfilerActivity.CUDA), in the process that "
    "launches the kernels, and check that CUPTI or roctracer is installed.",
    source="HTA issues 148 and 233; kineto issue 564.",
    check=checks.no_device_activity,
)

FEW_SAMPLES = Guard(
    code="PK105",
    name="few-samples",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A ratio from one short capture.",
    cause="A trace is exact for its window; a window of a few steps need not stand for the service.",
    detection=f"Fewer than {TRACE_MIN_STEPS} steps and fewer than {TRACE_MIN_OPERATIONS} device operations.",
    remedy=f"Capture {TRACE_MIN_STEPS} steady steps or more, under the load that is complained about.",
    source="perfkit's table of n (layers/evidence/strength_table.py).",
    check=checks.few_samples,
)

DAMAGED_FILE = Guard(
    code="PK106",
    name="damaged-file",
    layer="layer1",
    effect=Effect.VOID,
    sees="A trace that other tools refuse, or read without a word.",
    cause="The file was cut or holds invalid JSON; what could be read was read.",
    detection="A file that ends before its end is void: what is missing may have filled the idle time "
    "(where the rest is device-bound all the same, it is a hint). Text lost in the middle leaves a hint "
    "when it may hold device work, else a note.",
    remedy="Copy or record the file again.",
    source="pytorch issues 98432, 113001, 136180; kineto issues 80 and 336.",
    check=checks.damage,
)

ZERO_TIMESTAMPS = Guard(
    code="PK107",
    name="zero-timestamps",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Device operations with timestamp 0 and duration 0.",
    cause="The profiler recorded that they ran and not when; they count as idle, so the ratio is a lower "
    "bound.",
    detection="Device operations with ts = 0 and dur = 0.",
    remedy="Update PyTorch and CUPTI; record again.",
    source="kineto issue 109; pytorch issue 188481.",
    check=checks.zero_timestamps,
)

ONE_OPERATION_DOMINATES = Guard(
    code="PK108",
    name="one-operation-dominates",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A busy ratio that a single operation makes.",
    cause="A first-use initialisation, a collective that waited for a late rank, or a duration that the "
    "profiler got wrong.",
    detection=f"The longest operation is more than {limit(DOMINANT_SHARE)} of the union of all.",
    remedy="Look at that operation first; record a window without it.",
    source="TraceLens issue 972 (one event 99.07 % of GPU time); Hyperloom PR 1249.",
    check=checks.dominance,
)

HOLE_IN_THE_WINDOW = Guard(
    code="PK109",
    name="hole-in-the-window",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A low ratio that one or two long gaps make.",
    cause="The window from first to last activity joins separate stretches: an early kernel, a pause "
    "between requests, a profiler that started late.",
    detection=f"The longest gap is more than {limit(HOLE_SHARE)} of the device window, or the one or two "
    f"longest, {OUTLYING} times the next, decide the verdict: without them the ratio passes a threshold. An "
    "operation of no length splits no gap.",
    remedy="Judge by steps; record under steady load.",
    source="An SGLang decode trace in the TraceLens collection: 2.06 % with its first kernel, 93.5 % "
    "without.",
    check=checks.hole,
)

WINDOW_DECIDES = Guard(
    code="PK110",
    name="window-decides",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Two honest busy ratios of one trace that lead to different verdicts.",
    cause="Device activity fills only part of the profiled steps.",
    detection="The device window and the profiled-steps window fall on different sides of a threshold, and "
    "still do where the latter runs on to the end of the device's work.",
    remedy="Decide which time the service is judged by; look at what the host did outside the device window.",
    source="An H100 TimeSformer trace in the TraceLens collection: 99.0 % against 41.4 %.",
    check=checks.windows_disagree,
)

UNCOUNTED_DEVICE_CATEGORY = Guard(
    code="PK111",
    name="uncounted-device-category",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Events that name a device under a category that perfkit does not know.",
    cause="A new profiler version or another producer; the time may be work or may be waiting.",
    detection="Events with args.device whose category is in no table.",
    remedy="Look at these events in a viewer; if they are work, the ratio is a lower bound. Report the "
    "category.",
    source="SGLang-Omni methodology 1.3: inspect which categories exist, hardcode none.",
    check=checks.unknown_categories,
)

GRAPH_CAPTURE_RECORDED = Guard(
    code="PK112",
    name="graph-capture-recorded",
    layer="layer1",
    effect=Effect.VOID,
    sees="Thousands of launches and next to no kernels.",
    cause="The recording covers the capture of a graph: launches go into the graph, nothing runs.",
    detection="Launches between StreamBeginCapture and StreamEndCapture of a thread; void when they are "
    "most.",
    remedy="Record steady state, after start-up.",
    source="SGLang-Omni skill omni-gpu-deep-dive: reject traces that hold compile frames or graph capture.",
    check=checks.graph_capture,
)

BUSY_WITH_WAITING = Guard(
    code="PK113",
    name="busy-with-waiting",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A high busy ratio on one rank of several.",
    cause="A collective kernel is resident while it waits for the slowest rank: busy is not working.",
    detection=f"Communication kernels are more than {limit(COMMUNICATION_SHARE)} of busy time.",
    remedy="Read all ranks together (perfkit layer1 --trace rank*.json.gz) and look at the straggler.",
    source="NVIDIA Megatron-Bridge profiling pitfalls; Hyperloom PR 1249.",
    check=checks.communication,
)

HOST_SIDE_MISSING = Guard(
    code="PK114",
    name="host-side-missing",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Kernels without the calls that launched them.",
    cause="Only device activity was recorded, or another process or thread launched the work. The device "
    "was idle, and nobody saw what the host did meanwhile: it may have had no request.",
    detection=f"Less than {limit(SEEN_SHARE)} of the device operations have a correlation id of a runtime "
    "call of the trace. A note where the ratio is not host-bound.",
    remedy="Record CPU activity in the thread that launches (torch.profiler: ProfilerActivity.CPU).",
    source="SGLang PR 1304: CPU operators of the scheduler thread absent.",
    check=checks.host_missing,
)

EVENT_CAP = Guard(
    code="PK115",
    name="event-cap",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A round number of events.",
    cause="The exporter stops at a fixed number of events and says nothing.",
    detection="Exactly 1,000,000 or 5,000,000 complete events.",
    remedy="Raise the limit (XLA: TF_PROFILER_TRACE_VIEWER_MAX_EVENTS) or record less.",
    source="jax issue 21295; openxla PR 44702.",
    check=checks.event_cap,
)

BUSY_OVER_READING = Guard(
    code="PK116",
    name="busy-over-reading",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A device that is busy nearly all the time.",
    cause="Busy means that some kernel was resident, not that the chip was full: one block on one "
    "multiprocessor counts like all of them.",
    detection="A device-bound verdict from time alone.",
    remedy="Look at SM active and tensor active (dcgmi dmon -e 1002,1004) and at perfkit roofline.",
    source="DCGM documentation of fields 1002 and 1004.",
    check=checks.over_reading,
)

IDLE_WHILE_QUEUED = Guard(
    code="PK117",
    name="idle-while-queued",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A low busy ratio although the host is far ahead of the device.",
    cause="The device waited for something that is not the launching thread: an event of another stream, "
    "another rank, a host function, the profiler's own buffer flush; or, where the device is emulated on the "
    "host, its process had no core to run on. Or it did not wait at all, and the profiler lost "
    "what ran, such as a part of a graph's replay.",
    detection=f"A host-bound ratio, and more than {limit(QUEUED_SHARE)} of the idle time is ended by "
    "operations whose launch call had returned before it, with a queue that is not empty at the median "
    "launch.",
    remedy="Look at the largest gaps and what ended them; record all ranks; see whether others took the "
    "host's cores (PK186, perfkit preflight --watch); measure without a tracer "
    "(nvidia-smi dmon, dcgmi dmon) to see whether the gaps exist without the profiler.",
    source="NVIDIA Nsight Systems guidance on queue time; an A100 training trace in the HTA collection: "
    "35.6 % busy with a median of 820 operations queued.",
    check=checks.idle_while_queued,
)

BUSY_WITH_COPIES = Guard(
    code="PK127",
    name="busy-with-copies",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="A device that is busy nearly all the time and computes next to nothing.",
    cause="Copies between host and device fill the time: offloaded weights or KV cache, pageable memory. "
    "Tuning kernels cannot help.",
    detection="Device-op time is device-bound and kernel time alone is host-bound.",
    remedy=f"Look at the copies by direction (symptom {S12.code}): move less, pin host memory, copy on a "
    "stream of its own.",
    source="A public nsys export of 2 H100: kernel time 2.3 %, device-op time 99.3 %.",
    check=checks.busy_with_copies,
)

STACKS_SLOW_THE_HOST = Guard(
    code="PK129",
    name="stacks-slow-the-host",
    layer="layer1",
    effect=Effect.NOTE,
    sees="A host-bound trace that was recorded with Python stacks.",
    cause="Recording every Python call slows the host and not the device, so part of the idle time is the "
    "profiler's own.",
    detection="A host-bound ratio in a trace that holds Python frames. The finding is weak: a known "
    "confound.",
    remedy="Record once more without stacks (with_stack=False) for how much; keep the trace with stacks for "
    "where.",
    source="SGLang-Omni skill omni-gpu-deep-dive: where from a stacks-on trace, how much from another.",
    check=checks.python_stacks,
)

RATIOS_ALONE = Guard(
    code="PK134",
    name="ratios-alone",
    layer="layer1",
    effect=Effect.DIRECTIONAL,
    sees="Ratios of a large trace in a second or two.",
    cause="With --busy-only perfkit looks for the marks of device work and decodes nothing else: damage in "
    "the rest, unknown categories, graph captures, kernels that were launched and never ran and queues go "
    "unseen.",
    detection="The trace was read with --busy-only: whatever its ratio, what was not seen may make it void "
    "or undecided. The message says what was not checked.",
    remedy="Run once without --busy-only before you conclude.",
    source="perfkit: a reading that saw less says so.",
    check=checks.ratios_alone,
)

WINDOW_WITHOUT_LENGTH = Guard(
    code="PK135",
    name="window-without-length",
    layer="layer1",
    effect=Effect.VOID,
    sees="A trace whose device operations all lie at one moment.",
    cause="Durations were not recorded, or were cut to whole microseconds by an old profiler.",
    detection="First and last device activity are the same nanosecond.",
    remedy="Record more work, with PyTorch 2.4 or newer (nanoseconds).",
    source="kineto issue 853 (microsecond truncation); pytorch issue 116830.",
    check=checks.window_without_length,
)

TRACE_GUARDS: tuple[Guard[TraceFacts], ...] = (
    GRAPH_REPLAY_BLIND_SPOT,
    SHORT_REPLAYS,
    LAUNCHES_WITHOUT_OPERATIONS,
    NO_DEVICE_ACTIVITY,
    FEW_SAMPLES,
    DAMAGED_FILE,
    ZERO_TIMESTAMPS,
    ONE_OPERATION_DOMINATES,
    HOLE_IN_THE_WINDOW,
    WINDOW_DECIDES,
    UNCOUNTED_DEVICE_CATEGORY,
    GRAPH_CAPTURE_RECORDED,
    BUSY_WITH_WAITING,
    HOST_SIDE_MISSING,
    EVENT_CAP,
    BUSY_OVER_READING,
    IDLE_WHILE_QUEUED,
    BUSY_WITH_COPIES,
    STACKS_SLOW_THE_HOST,
    RATIOS_ALONE,
    WINDOW_WITHOUT_LENGTH,
)
