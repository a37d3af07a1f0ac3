"""The guards on one capture: is it a capture at all, and of what it seems to be?

One that is void is left out, and the others are counted without it. py-spy's exit code is 0 for nearly all
of these.
"""

from __future__ import annotations

from layers.collectors.stacks.rates import LATE_S, LATE_SHARE, SPREADS
from layers.evidence.guard import Effect, Guard
from layers.evidence.wording import limit
from layers.layer2_stacks import checks_capture as checks
from layers.layer2_stacks.checks_capture import (
    ERRORS_LIMIT,
    ERRORS_VOID,
    IDLE_CPU_SHARE,
    IDLE_IN_FLIGHT,
    IMPORTING_LIMIT,
    IMPORTING_VOID,
    SUSPICIOUS_THREADS,
    TICKS_LIMIT,
)
from layers.layer2_stacks.facts import CaptureFacts

NO_SAMPLES = Guard(
    code="PK201",
    name="no-samples",
    layer="layer2",
    effect=Effect.VOID,
    sees="A recording that ended well: no error, exit code 0, and an empty file.",
    cause="Every thread was blocked in calls that a capture without --idle skips (a device sync, queue.get, "
    "zmq.poll), nobody held the interpreter's lock, the target was gone, or all reads of it failed.",
    detection="No sample in the file.",
    remedy="Record with --idle, under load: it asks where the threads are blocked. Where py-spy failed, its "
    "own words say why.",
    source="py-spy #321; SGLang-Omni profiling methodology (sgl-project/sglang-omni#1798), layer 2.",
    check=checks.no_samples,
)

FELL_BEHIND = Guard(
    code="PK202",
    name="profiler-fell-behind",
    layer="layer2",
    effect=Effect.VOID,
    sees="A capture with all its ticks that took longer than asked.",
    cause="A look took longer than the time between two. Late ones follow back to back and right after the "
    "target was woken up, so that what it does then is counted too often.",
    detection="Any 'behind in sampling' of py-spy, which it prints from 1 s on.",
    remedy="Record at a lower rate: 5 Hz where a process has hundreds of threads.",
    source="py-spy #547, #807; 200 threads at 20 Hz: 5 s took 22.9 s (0.4.3, two cores).",
    check=checks.fell_behind,
)

FAILED_READS = Guard(
    code="PK203",
    name="failed-reads",
    layer="layer2",
    effect=Effect.VOID,
    sees="Fewer samples than there were looks, and an exit code of 0.",
    cause="A read that fails loses all threads of the process for that tick: two profilers on one process, a "
    "process that was replaced by another program, a Python that this py-spy does not know.",
    detection=f"Errors of more than {limit(ERRORS_VOID)} of the looks; directional above "
    f"{limit(ERRORS_LIMIT)}.",
    remedy="RUST_LOG=warn makes py-spy say what fails. One profiler at a time; attach anew after an exec.",
    source="py-spy #764 (95 % failed), #402, PR #630.",
    check=checks.failed_reads,
)

TICKS_MISSING = Guard(
    code="PK204",
    name="ticks-missing",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A capture with --idle in which no thread has the ticks that were asked for.",
    cause="It was made without --idle, or ended early, or reads of the process failed.",
    detection=f"The fullest thread has less than {limit(TICKS_LIMIT)} of rate x duration - 1 ticks.",
    remedy="Say the mode as it was (--mode), or record again for the whole time.",
    source="py-spy counts ticks, not time, and drops the one that reaches the limit: 20 Hz for 25 s are 499.",
    check=checks.ticks_missing,
)

MESSAGES_AMONG_STACKS = Guard(
    code="PK205",
    name="messages-among-stacks",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="Stacks, and words of py-spy between them.",
    cause="The file was /dev/stdout or a pipe: py-spy writes its messages there too, through its stacks.",
    detection="Stacks that a message runs through. They are lost; the others are counted.",
    remedy="Record into a file (-o NAME.raw).",
    source="py-spy 0.4.3 with -o /dev/stdout; a public tool reads such lines as stacks.",
    check=checks.messages_among_stacks,
)

STACKS_LOST = Guard(
    code="PK206",
    name="stacks-lost",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A file that reads well up to a place.",
    cause="It was cut, edited, or is not what py-spy writes.",
    detection="Text that makes no stack with a count, or profiles that cannot be counted.",
    remedy="Copy the file again, or record again.",
    source="What `lost` (--json) lists by file and line.",
    check=checks.stacks_lost,
)

ENDED_EARLY = Guard(
    code="PK207",
    name="ended-early",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A capture that is shorter than asked, and an exit code of 0.",
    cause="The process ended while it was recorded: the last ticks are of its end, not of its service. Or "
    "py-spy ended in an error, and nobody knows what its file lacks.",
    detection="py-spy stopped because the process exited, or by an error that it names; a note where "
    "somebody else ended py-spy: Ctrl-C, or perfkit because it took too long.",
    remedy="Record a process that stays; look into its log for why it ended.",
    source="py-spy exits with 0 then (0.3.14 to 0.4.3).",
    check=checks.ended_early,
)

TOOK_TOO_LONG = Guard(
    code="PK208",
    name="run-length-off",
    layer="layer2",
    effect=Effect.VOID,
    sees="All the ticks that were asked for.",
    cause="The duration is a number of ticks: a profiler that cannot keep up takes longer and says nothing "
    "below a second. A run that is far too short was cut, or the clock was set.",
    detection=f"Wall time above what was asked + {LATE_S:g} s + {limit(LATE_SHARE)} of it or {SPREADS:g} "
    "standard deviations of the random time between ticks, whichever is more; a note where it is shorter by "
    f"more than {SPREADS:g} of them.",
    remedy="Record at a lower rate.",
    source="py-spy spaces ticks exponentially, against aliasing (py-spy #94): 25 s at 20 Hz take 25 ± 1.1 s.",
    check=checks.run_length,
)

