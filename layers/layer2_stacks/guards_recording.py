"""The guards of Layer 2 on the process that is to be recorded, and on the recording as a whole.

What a single capture is worth (lag, failed reads, an idle server) is judged from what lies in its files, by
the guards on captures. Here is what only who records can see.
"""

from __future__ import annotations

from collections.abc import Callable

from layers.collectors.stacks.live_facts import LiveFacts, Obstacles
from layers.collectors.stacks.rates import PAUSED_SHARE, RATES_HZ, paused_share
from layers.collectors.stacks.recording import Ended, Target
from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import counted, first_few, limit, pct

Check = Callable[[LiveFacts], Outcome | None]


def _stands_against(kind: Obstacles, clear: str) -> Check:
    """Fires for the obstacles of one kind, with the exact change that removes each."""

    def check(facts: LiveFacts) -> Outcome | None:
        found = [one for one in facts.obstacles if one.kind is kind]
        if not found:
            return None if facts.obstacles else Outcome(False, clear)
        return Outcome(True, first_few(map(str, found)))

    return check


def _other_namespace(facts: LiveFacts) -> Outcome:
    inner = facts.target.namespace_pid
    if not facts.nested:
        return Outcome(False, "the target is in perfkit's own PID namespace")
    return Outcome(
        True,
        f"process {facts.target.pid} is process {inner} of a PID namespace of its own (a container): py-spy "
        "takes every thread of it for running, so what needs to know idle ones was not recorded: only "
        "captures with --idle, and the one with --gil, which asks who holds the lock. Do: "
        f"{inside(facts.target)}",
    )


def inside(target: Target) -> str:
    """How to record a process of another PID namespace from within."""
    enter = f"nsenter --target {target.pid} --pid --mount perfkit layer2 --pid {target.namespace_pid}"
    return f"run perfkit in that container, or {enter}"


def _likelier(facts: LiveFacts) -> Outcome | None:
    other = facts.likelier
    if other is None:
        return Outcome(False, "no other process of its tree looks more like the scheduler")
    return Outcome(
        True,
        f"process {facts.target.pid} was named, and process {other.pid} of its tree looks more like the "
        f"scheduler: {other.why}. Do: perfkit layer2 --pid {other.pid}",
    )


def _thrown_away(facts: LiveFacts) -> Outcome | None:
    if not facts.attempts:
        return None
    why = [attempt.discarded for attempt in facts.discarded]
    rates = sorted({attempt.recording.rate_hz for attempt in facts.kept})
    used = f"used are those at {' and '.join(map(str, rates))} Hz" if rates else "none is left to use"
    if not why:
        return Outcome(False, f"every capture could be used, at {' and '.join(map(str, rates))} Hz")
    return Outcome(True, f"{first_few(why)}; {used}", Effect.NOTE if rates else None)


def _costly(facts: LiveFacts) -> Outcome | None:
    cost, rates = facts.cost, [attempt.recording.rate_hz for attempt in facts.kept]
    if cost is None or not rates:
        return None
    share = paused_share(max(rates), cost.pause_ms)
    said = (
        f"one look stops all {counted(cost.threads, 'thread')} of the target for about {cost.pause_ms:.2g} "
        f"ms (median of {cost.n}), {pct(share)} of its time at {max(rates)} Hz"
    )
    return Outcome(share > PAUSED_SHARE, said)


def _left_stopped(facts: LiveFacts) -> Outcome | None:
    if not facts.attempts:
        return None
    if not any(attempt.left_stopped for attempt in facts.attempts):
        return Outcome(False, "the target ran on behind every capture")
    pid = facts.target.pid
    return Outcome(True, f"process {pid} stands still behind a capture: let it go on with kill -CONT {pid}")


def _died(facts: LiveFacts) -> Outcome | None:
    if not facts.attempts:
        return None
    dead = [a for a in facts.attempts if a.recording.ended_how is Ended.TARGET_ENDED]
    whole = sum(a.recording.ended_how is Ended.COMPLETE for a in facts.attempts)
    if not dead:
        return Outcome(False, "the target outlived every capture")
    after = dead[0].recording.wall_s
    said = f"process {facts.target.pid} ended {after:.1f} s into a capture ({dead[0].recording.mode})"
    left = f"{counted(whole, 'capture')} of {facts.asked} had been made"
    return Outcome(True, f"{said}; {left}", Effect.DIRECTIONAL if whole else None)


def _cut_short(facts: LiveFacts) -> Outcome | None:
    if not facts.attempts:
        return None
    whole = sum(a.recording.ended_how is Ended.COMPLETE for a in facts.attempts)
    if not facts.cut_short:
        return Outcome(False, "nobody ended the recording")
    return Outcome(True, f"the recording was ended after {counted(whole, 'capture')} of {facts.asked}")


