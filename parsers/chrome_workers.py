"""Read a large trace with several processes: this one reads, unpacks and cuts; all of them decode.

Pieces go to the workers through shared memory and a pipe each; whoever is free takes the next one, this
process when no worker is. Workers keep their columns and send them once, at the end. A piece that does not
hold whole events, or a worker that dies, ends the attempt: the caller then reads the file in one process.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import BinaryIO

import msgspec

from parsers.children import child_command
from parsers.chrome_block import BlockDecoder, NeedsSequential, Reading
from parsers.chrome_columns import join, receive, send
from parsers.chrome_layout import last_boundary
from parsers.chrome_sequential import PIECE_BYTES, Beginning, Ending, fill, read_sequentially
from parsers.errors import PerfkitError
from parsers.text_stream import TextStream

SLOT_BYTES = PIECE_BYTES
IN_FLIGHT = 2
"""Pieces that a worker may have at once: one in hand, one waiting, so that it never idles between two."""
_COMMAND = struct.Struct("<qqq")
_STOP = -1
_DONE, _NOT_WHOLE = b"D", b"S"


class _Worker:
    """One child process and the pieces that it has not finished."""

    def __init__(self, memory_fd: int, slots: list[int], reading: Reading) -> None:
        how = msgspec.json.encode(reading).decode()
        command = child_command("parsers.chrome_workers:work", str(memory_fd), how)
        pipe, quiet = subprocess.PIPE, subprocess.DEVNULL  # what ends a worker, the second reading meets
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=quiet, pass_fds=[memory_fd], bufsize=0
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._slots, self._free = slots, list(slots)
        self._replies = select.poll()
        self._replies.register(self._from, select.POLLIN)

    def free_slot(self) -> int | None:
        """A slot that this worker is done with, None while all are in flight."""
        while len(self._free) < len(self._slots) and self._replies.poll(0):
            self._take_reply()
        return self._free.pop() if self._free else None

    def give(self, slot: int, length: int, offset: int) -> None:
        self._to.write(_COMMAND.pack(slot, length, offset))

    def finish(self) -> BinaryIO:
        """Wait for the last piece and return the pipe that the columns come through."""
        self._to.write(_COMMAND.pack(_STOP, 0, 0))
        while len(self._free) < len(self._slots):
            self._take_reply()
        return open(self._from.fileno(), "rb", buffering=PIECE_BYTES, closefd=False)

    def _take_reply(self) -> None:
        reply = os.read(self._from.fileno(), 9)
        if reply[:1] != _DONE or len(reply) < 9:
            raise NeedsSequential
        self._free.append(int.from_bytes(reply[1:], "little"))

    def stop(self) -> None:
        self._process.kill()
        for pipe in (self._to, self._from):
            with contextlib.suppress(OSError):
                pipe.close()
        self._process.wait()


def read_in_parallel(
    stream: TextStream, beginning: Beginning, reading: Reading, workers: int, progress: Callable[[int], None]
) -> Ending:
    """Decode everything from the beginning of the event array on, with `workers` more processes.

    Raises NeedsSequential where the file has to be read in one process.
    """
    own = BlockDecoder(reading)
    try:
        with contextlib.ExitStack() as stack:
            fd, memory = stack.enter_context(_shared_memory(workers * IN_FLIGHT * SLOT_BYTES))
            team = _start(workers, fd, reading, stack)
            ending = _share_out(stream, beginning, own, reading, team, memory, progress)
            for worker in team:
                join(own.parts, receive(worker.finish()))
    except (EOFError, OSError) as error:
        raise NeedsSequential from error
    join(own.parts, ending.parts)
    return replace(ending, parts=own.parts)


def _start(workers: int, memory_fd: int, reading: Reading, stack: contextlib.ExitStack) -> list[_Worker]:
    """The workers, stopped when the stack is left."""
    team = []
    for index in range(workers):
        slots = [(index * IN_FLIGHT + i) * SLOT_BYTES for i in range(IN_FLIGHT)]
        team.append(_Worker(memory_fd, slots, reading))
        stack.callback(team[-1].stop)
    return team


def _share_out(
    stream: TextStream,
    beginning: Beginning,
    own: BlockDecoder,
    reading: Reading,
    team: list[_Worker],
    memory: mmap.mmap,
    progress: Callable[[int], None],
) -> Ending:
    """Hand out all pieces but the last, which is read here since the array ends in it."""
    text, offset = beginning.rest, beginning.offset
    while True:
        grown = fill(stream, text, PIECE_BYTES)
        if len(grown) < PIECE_BYTES:
            return read_sequentially(stream, Beginning(b"", grown, offset), reading, progress)
        cut = last_boundary(grown)
        if cut is None:
            raise NeedsSequential
        end, next_event = cut
        _hand_out(grown, end, offset, own, team, memory)
        text, offset = grown[next_event:], offset + next_event
        progress(offset)


def _hand_out(
    text: bytes, end: int, offset: int, own: BlockDecoder, team: list[_Worker], memory: mmap.mmap
) -> None:
    for worker in team:
        slot = worker.free_slot() if end <= SLOT_BYTES else None
        if slot is not None:
            memory[slot : slot + end] = memoryview(text)[:end]
            worker.give(slot, end, offset)
            return
    own.feed(text[:end], offset)


@contextlib.contextmanager
def _shared_memory(size: int) -> Iterator[tuple[int, mmap.mmap]]:
    """Memory that children can map, gone with its last user: (file descriptor, map)."""
    with contextlib.ExitStack() as stack:
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("perfkit-pieces")
            stack.callback(os.close, fd)
        else:
            fd = stack.enter_context(tempfile.TemporaryFile()).fileno()
        os.ftruncate(fd, size)
        memory = mmap.mmap(fd, size)
        stack.callback(memory.close)
        yield fd, memory


def work() -> int:
    """The worker process: decode pieces as they are named on stdin, then send the columns to stdout."""
    fd, reading = int(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=Reading)
    decoder = BlockDecoder(reading)
    out = sys.stdout.buffer
    with mmap.mmap(fd, os.fstat(fd).st_size) as memory:
        while len(command := sys.stdin.buffer.read(_COMMAND.size)) == _COMMAND.size:
            slot, length, offset = _COMMAND.unpack(command)
            if slot == _STOP:
                send(decoder.parts, out)
                return 0
            try:
                decoder.feed(memory[slot : slot + length], offset)
            except NeedsSequential:
                out.write(_NOT_WHOLE)
                out.flush()
                return 0
            out.write(_DONE + slot.to_bytes(8, "little"))
            out.flush()
    return PerfkitError.exit_code
