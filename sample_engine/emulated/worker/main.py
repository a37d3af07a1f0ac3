"""The device process: python -m sample_engine.emulated.worker.main BLOCK_FD BELL_FD

One thread runs the kernels of both streams in turn. A second one, asleep, ends the process when the host
closes its standard input, which also happens when the host dies.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator

import torch

from sample_engine.emulated.shared.bell import Bell
from sample_engine.emulated.shared.block import FAILURE_BYTES, STREAMS, SharedBlock, State, Word, attach_block
from sample_engine.emulated.shared.ordering import WEAK, fence
from sample_engine.emulated.worker.coroutine import Graphs, StreamCoroutine
from sample_engine.emulated.worker.decoder import Decoder
from sample_engine.emulated.worker.ledger import Ledger
from sample_engine.emulated.worker.views import Views
from sample_engine.profilers import allow_profilers

HASTY_LOOKS = 100
"""Some 20 µs of looking for a next command at full speed: several launches. Later looks give way to others,
for the host itself may need this core."""
LOOKS = 1500
"""About 1 ms of looking before the first doze: what a host may take between two steps."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the host decides
    allow_profilers()
    threading.Thread(target=_end_with_host, daemon=True).start()
    block_fd, bell_fd = map(int, sys.argv[1:])
    block = attach_block(block_fd, Bell(bell_fd))
    try:
        torch.set_num_threads(1)
        with torch.inference_mode():
            serve(block, *make_streams(block))
    except BaseException:
        report_failure(block, traceback.format_exc())
        os._exit(1)


def make_streams(block: SharedBlock) -> list[Iterator[bool]]:
    """The streams of a block, with device memory behind them."""
    memory = Views(block, torch.empty(block.sizes.budget_bytes, dtype=torch.uint8))
    pinned = Views(block, torch.frombuffer(block.pinned, dtype=torch.uint8))
    decoder, ledger = Decoder(block, memory, pinned), Ledger(block)
    graphs: Graphs = {}
    return [StreamCoroutine(block, index, decoder, ledger, graphs).run() for index in range(STREAMS)]


def serve(block: SharedBlock, first: Iterator[bool], second: Iterator[bool]) -> None:
    """Run commands for ever."""
    gc.freeze()
    gc.disable()  # the loop makes no cycles, and a collection would show as a slow kernel
    block.words[Word.WORKER_PID] = os.getpid()
    block.words[Word.STATE] = State.READY
    looks = 0
    while True:
        if next(first) | next(second):
            if looks >= LOOKS:
                block.words[Word.DOZING] = 0
            looks = 0
            continue
        looks += 1
        if looks == LOOKS:
            block.words[Word.DOZING] = 1  # and look once more: the host may not have seen it yet
        elif looks > LOOKS:
            block.bell.wait()
        elif looks > HASTY_LOOKS:
            os.sched_yield()


def report_failure(block: SharedBlock, text: str) -> None:
    """Tell the host why the device is lost."""
    data = text.encode()[-FAILURE_BYTES:]
    block.failure[: len(data)] = data
    block.words[Word.FAILURE_BYTES] = len(data)
    if WEAK:
        fence()
    block.words[Word.STATE] = State.FAILED


def _end_with_host() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
