"""The guards on the thread of the verdict: is it the right one, and do its shares say what they seem to?"""

from __future__ import annotations

from layers.evidence.guard import Effect, Guard
from layers.evidence.strength_table import STACKS_MIN_CAPTURES, STACKS_MIN_TICKS
from layers.evidence.wording import limit
from layers.layer2_stacks import checks_thread as checks
from layers.layer2_stacks.checks_thread import (
    ENTRY_LIMIT,
    KERNEL_LIMIT,
    NO_CORE_LIMIT,
    SECOND_CALLER,
    WAITS_ALL_THE_TIME,
)
from layers.layer2_stacks.facts import Facts
from layers.layer2_stacks.words import STANDS_OUT

LOAD_NOT_KNOWN = Guard(
    code="PK210",
    name="load-not-known",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A thread that waits for work most of the time.",
    cause="An idle server looks the same as one whose work does not reach this thread, and files of stacks "
    "do not tell under which load they were made.",
    detection="Nobody counted requests; CPU time alone proves no load. A note where the thread does not "
    "mostly wait in a queue, a select or a condition.",
    remedy="Record under load and watch the server's counters meanwhile; or say in the report which load "
    "ran.",
    source="sglang #1730, #3708: an idle scheduler spins or polls all the time.",
    check=checks.load_not_known,
)

INHERITED_LOOP = Guard(
    code="PK213",
    name="fork-inherits-loop",
    layer="layer2",
    effect=Effect.NOTE,
    sees="A scheduler with twice the samples that it can have.",
    cause="A helper that is forked inside the loop carries the frames of its parent: every sample of it "
    "seems to be one of the scheduler.",
    detection="Stacks with a loop of an engine in front of a fork. They are cut there and count for the "
    "helper.",
    remedy="Nothing: perfkit cuts them. Elsewhere, scope by the innermost process and thread, not by a "
    "frame.",
    source="A helper forked in a loop had half of all 'scheduler' samples (py-spy 0.4.3, --subprocesses).",
    check=checks.inherited_loop,
)

THREADS_NOT_RECORDED = Guard(
    code="PK214",
    name="threads-not-recorded",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="Shares that change with the number of threads.",
    cause="Without --threads equal stacks of several threads add up, and nothing takes them apart again: a "
    "pool of idle workers dilutes the one thread that matters.",
    detection="Stacks without a thread. A note where what enters at one frame has no more ticks than there "
    "were looks: then it is one thread.",
    remedy="Record with --threads --full-filenames.",
    source="One engine, process-wide: its scheduler is 79 of 632 samples, 12.5 % (py-spy 0.4.3).",
    check=checks.threads_not_recorded,
)

SHORT_FILE_NAMES = Guard(
    code="PK215",
    name="short-file-names",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="One line with the time of two.",
    cause="Without --full-filenames a file outside of a package has its bare name: two utils.py are one "
    "frame.",
    detection="A line of a file without a folder that stands out and is in two functions, which no file has; "
    "a note where it is in one.",
    remedy="Record with --full-filenames.",
    source="Two utils.py with 19 samples each gave one of 38 (py-spy 0.4.3); sglang/srt/managers has no "
    "__init__.py.",
    check=checks.short_file_names,
)

SEVERAL_MODES = Guard(
    code="PK216",
    name="several-modes",
    layer="layer2",
    effect=Effect.NOTE,
    sees="Captures that ask different questions.",
    cause="--idle asks where a thread is at any time, without it where it is on a CPU, --gil where it holds "
    "the interpreter's lock. Pooled, their shares are of nothing.",
    detection="More than one mode among the captures.",
    remedy="Nothing: each mode is counted by itself, with its own ticks.",
    source="SGLang-Omni profiling methodology (sgl-project/sglang-omni#1798): run both, do not mix.",
    check=checks.several_modes,
)