def _other_profiler(facts: LiveFacts) -> Outcome | None:
    if not facts.attempts:
        return None
    seen = sorted({pid for attempt in facts.attempts for pid in attempt.tracers})
    if not seen:
        return Outcome(False, "no other profiler on the target was seen")
    on = sum(bool(attempt.tracers) for attempt in facts.attempts)
    who = ", ".join(map(str, seen))
    return Outcome(
        True,
        f"process {who} profiled or traced the target as well, in {counted(on, 'capture')}: end it first",
    )


NO_PROFILER = Guard(
    code="PK250",
    name="no-profiler",
    layer="layer2",
    effect=Effect.VOID,
    sees="No captures at all.",
    cause="py-spy is not installed where perfkit runs.",
    detection="No py-spy beside perfkit's interpreter and none on the PATH.",
    remedy="pip install py-spy.",
    source="py-spy's README; sglang #7553 and #7783 (a watchdog that needs it and does not find it).",
    check=_stands_against(Obstacles.NO_PROFILER, "py-spy is here"),
)

NO_RIGHT = Guard(
    code="PK251",
    name="no-right-to-trace",
    layer="layer2",
    effect=Effect.VOID,
    sees="py-spy says Permission denied, or that the executable's name cannot be had.",
    cause="The kernel lets this user not read the target's memory: it is another user's, a container lacks "
    "CAP_SYS_PTRACE, Yama's ptrace_scope allows ancestors alone (py-spy beside the engine is none, even "
    "where perfkit started both), or a seccomp filter forbids it.",
    detection="The users of the target, perfkit's capabilities, ptrace_scope and a trial on a child of its "
    "own; where ptrace_scope is 1, one dump.",
    remedy="The message names the change: the same user, root, --cap-add SYS_PTRACE, or ptrace_scope 0. A "
    "server may allow it itself (prctl PR_SET_PTRACER; the bundled engine: --allow-profilers). Without any "
    "right perfkit stages reads the engine's own request events.",
    source="ptrace(2); kernel.org, Yama; py-spy #8, #12, #459; sglang-omni #1888.",
    check=_stands_against(Obstacles.RIGHTS, "the target may be traced"),
)

TARGET_STOPPED = Guard(
    code="PK252",
    name="target-stopped",
    layer="layer2",
    effect=Effect.VOID,
    sees="py-spy fails with `Failed to suspend process`, or half of its reads fail.",
    cause="The target, or a process of its tree that requests pass through (the HTTP front), stands still: "
    "somebody sent it SIGSTOP, pressed Ctrl-Z, or a profiler that was killed left it so. Behind a stopped "
    "front the engine waits for work, and that looks like a lock.",
    detection="Its state in /proc/PID/stat, or that of a process of the server, is T before anything is "
    "sent or recorded.",
    remedy="kill -CONT PID, and record under load. A process that stays stopped on purpose: record another "
    "by --pid alone.",
    source="Measured with py-spy 0.4.3; py-spy #390, #416, #587.",
    check=_stands_against(Obstacles.STOPPED, "the target and the processes of its tree run"),
)

TARGET_GONE = Guard(
    code="PK253",
    name="target-not-running",
    layer="layer2",
    effect=Effect.VOID,
    sees="A process id that exists, and py-spy finds no executable of it.",
    cause="The process has ended: a zombie keeps its id until its parent takes notice.",
    detection="Its state in /proc/PID/stat is Z or X, or it is gone when it is looked at again.",
    remedy="Name one that runs; perfkit layer2 --server URL finds it.",
    source="proc_pid_stat(5); measured with py-spy 0.4.3.",
    check=_stands_against(Obstacles.ENDED, "the target is there"),
)

TARGET_TRACED = Guard(
    code="PK254",
    name="target-traced",
    layer="layer2",
    effect=Effect.VOID,
    sees="Every read of py-spy fails.",
    cause="Another process traces the target, and the kernel lets only one do so: a debugger, strace, or "
    "another profiler in the middle of its look.",
    detection="TracerPid in /proc/PID/status is not 0 before the recording.",
    remedy="End that process first.",
    source="ptrace(2).",
    check=_stands_against(Obstacles.TRACED, "nobody traces the target"),
)

INTERPRETER = Guard(
    code="PK255",
    name="interpreter-not-readable",
    layer="layer2",
    effect=Effect.VOID,
    sees="py-spy finds no Python version, an unsupported one, or no thread.",
    cause="The target runs no CPython, a newer one than py-spy knows, a free-threaded build, a program with "
    "the interpreter frozen in, or one for another architecture.",
    detection="The program and the libraries that it has mapped, the head of its ELF file, py-spy's version; "
    "then one dump.",
    remedy="As the message says: another process, a newer py-spy, or the usual build of Python.",
    source="py-spy's release notes; py-spy #620, #633, #661, #711, #823.",
    check=_stands_against(Obstacles.INTERPRETER, "py-spy can read the target"),
)

OTHER_NAMESPACE = Guard(
    code="PK256",
    name="other-pid-namespace",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="Captures with --idle and without hold the same samples; ids of threads are small numbers.",
    cause="The target lives in a container, perfkit outside it: py-spy looks for the state of its threads "
    "under ids that mean others here, and takes all for running.",
    detection="NSpid in /proc/PID/status has more than one id.",
    remedy="Run perfkit inside the container, or enter its PID namespace with nsenter.",
    source="Measured with py-spy 0.4.2 and 0.4.3: 792 of 792 samples of sleeping threads; py-spy #49, #168.",
    check=_other_namespace,
)

