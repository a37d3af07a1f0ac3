"""Which leaves wait, and for what: a table of frames that are known to do nothing but wait.

Python's own frames first, since they say whom a lock serves: a `Condition.wait` under `Queue.get` waits for a
queue. Of a run of waiting frames above the leaf the outermost gives the label, save that a spin loop whose
turn blocks in a call does wait in that call. Native frames under the leaf
decide where the Python line is the program's own (`time.sleep` is C, and py-spy shows its caller's line): a
capture without --native leaves such lines unlabelled. A spin waits, too, though the system calls it running.
"""

from __future__ import annotations

from collections.abc import Sequence

from layers.collectors.stacks.frames import in_file, short
from layers.layer2_stacks.model import WaitKind
from parsers.stack_model import Frame

EMULATED = "sample_engine/emulated/host/"
SHM_BROADCAST = "vllm/distributed/device_communicators/shm_broadcast.py"

PYTHON_WAITS: dict[tuple[str, str], WaitKind] = {
    ("wait", "threading.py"): WaitKind.CONDITION,
    ("acquire", "threading.py"): WaitKind.LOCK,
    ("__enter__", "threading.py"): WaitKind.LOCK,
    ("join", "threading.py"): WaitKind.LOCK,
    ("_wait_for_tstate_lock", "threading.py"): WaitKind.LOCK,
    ("result", "concurrent/futures/_base.py"): WaitKind.LOCK,
    ("get", "queue.py"): WaitKind.QUEUE,
    ("put", "queue.py"): WaitKind.QUEUE,
    ("_worker", "concurrent/futures/thread.py"): WaitKind.QUEUE,
    ("get", "multiprocessing/queues.py"): WaitKind.QUEUE,
    ("_recv", "multiprocessing/connection.py"): WaitKind.QUEUE,
    ("wait", "multiprocessing/connection.py"): WaitKind.SELECT,
    ("_poll", "multiprocessing/connection.py"): WaitKind.SELECT,
    ("select", "selectors.py"): WaitKind.SELECT,
    ("accept", "socket.py"): WaitKind.SELECT,
    ("readinto", "socket.py"): WaitKind.SELECT,
    ("poll", "zmq/sugar/poll.py"): WaitKind.SELECT,
    ("main", "multiprocessing/resource_tracker.py"): WaitKind.SELECT,
    ("poll", "multiprocessing/popen_fork.py"): WaitKind.PROCESS,
    ("wait", "multiprocessing/popen_fork.py"): WaitKind.PROCESS,
    ("join", "multiprocessing/process.py"): WaitKind.PROCESS,
    ("_wait", "subprocess.py"): WaitKind.PROCESS,
    ("_try_wait", "subprocess.py"): WaitKind.PROCESS,
    ("synchronize", "torch/cuda/__init__.py"): WaitKind.DEVICE,
    ("synchronize", "torch/cuda/streams.py"): WaitKind.DEVICE,
    ("synchronize", EMULATED + "event.py"): WaitKind.DEVICE,
    ("synchronize", EMULATED + "stream.py"): WaitKind.DEVICE,
    ("wait_for", EMULATED + "stream.py"): WaitKind.DEVICE,
    ("wait_for", EMULATED + "waiting.py"): WaitKind.DEVICE,
    ("_nap", EMULATED + "waiting.py"): WaitKind.DEVICE,
    ("synchronize", "sample_engine/cuda.py"): WaitKind.DEVICE,
    ("sched_yield", "vllm/distributed/utils.py"): WaitKind.SPIN,
    ("wait", SHM_BROADCAST): WaitKind.SPIN,
    ("acquire_read", SHM_BROADCAST): WaitKind.SPIN,
    ("acquire_write", SHM_BROADCAST): WaitKind.SPIN,
    ("timeout_ms", SHM_BROADCAST): WaitKind.SPIN,
    ("memory_fence", SHM_BROADCAST): WaitKind.SPIN,
}
"""(function, file). CPython 3.8 to 3.13's Lib/, pyzmq, torch, the bundled engine's devices, and the reader's
spin loop of vLLM (vllm #51950, #50835, #44185)."""

NATIVE_WAITS: dict[WaitKind, frozenset[str]] = {
    WaitKind.DEVICE: frozenset(
        {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cuStreamSynchronize"}
        | {"cuCtxSynchronize", "cuEventSynchronize", "hipStreamSynchronize", "hipDeviceSynchronize"}
        | {"hipEventSynchronize"}
    ),
    WaitKind.INTERPRETER: frozenset({"take_gil", "PyEval_RestoreThread", "PyEval_AcquireThread"}),
    WaitKind.SLEEP: frozenset({"pysleep", "time_sleep", "nanosleep", "clock_nanosleep", "usleep"}),
    WaitKind.SELECT: frozenset(
        {"epoll_wait", "epoll_pwait", "poll", "__poll", "ppoll", "select", "__select", "pselect", "zmq_poll"}
    ),
    WaitKind.LOCK: frozenset(
        {"lock_PyThread_acquire_lock", "PyThread_acquire_lock_timed", "pthread_cond_wait"}
        | {"pthread_cond_timedwait", "sem_wait", "sem_timedwait", "sem_clockwait", "pthread_mutex_lock"}
    ),
    WaitKind.SPIN: frozenset({"sched_yield", "__sched_yield"}),
}
"""Symbols of CPython, glibc, libzmq, CUDA and HIP; the first kind that is there wins."""


def python_wait(frame: Frame) -> WaitKind | None:
    """What this frame waits for when it is the leaf."""
    name = short(frame.function)
    kinds = (
        kind for (function, path), kind in PYTHON_WAITS.items() if function == name and in_file(frame, path)
    )
    return next(kinds, None)


def wait_of(python: Sequence[Frame], native: Sequence[Frame]) -> WaitKind | None:
    """What a tick waits for: `python` frames root first, and the `native` ones under the last of them."""
    return _waiting_run(python)[0] or _native_wait(native)


def waiting_frames(python: Sequence[Frame]) -> int:
    """How many of the last Python frames do nothing but wait, of a tick that waits: the leaf alone where its
    native code does."""
    return max(1, _waiting_run(python)[1])


def _waiting_run(python: Sequence[Frame]) -> tuple[WaitKind | None, int]:
    """What the run of waiting frames that ends in the leaf waits for, and its length."""
    kind, length = None, 0
    for frame in reversed(python):
        outer = python_wait(frame)
        if outer is None or (outer is WaitKind.SPIN and kind is not None):
            break
        kind, length = outer, length + 1
    return kind, length


def _native_wait(native: Sequence[Frame]) -> WaitKind | None:
    names = {frame.function.partition("@")[0] for frame in native}
    return next((kind for kind, symbols in NATIVE_WAITS.items() if names & symbols), None)
