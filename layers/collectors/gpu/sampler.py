"""The sampler: a process of its own that reads one source into one recording until it is told to stop.

    python …/bootstrap.py layers.collectors.gpu.sampler:main SOURCE RECORDING PERIOD_NS [DEVICE,…]

It says `ready` on stdout once its source is open, or why it cannot be read, and stops when its stdin closes,
so that it never outlives who started it. It leaves by os._exit, since a call that hangs in the driver would
keep a normal exit waiting for ever.
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

SOURCES = {
    "nvml": "layers.collectors.gpu.nvml_source:NvmlSource",
    "nvidia-smi": "layers.collectors.gpu.smi_source:SmiSource",
    "dcgmi": "layers.collectors.gpu.dcgm_source:DcgmSource",
}
"""Every source by name, as module:callable; it takes the devices and returns an open `Source`."""

READY = "ready"
EXIT_UNAVAILABLE = 3
EXIT_FAULT = 70


def main() -> int:
    """The child process."""
    name, path, period, *devices = sys.argv[1:]
    stop = threading.Event()
    threading.Thread(target=_stop_with_stdin, args=(stop,), daemon=True).start()
    try:
        source = _opener(name)([int(device) for device in ",".join(devices).split(",") if device])
    except SourceUnavailable as error:
        print(error, flush=True)
        return EXIT_UNAVAILABLE
    recorder = Recorder(RecordLog(Path(path)))
    os._exit(_record(source, name, int(period), recorder, stop))


def _opener(name: str) -> Callable[[Sequence[int]], Source]:
    module, _, attribute = SOURCES[name].partition(":")
    opener: Callable[[Sequence[int]], Source] = getattr(import_module(module), attribute)
    return opener


def _record(source: Source, name: str, period_ns: int, recorder: Recorder, stop: threading.Event) -> int:
    """Deliver until told to stop; a fault in any thread ends the sampling and is said on stderr."""
    faults: list[threading.ExceptHookArgs] = []

    def fault(args: threading.ExceptHookArgs) -> None:
        faults.append(args)
        stop.set()

    threading.excepthook = fault
    recorder.start(name, period_ns, source.description)
    print(READY, flush=True)
    source.deliver(recorder, period_ns, stop)
    if not faults:
        recorder.cost([])
        return 0
    traceback.print_exception(faults[0].exc_type, faults[0].exc_value, faults[0].exc_traceback)
    sys.stderr.flush()
    return EXIT_FAULT


def _stop_with_stdin(stop: threading.Event) -> None:
    sys.stdin.buffer.read()
    stop.set()
