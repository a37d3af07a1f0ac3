"""The device process: python -m sample_engine.emulated.worker.main FD

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

import torch

from sample_engine.emulated.shared.block import FAILURE_BYTES, STREAMS, SharedBlock, State, Word, attach_block
from sample_engine.emulated.shared.ordering import WEAK, fence
from sample_engine.emulated.shared.patience import Patience
from sample_engine.emulated.worker.coroutine import Graphs, StreamCoroutine
from sample_engine.emulated.worker.decoder import Decoder
from sample_engine.emulated.worker.ledger import Ledger
from sample_engine.emulated.worker.views import Views

LOOKS = 4000
"""About 1 ms of looking for a next command before the first nap: what a host may take between two steps."""
LONGEST_NAP_S = 500e-6
"""Of an idle device; what a request that comes then may lose."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the host decides
    threading.Thread(target=_end_with_host, daemon=True).start()
    block = attach_block(int(sys.argv[1]))
    try:
        serve(block)
    except BaseException:
        report_failure(block, traceback.format_exc())
        os._exit(1)


def serve(block: SharedBlock) -> None:
    """Run commands for ever."""
    torch.set_num_threads(1)
    with torch.inference_mode():
        first, second = (iter(stream.run()) for stream in make_streams(block))
        gc.freeze()
        gc.disable()  # the loop makes no cycles, and a collection would show as a slow kernel
        block.words[Word.WORKER_PID] = os.getpid()
        block.words[Word.STATE] = State.READY
        patience = Patience(LOOKS, longest_nap_s=LONGEST_NAP_S, polite=False)
        while True:
            if next(first) | next(second):
                patience.reset()
            else:
                patience.pause()


def make_streams(block: SharedBlock) -> list[StreamCoroutine]:
    """The streams of a block, with device memory behind them."""
    memory = Views(block, torch.empty(block.sizes.budget_bytes, dtype=torch.uint8))
    pinned = Views(block, torch.frombuffer(block.pinned, dtype=torch.uint8))
    decoder, ledger = Decoder(block, memory, pinned), Ledger(block)
    graphs: Graphs = {}
    return [StreamCoroutine(block, index, decoder, ledger, graphs) for index in range(STREAMS)]


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
