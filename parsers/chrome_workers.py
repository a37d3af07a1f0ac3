"""Read a large trace with several processes: this one reads, unpacks and cuts; all of them decode.

Text is read straight into slots of shared memory, a piece each, and the slot's number goes to a worker that
has room; where none has, this process decodes the piece itself. Workers keep their columns and send them
once, at the end. A piece that does not hold whole events, or a worker that dies, ends the attempt: the
caller then reads the file in one process.
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

from parsers.children import child_command, child_environment
from parsers.chrome_block import BlockDecoder, NeedsSequential, Reading
from parsers.chrome_layout import last_boundary
from parsers.chrome_parts import join
from parsers.chrome_sequential import PIECE_BYTES, Beginning, Ending, read_sequentially
from parsers.chrome_wire import receive, send
from parsers.errors import PerfkitError
from parsers.text_stream import TextStream

IN_FLIGHT = 2
"""Pieces that a worker may have at once: one in hand, one waiting, so that it never idles between two."""
_COMMAND = struct.Struct("<qqq")
_STOP = -1
_DONE, _NOT_WHOLE = b"D", b"S"


class _Worker:
    """One child process and the number of pieces that it has not finished."""

    def __init__(self, memory_fd: int, reading: Reading) -> None:
        how = msgspec.json.encode(reading).decode()
        command = child_command("parsers.chrome_workers:work", str(memory_fd), how)
        pipe, quiet = subprocess.PIPE, subprocess.DEVNULL  # what ends a worker, the second reading meets
        self._process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=quiet,
            bufsize=0,
            pass_fds=[memory_fd],
            env=child_environment(),
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._in_flight = 0
        self._replies = select.poll()
        self._replies.register(self._from, select.POLLIN)

    def finished_slots(self) -> list[int]:
        """The slots that it is done with since this was last asked."""
        done = []
        while self._in_flight and self._replies.poll(0):
            done.append(self._take_reply())
        return done

    def has_room(self) -> bool:
        return self._in_flight < IN_FLIGHT

    def give(self, start: int, length: int, offset: int) -> None:
        """Have it decode the text at `start` of the shared memory, which stands at `offset` of the file."""
        self._to.write(_COMMAND.pack(start, length, offset))
        self._in_flight += 1

    def finish(self) -> BinaryIO:
        """Wait for the last piece and return the pipe that the columns come through."""
        self._to.write(_COMMAND.pack(_STOP, 0, 0))
        while self._in_flight:
            self._take_reply()
        return open(self._from.fileno(), "rb", buffering=PIECE_BYTES, closefd=False)

    def _take_reply(self) -> int:
        reply = os.read(self._from.fileno(), 9)
        if reply[:1] != _DONE or len(reply) < 9:
            raise NeedsSequential
        self._in_flight -= 1
        return int.from_bytes(reply[1:], "little")

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
    slots = 1 + workers * IN_FLIGHT  # one is always free for this process to read into
    try:
        with contextlib.ExitStack() as stack:
            fd, memory = stack.enter_context(_shared_memory(slots * PIECE_BYTES))
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
    for _ in range(workers):
        team.append(_Worker(memory_fd, reading))
        stack.callback(team[-1].stop)
    return team


def _share_out(
    stream: TextStream,
    beginning: Beginning,
    own: BlockDecoder,
    reading: Reading,
    team: list[_Worker],
    memory: memoryview,
    progress: Callable[[int], None],
) -> Ending:
    """Decode the beginning while the workers start, then hand out all pieces but the last, which is read here
    since the array ends in it.
    """
    rest, offset = _decode_beginning(beginning, own)
    free = list(range(0, len(memory), PIECE_BYTES))
    while True:
        start = free.pop()
        piece = memory[start : start + PIECE_BYTES]
        length = _fill(stream, piece, rest)
        if length < PIECE_BYTES:
            return read_sequentially(stream, Beginning(b"", bytes(piece[:length]), offset), reading, progress)
        end, next_event = _cut(piece)
        for worker in team:
            free += worker.finished_slots()
        rest = piece[next_event:]
        idle = next((worker for worker in team if worker.has_room()), None)
        if idle is not None:
            idle.give(start, end, offset)
        else:
            own.feed(bytes(piece[:end]), offset)
            free.append(start)
        offset += next_event
        progress(offset)


def _decode_beginning(beginning: Beginning, own: BlockDecoder) -> tuple[memoryview, int]:
    """The text that is left once its whole events are decoded, and its offset."""
    text = memoryview(beginning.rest)
    end, next_event = _cut(text)
    own.feed(bytes(text[:end]), beginning.offset)
    return text[next_event:], beginning.offset + next_event


def _cut(text: memoryview) -> tuple[int, int]:
    """The last place to cut a piece, where what is left fits into a slot beside more text."""
    cut = last_boundary(text)
    if cut is None or len(text) - cut[1] > PIECE_BYTES // 2:
        raise NeedsSequential
    return cut


def _fill(stream: TextStream, piece: memoryview, rest: memoryview) -> int:
    """Fill a piece with the rest of the one before it and with text: its length, short at the end only."""
    length = len(rest)
    piece[:length] = rest
    while length < len(piece) and (read := stream.read_into(piece[length:])):
        length += read
    return length


@contextlib.contextmanager
def _shared_memory(size: int) -> Iterator[tuple[int, memoryview]]:
    """Memory that children can map, gone with its last user: (file descriptor, view)."""
    with contextlib.ExitStack() as stack:
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("perfkit-pieces")
            stack.callback(os.close, fd)
        else:
            fd = stack.enter_context(tempfile.TemporaryFile()).fileno()
        os.ftruncate(fd, size)
        yield fd, memoryview(mmap.mmap(fd, size))


def work() -> int:
    """The worker process: decode pieces as they are named on stdin, then send the columns to stdout."""
    fd, reading = int(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=Reading)
    decoder = BlockDecoder(reading)
    out = sys.stdout.buffer
    with mmap.mmap(fd, os.fstat(fd).st_size) as memory:
        while len(command := sys.stdin.buffer.read(_COMMAND.size)) == _COMMAND.size:
            start, length, offset = _COMMAND.unpack(command)
            if start == _STOP:
                send(decoder.parts, out)
                return 0
            try:
                decoder.feed(memory[start : start + length], offset)
            except NeedsSequential:
                out.write(_NOT_WHOLE)
                out.flush()
                return 0
            out.write(_DONE + start.to_bytes(8, "little"))
            out.flush()
    return PerfkitError.exit_code