IDLE_SERVER = Guard(
    code="PK209",
    name="idle-server",
    layer="layer2",
    effect=Effect.VOID,
    sees="Threads that wait, as those of a service do whose problem is waiting.",
    cause="There was nothing to do: no request was served while it was recorded.",
    detection="Nobody's request was answered meanwhile, as the load or the server's own counters count "
    f"them, and fewer than {IDLE_IN_FLIGHT:g} were in flight on average. Where nobody counts answers it is "
    "directional: by those in flight, or, without these, by CPU time of the process below "
    f"{limit(IDLE_CPU_SHARE)} of a core. An idle scheduler that spins is not found by its CPU time (PK210).",
    remedy="Record under the load that is too slow.",
    source="SGLang-Omni profiling methodology (sgl-project/sglang-omni#1798): only under load.",
    check=checks.idle_server,
)

IDLE_DETECTION_FAILED = Guard(
    code="PK211",
    name="idle-detection-failed",
    layer="layer2",
    effect=Effect.VOID,
    sees="A capture without --idle in which several threads run all the time.",
    cause="py-spy asks the kernel for each thread's state by its id. From outside of the target's PID "
    "namespace (the host, of a container) the ids are others, and every thread counts as running.",
    detection=f"Without --idle, {SUSPICIOUS_THREADS} threads or more with every tick, in a process whose "
    "interpreter lets one run at a time, where the kernel's own count does not say the same.",
    remedy="Record inside the container. What was recorded holds all ticks: with --mode idle it is a capture "
    "with --idle.",
    source="py-spy 0.4.3 across a PID namespace: 792 samples of 8 sleeping threads with --idle, 792 without.",
    check=checks.idle_detection,
)

STARTING_UP = Guard(
    code="PK212",
    name="start-up-frames",
    layer="layer2",
    effect=Effect.VOID,
    sees="Shares of a program that was still loading.",
    cause="Samples inside imports: the process, or a helper that it started meanwhile, was starting.",
    detection=f"More than {limit(IMPORTING_VOID)} of the samples inside an import; directional above "
    f"{limit(IMPORTING_LIMIT)}, a note below.",
    remedy="Record after the first request was served.",
    source="A capture of a process that loads torch: 119 of 119 samples in imports (py-spy 0.4.3).",
    check=checks.starting_up,
)

MODE_NOT_TOLD = Guard(
    code="PK217",
    name="mode-not-told",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="Shares, and no word on what they are shares of.",
    cause="The file does not tell whether it was recorded with --idle (shares of all time), without (of time "
    "on a CPU) or with --gil; py-spy's own output does not either.",
    detection="Neither --mode, nor py-spy's command in a log, nor a file in which no thread lacks a tick "
    "(then none was left out, and this is a note).",
    remedy="Say --mode idle, active or gil.",
    source="The formats of py-spy hold no state of a thread (0.3.14 to 0.4.3).",
    check=checks.mode_not_told,
)

SECOND_TRACER = Guard(
    code="PK220",
    name="two-profilers",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="Failed reads, now and then.",
    cause="Another tracer holds the process: a second py-spy, a debugger, a watchdog of the engine that "
    "dumps stacks itself.",
    detection="'Failed to suspend process' in what py-spy said under RUST_LOG=warn.",
    remedy="One profiler at a time.",
    source="Two py-spy on one process at 100 Hz: 26 to 39 % of ticks fail, exit code 0; SGLang's watchdog "
    "calls py-spy (sglang #7553).",
    check=checks.second_tracer,
)

ANOTHER_LOG = Guard(
    code="PK227",
    name="log-of-another-capture",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A log beside a capture that does not fit it.",
    cause="The log is another recording's, the file was cut or edited, or an old py-spy counts otherwise.",
    detection="py-spy said another number of samples than the file holds, where nothing of it was lost, or a "
    "thread has more ticks than there were looks.",
    remedy="Give each capture its own log (--log, or NAME.log beside it).",
    source="The count that py-spy says is the sum of the file's (0.4 and newer; py-spy #365 of older ones).",
    check=checks.another_log,
)

NO_LOG = Guard(
    code="PK231",
    name="no-word-of-the-profiler",
    layer="layer2",
    effect=Effect.NOTE,
    sees="A clean file of stacks.",
    cause="What py-spy printed was not kept: nobody knows whether it fell behind, how many reads failed, and "
    "how many looks it took. Nothing is strong then.",
    detection="No log beside the file, none given, and not recorded by perfkit.",
    remedy="Keep stdout and stderr: py-spy record … > NAME.log 2>&1.",
    source="py-spy exits with 0 in all these cases, and the file tells none of them.",
    check=checks.no_log,
)

CAPTURE_GUARDS: tuple[Guard[CaptureFacts], ...] = (
    *(NO_SAMPLES, FELL_BEHIND, FAILED_READS, TICKS_MISSING, MESSAGES_AMONG_STACKS, STACKS_LOST, ENDED_EARLY),
    *(TOOK_TOO_LONG, IDLE_SERVER, IDLE_DETECTION_FAILED, STARTING_UP, MODE_NOT_TOLD, SECOND_TRACER),
    *(ANOTHER_LOG, NO_LOG),
)