FEW_TICKS = Guard(
    code="PK218",
    name="few-ticks",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="Shares with decimals.",
    cause="One capture is one stretch of time, and ticks of one stretch resemble each other.",
    detection=f"Fewer than {STACKS_MIN_TICKS} ticks of the thread, or fewer than {STACKS_MIN_CAPTURES} "
    "captures.",
    remedy=f"{STACKS_MIN_CAPTURES} captures of 25 s at 20 Hz, some time apart, under the same load.",
    source="Public dask profiles: true intervals are 2.4 to 3 times as wide as those of independent ticks.",
    check=checks.few_ticks,
)

CAPTURES_DISAGREE = Guard(
    code="PK219",
    name="captures-disagree",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A mean over captures that saw different things.",
    cause="The load changed, a phase of the service fell into one of them, or a one-off cost.",
    detection="Captures on both sides of the verdict's threshold; a note where the first line's share "
    "differs by more than independent ticks would.",
    remedy="More captures under one steady load; look at each by itself.",
    source="Pearson's chi-square at 95 %.",
    check=checks.captures_disagree,
)

SEVERAL_CALLERS = Guard(
    code="PK221",
    name="merged-leaf",
    layer="layer2",
    effect=Effect.NOTE,
    sees="One line that stands out.",
    cause="A library's line (a lock, a module call, a decorator) is reached from several places, which are "
    "different costs.",
    detection=f"A line of {limit(STANDS_OUT)} or more whose second caller has {limit(SECOND_CALLER)} or more "
    "of its hits.",
    remedy="Look at the callers (`callers` in --json), or at the flame graph.",
    source="decorate_context, _call_impl and Condition.wait in public stacks of SGLang and vLLM.",
    check=checks.several_callers,
)

WRONG_PROCESS = Guard(
    code="PK222",
    name="wrong-process",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A process in which nothing happens.",
    cause="Servers have a front process that takes requests and waits; the scheduler and the forward run in "
    "a child.",
    detection="No loop of a known engine in any thread, and every thread waits for "
    f"{limit(WAITS_ALL_THE_TIME)} of its ticks or more, one of them in a select.",
    remedy="Record the child that maps CUDA libraries or has an event_loop_* frame (py-spy dump --pid).",
    source="A spawned engine: its front has 4 threads and no scheduler frame (py-spy 0.4.3).",
    check=checks.wrong_process,
)

PROFILERS_DIFFER = Guard(
    code="PK223",
    name="profilers-differ",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="Captures of one service under two names of each function.",
    cause="py-spy 0.4.3 writes qualified names on Python 3.11 and newer, older ones do not; other switches "
    "change what a frame is.",
    detection="Captures of one mode of which some have lines and some have none; a note where versions of "
    "py-spy or of Python, or other switches, differ.",
    remedy="One version, one set of switches.",
    source="py-spy #824, #825; functions are compared by the last part of their names.",
    check=checks.profilers_differ,
)

BUSY_SPIN = Guard(
    code="PK224",
    name="busy-spin",
    layer="layer2",
    effect=Effect.NOTE,
    sees="A thread that takes a whole core.",
    cause="It polls in a loop: for the kernel it runs, and it does no work.",
    detection=f"{limit(STANDS_OUT)} or more of the thread's ticks in lines that are known to spin.",
    remedy="Read it as waiting, and look at what it waits for; the core is lost to others.",
    source="vllm #51950, #50835 (sched_yield, acquire_read), sglang #1730 (recv_requests).",
    check=checks.busy_spin,
)

TORN_STACKS = Guard(
    code="PK225",
    name="torn-stacks",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="Frames of a thread under a root that it does not have.",
    cause="With --nonblocking the stack is read while it changes.",
    detection=f"The engine's loop is missing in more than {limit(1 - ENTRY_LIMIT)} of the ticks of its "
    "thread.",
    remedy="Record without --nonblocking, at a lower rate where that costs too much.",
    source="py-spy #56; py-spy's own help on --nonblocking.",
    check=checks.torn_stacks,
)

