"""The sampler: a process of its own that reads one source into one recording until it is told to stop.

    python …/bootstrap.py layers.collectors.gpu.sampler:main SOURCE RECORDING PERIOD_NS [TARGET…]

A target that is PRIVATE stands for a line of stdin: what no list of processes may show, such as headers.

It says `ready` on stdout once its source is open, or why it cannot be read, and its last words there if it
fails. It stops when its stdin closes, so that it never outlives who started it, and leaves by os._exit, since
a call that hangs in the driver would keep a normal exit waiting for ever.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from layers.collectors.gpu.recorder import Recorder
from layers.collectors.gpu.source import Source, SourceUnavailable
from layers.evidence.record_log import RecordLog
from parsers.errors import PerfkitError

SOURCES = {
    "nvml": "layers.collectors.gpu.nvml_source:NvmlSource",
    "nvidia-smi": "layers.collectors.gpu.smi_source:SmiSource",
    "dcgmi": "layers.collectors.gpu.dcgm_source:DcgmSource",
    "emulated": "layers.collectors.gpu.emulated_source:EmulatedSource",
    "gpu-watch": "layers.collectors.gpu.watch_source:WatchSource",
    "host-watch": "layers.collectors.host_source:HostSource",
    "server-metrics": "layers.collectors.server_adapters.metrics_source:ServerMetricsSource",
    "server-cpu": "layers.collectors.server_cpu:ServerCpuSource",
}
"""Every source by name, as module:callable; it takes the targets and returns an open `Source`."""

READY = "ready"
PRIVATE = "line-of-stdin"
EXIT_UNAVAILABLE = 3
EXIT_FAULT = 70


def main() -> int:
    """The child process; never returns."""
    name, path, period, *targets = sys.argv[1:]
    code = EXIT_FAULT
    try:
        code = _sample(name, Path(path), int(period), targets)
    except Exception as error:
        print(_last_words(error), flush=True)
    finally:
        os._exit(code)


def _sample(name: str, path: Path, period_ns: int, targets: Sequence[str]) -> int:
    targets = [_line_of_stdin() if target == PRIVATE else target for target in targets]
    stop = threading.Event()
    threading.Thread(target=_stop_with_stdin, args=(stop,), daemon=True).start()
    try:
        source = _opener(name)(targets)
    except SourceUnavailable as error:
        print(error, flush=True)
        return EXIT_UNAVAILABLE
    return _record(source, name, period_ns, Recorder(RecordLog(path)), stop)


def _opener(name: str) -> Callable[[Sequence[str]], Source]:
    module, _, attribute = SOURCES[name].partition(":")
    opener: Callable[[Sequence[str]], Source] = getattr(import_module(module), attribute)
    return opener


def _record(source: Source, name: str, period_ns: int, recorder: Recorder, stop: threading.Event) -> int:
    """Deliver until told to stop; a fault in any thread ends the sampling and is raised here."""
    faults: list[BaseException] = []

    def fault(args: threading.ExceptHookArgs) -> None:
        faults.append(args.exc_value or args.exc_type())
        stop.set()

    threading.excepthook = fault
    recorder.start(name, period_ns, source.description)
    print(READY, flush=True)
    source.deliver(recorder, period_ns, stop)
    if faults:
        raise faults[0]
    recorder.cost([])
    return 0


def _last_words(error: Exception) -> str:
    """What the user can act on; of a fault of perfkit itself also its place."""
    if isinstance(error, PerfkitError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"


def _line_of_stdin() -> str:
    """Byte by byte: what comes behind it is for whoever reads next."""
    line = bytearray()
    while (byte := os.read(sys.stdin.fileno(), 1)) not in (b"", b"\n"):
        line += byte
    return line.decode()


def _stop_with_stdin(stop: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    stop.set()