LIKELIER_PROCESS = Guard(
    code="PK257",
    name="likelier-process",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="Stacks of an HTTP server that waits for connections.",
    cause="The process that was named is not the one that schedules and runs forward: servers put those into "
    "a child.",
    detection="Another process of its tree ranks higher: an engine's loop in its dump, no HTTP server in it, "
    "a GPU's device file held open, libraries of machine learning mapped.",
    remedy="Leave out --pid, or name the process that the message names.",
    source="sglang-omni, profiling methodology; py-spy #491, #298.",
    check=_likelier,
)

THROWN_AWAY = Guard(
    code="PK258",
    name="captures-thrown-away",
    layer="layer2",
    effect=Effect.VOID,
    sees="Fewer captures than were asked for, or ones at a lower rate.",
    cause="py-spy could not keep up: it took looks late and back to back, which ties them to the moments at "
    "which the target wakes. Or it failed, or was cut before its end.",
    detection="A word of lag in its log, or a run that takes longer than its looks can: such a capture is "
    f"asked again at the highest rate of {', '.join(map(str, RATES_HZ))} Hz that is at most half of "
    "its own. Or no file, an error that ended py-spy, an end before its time: such a one is not asked again.",
    remedy="Ask for a lower --rate and for longer captures; free CPU on the machine. Void where no capture "
    "is left.",
    source="py-spy #33, #547, #746, #807; measured: 200 threads at 20 Hz, 5 s took 22.9 s.",
    check=_thrown_away,
)

COSTLY_LOOK = Guard(
    code="PK259",
    name="costly-look",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A service that is slower while it is sampled.",
    cause="Every look stops all threads of the target until their stacks are read, and costs more the more "
    "threads of the system there are.",
    detection=f"Rate times the median pause of a look is above {limit(PAUSED_SHARE)} of the time.",
    remedy="Leave out --rate: perfkit chooses one that costs less. Or ask for less: --rate 2 --seconds 100.",
    source="py-spy #872: 159 threads, 8 to 9 ms a look, a third slower at 20 Hz.",
    check=_costly,
)

LEFT_STOPPED = Guard(
    code="PK260",
    name="left-stopped",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="A service that answers nothing after it was profiled.",
    cause="The target was stopped during a capture, by somebody, or by a profiler that was killed at the "
    "wrong moment; from then on all looks saw one moment.",
    detection="Its state in /proc/PID/stat is T behind a capture.",
    remedy="kill -CONT PID, and record again.",
    source="py-spy #390, #416, #587; marin #6019.",
    check=_left_stopped,
)

TARGET_DIED = Guard(
    code="PK261",
    name="target-died",
    layer="layer2",
    effect=Effect.VOID,
    sees="A recording that ends early, with exit code 0.",
    cause="The target ended while it was recorded: it crashed, was restarted, or somebody stopped the "
    "service.",
    detection="py-spy's word that the process exited, or the process is gone or another one behind a "
    "capture.",
    remedy="See why it ended, and record again. Captures that were whole by then still count, as a hint.",
    source="Measured with py-spy 0.4.3.",
    check=_died,
)

CUT_SHORT = Guard(
    code="PK262",
    name="captures-cut-short",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="Fewer captures than were asked for.",
    cause="The recording was interrupted.",
    detection="perfkit was told to end before its last capture.",
    remedy="Record again, or for a shorter time: --seconds, --repeats.",
    source="perfkit: captures are interleaved, so that those that stand are of both modes.",
    check=_cut_short,
)

OTHER_PROFILER = Guard(
    code="PK263",
    name="other-profiler-there",
    layer="layer2",
    effect=Effect.DIRECTIONAL,
    sees="Failed reads, or none at all, and a target that is slower than usual.",
    cause="A second profiler, a debugger or an engine's watchdog is on the same process. Two take each "
    "other's looks, and the target stands still for both.",
    detection="During a capture a known profiler named the target in its command line, or TracerPid in "
    "/proc/PID/status was another process than perfkit's py-spy.",
    remedy="One profiler at a time: end the process that the message names, and record again.",
    source="Two py-spy on one process at 100 Hz: 26 to 39 % of looks fail, exit code 0 (measured); SGLang's "
    "watchdog calls py-spy (sglang #7553).",
    check=_other_profiler,
)

LIVE_STACK_GUARDS = (
    NO_PROFILER,
    NO_RIGHT,
    TARGET_STOPPED,
    TARGET_GONE,
    TARGET_TRACED,
    INTERPRETER,
    OTHER_NAMESPACE,
    LIKELIER_PROCESS,
    THROWN_AWAY,
    COSTLY_LOOK,
    LEFT_STOPPED,
    TARGET_DIED,
    CUT_SHORT,
    OTHER_PROFILER,
)