WORK_OR_WAIT = Guard(
    code="PK226",
    name="work-or-wait",
    layer="layer2",
    effect=Effect.NOTE,
    sees="A line of Python that holds much of the time.",
    cause="A call into C (time.sleep, .item(), .cpu(), a read) has no frame of its own: its time stands on "
    "the line that calls it, whether it works or blocks.",
    detection="Captures with --idle alone, whose first line is in no table of waits and has no native "
    "frames.",
    remedy="Add captures without --idle, with their logs; or record with --native.",
    source="py-spy gives a frame the line of its current instruction.",
    check=checks.work_or_wait,
)

KERNEL_DISAGREES = Guard(
    code="PK228",
    name="kernel-disagrees",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A share of time on a CPU that the kernel does not confirm.",
    cause="The profiler's look wakes sleepers, sees another PID namespace, or falls in step with the loop.",
    detection="The kernel's own count (schedstat: on a CPU or waiting for one) over the same window differs "
    f"by more than {limit(KERNEL_LIMIT)} of the time.",
    remedy="Believe the kernel for how much, the stacks for where.",
    source="Linux Documentation/scheduler/sched-stats.rst; an idle process gives 1 to 5 % 'active' ticks.",
    check=checks.kernel_disagrees,
)

SEVERAL_WORKERS = Guard(
    code="PK229",
    name="several-loops",
    layer="layer2",
    effect=Effect.NOTE,
    sees="A verdict over one of several threads that do the same job.",
    cause="Several ranks, workers or replicas were recorded together: each has its own loop.",
    detection="More than one thread that enters at a loop of an engine.",
    remedy="Choose with --thread or --entry; compare them (`scopes` in --json).",
    source="vLLM's workers and SGLang's ranks are a process each.",
    check=checks.several_workers,
)

MODES_CONTRADICT = Guard(
    code="PK232",
    name="modes-contradict",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A thread that waits at most looks with --idle, and runs at most looks without.",
    cause="Idle detection failed (another PID namespace), the captures are of different loads, or a log "
    "belongs to another capture.",
    detection="Waits that take no CPU, with --idle, and the ticks without it add up to more than the time by "
    f"over {limit(KERNEL_LIMIT)} of it.",
    remedy="Take both modes in turns under one load, inside the container.",
    source="py-spy 0.4.3 across a PID namespace: 792 samples with --idle and 792 without.",
    check=checks.modes_contradict,
)

COPIES = Guard(
    code="PK233",
    name="captures-are-copies",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="Several captures that agree perfectly.",
    cause="One file under several names: copied, linked, or written again.",
    detection="Captures that are the same byte for byte, though their stacks were not hit equally often.",
    remedy="Give each capture once; repeats are captures of their own.",
    source="perfkit's choice: py-spy writes stacks in random order, and counts vary between captures.",
    check=checks.copies,
)

NO_CORE = Guard(
    code="PK234",
    name="no-core-free",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A thread that is on a CPU little, and lines that seem to hold it.",
    cause="Others had the cores: the load client, the profiler, another service, a limit of the container. "
    "The thread wanted to run, and stood at a line until it could.",
    detection="The kernel's own count (schedstat) of the thread's time in a run queue is above "
    f"{limit(NO_CORE_LIMIT)} of the captures.",
    remedy="Free cores, raise the container's CPU limit or send the load from another machine (perfkit "
    "preflight --watch tells who takes them), and record again.",
    source="Linux Documentation/scheduler/sched-stats.rst: the second field is time waiting on a runqueue.",
    check=checks.no_core,
)

THREAD_GUARDS: tuple[Guard[Facts], ...] = (
    *(LOAD_NOT_KNOWN, INHERITED_LOOP, THREADS_NOT_RECORDED, SHORT_FILE_NAMES, SEVERAL_MODES, FEW_TICKS),
    *(CAPTURES_DISAGREE, SEVERAL_CALLERS, WRONG_PROCESS, PROFILERS_DIFFER, BUSY_SPIN, TORN_STACKS),
    *(WORK_OR_WAIT, KERNEL_DISAGREES, SEVERAL_WORKERS, MODES_CONTRADICT, COPIES, NO_CORE),
)
