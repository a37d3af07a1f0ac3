"""The ring of commands: nothing lost, doubled or reordered, whatever the pace of the two ends."""

from __future__ import annotations

import os
import select
import struct
from collections import deque
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_engine.emulated.shared import ring
from sample_engine.emulated.shared.block import SharedBlock, Sizes, Word, attach_block, create_block
from sample_engine.emulated.shared.commands import (
    CONTROL_STRUCTS,
    MAX_ARGUMENTS,
    Kind,
    code_of,
    launch_struct,
    split_code,
)
from sample_engine.emulated.shared.ring import RingReader, RingWriter
from sample_engine.kernel import Kernel
from sample_engine.signature import buffer_specs

SLOTS = 4


@pytest.fixture
def block() -> Iterator[SharedBlock]:
    made = create_block(Sizes(1, 4096, 1))
    yield made
    made.close_files()


def words_of(command: bytes) -> tuple[int, ...]:
    found: tuple[int, ...] = struct.unpack(f"={len(command) // 8}Q", command)
    return found


@given(paces=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30))
def test_the_reader_gets_what_the_writer_put(paces: list[tuple[int, int]]) -> None:
    block = create_block(Sizes(1, 4096, 1))
    expected: deque[int] = deque()
    reader = RingReader(block, 1)

    def read_one() -> None:
        assert reader.is_ready() == bool(expected)
        if expected:
            value = expected.popleft()
            assert reader.correlation == value
            assert words_of(reader.command()) == (code_of(Kind.WAIT, 2), value, 7)
            reader.complete()

    def wait_for(number: int) -> int:
        while block.words[Word.COMPLETED + 1] < number:
            read_one()
        return block.words[Word.COMPLETED + 1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ring, "RING_SLOTS", SLOTS)
        writer = RingWriter(block, 1, wait_for)
        for puts, reads in paces:
            for _ in range(puts):
                value = writer.last + 100
                writer.put(CONTROL_STRUCTS[2], value, code_of(Kind.WAIT, 2), value, 7)
                expected.append(value)
                assert len(expected) <= SLOTS
            for _ in range(reads):
                read_one()
    assert block.words[Word.ISSUED + 1] == writer.last
    block.close_files()


def test_a_value_that_does_not_fit_its_word_is_refused_and_leaves_no_trace(block: SharedBlock) -> None:
    writer, reader = RingWriter(block, 0, lambda number: number), RingReader(block, 0)
    with pytest.raises(struct.error):
        writer.put(CONTROL_STRUCTS[1], 1, code_of(Kind.REPLAY, 1), -1)
    assert not reader.is_ready()
    assert (writer.last, block.words[Word.ISSUED]) == (0, 0)


def test_a_closed_ring_asks_for_every_command_whether_the_device_is_there(block: SharedBlock) -> None:
    def lost(number: int) -> int:
        raise ConnectionError

    writer = RingWriter(block, 0, lost)
    writer.put(CONTROL_STRUCTS[0], 0, code_of(Kind.END_CAPTURE, 0))
    writer.close()
    for _ in range(2):
        with pytest.raises(ConnectionError):
            writer.put(CONTROL_STRUCTS[0], 0, code_of(Kind.END_CAPTURE, 0))


@given(st.sampled_from(Kind), st.integers(0, MAX_ARGUMENTS), st.integers(0, 1023))
def test_a_code_says_what_was_put_into_it(kind: Kind, arguments: int, kernel_id: int) -> None:
    assert split_code(code_of(kind, arguments, kernel_id)) == (kind, arguments, kernel_id)


def test_a_kernel_with_more_arguments_than_a_record_holds_is_refused() -> None:
    specs = buffer_specs("n " * MAX_ARGUMENTS)
    launch_struct(Kernel("m:f", print, specs, ()))
    with pytest.raises(ValueError, match="more than 29"):
        launch_struct(Kernel("m:f", print, specs, (int,)))


def test_a_block_is_found_again_by_its_descriptor_and_nothing_else_is_taken_for_one(
    block: SharedBlock,
) -> None:
    other = attach_block(block.fd, block.bell)
    block.pinned[5] = 99
    assert (other.sizes, other.pinned[5]) == (block.sizes, 99)
    stranger = os.memfd_create("stranger")
    os.write(stranger, bytes(4096))
    with pytest.raises(ValueError, match="no block"):
        attach_block(stranger, block.bell)
    os.close(stranger)


def test_the_bell_rings_only_for_a_device_that_dozes(block: SharedBlock) -> None:
    writer, rung = RingWriter(block, 0, lambda number: number), []
    for dozing in (0, 1):
        block.words[Word.DOZING] = dozing
        writer.put(CONTROL_STRUCTS[0], 0, code_of(Kind.END_CAPTURE, 0))
        rung.append(bool(select.select([block.bell.fd], [], [], 0)[0]))
    assert rung == [False, True]
