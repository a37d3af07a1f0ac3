"""A server that a walk can be led through in seconds: SGLang-like, it answers load and writes a trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.control_servers import models
from tests.load_builders import stream
from tests.load_servers import HANG, Asked, Script, answer, serving
from tests.writers.chrome import TraceBuilder

BUSY = b"sglang:num_running_reqs 4\nsglang:num_queue_reqs 2\n"
KERNELS, KERNEL_NS, LAUNCH_EVERY_NS = 400, 50_000, 10_000


def device_bound(folder: Path) -> None:
    """A trace of kernels that follow each other without a gap, launched long before."""
    trace = TraceBuilder()
    for n in range(KERNELS):
        name, start_ns = "gemm_kernel" if n % 4 else "softmax_kernel", KERNEL_NS * (n + 2)
        trace.launch(name, call_ns=LAUNCH_EVERY_NS * n, start_ns=start_ns, dur_ns=KERNEL_NS)
    folder.mkdir(parents=True, exist_ok=True)
    trace.write(folder / "1-TP-0.trace.json.gz")


@contextmanager
def profiled_server(hang: bool = False) -> Iterator[str]:
    """Its address. With `hang` it answers no load, so that whoever sends it waits."""
    told: list[Path] = []

    def script(asked: Asked) -> Script:
        path = asked.head.split(b" ")[1]
        if path == b"/v1/chat/completions":
            return [HANG] if hang else stream(2, 0.01, 0.01)
        if path == b"/v1/models":
            return [answer(json.dumps(models("sglang")).encode())]
        if path == b"/metrics":
            return [answer(BUSY, "text/plain")]
        if path == b"/start_profile":
            told.append(Path(json.loads(asked.body)["output_dir"]))
            return [answer(b"started")]
        if path == b"/stop_profile":
            device_bound(told[-1])
            return [answer(b"stopped")]
        return [answer(b"", status="404 Not Found")]

    with serving(script) as server:
        yield f"http://127.0.0.1:{server.port}"
