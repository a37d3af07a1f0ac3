"""The lines of a log that any program may have written: UTF-8 or UTF-16, LF, CRLF or CR, plain or gzip.

Windows PowerShell writes UTF-16 with a byte order mark; shells and editors end the last line or leave it
open. Memory is bounded: a line beyond a limit (MAX_LINE_CHARACTERS) is skipped and counted, never held. So
is a line with zero bytes, which a crash or a full disk leaves in the middle of a log.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator

from parsers.errors import UnreadableInput
from parsers.loss_tally import LossTally
from parsers.text_stream import READ_BYTES, open_text

MAX_LINE_CHARACTERS = 1 << 16
"""Longest real line: a query of all 241 nvidia-smi fields with its header, 6,000 characters."""

UTF16_LOOKED_AT_BYTES = 64
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class TextLines:
    """The lines of one file, once, without their ends; `close` when done.

    `number` is that of the line just given (from 1); `ended` says whether that line had its line end. Raises
    UnreadableInput where the file cannot be opened, is empty or is no text. `max_characters`: longer lines
    are lost.
    """

    def __init__(self, path: str, tally: LossTally, max_characters: int = MAX_LINE_CHARACTERS) -> None:
        self.path, self.number, self.ended = path, 0, True
        self._tally, self._max_characters = tally, max_characters
        self._stream = open_text(path, wanted="text", utf16=True)
        self.close = self._stream.close

    def __iter__(self) -> Iterator[str]:
        for text, ended in self._pieces():
            self.number, self.ended = self.number + 1, ended
            if len(text) > self._max_characters:
                self._tally.lose("longer than any line that a sampler writes", self.number, len(text))
            elif "\0" in text:
                self._tally.lose("zero bytes in the line, as a crash leaves them", self.number, len(text))
            else:
                yield text

    def finish(self) -> tuple[str, int]:
        """(sha256, size in bytes) of the file, read to its end; what was lost in unpacking joins the
        tally."""
        for loss in self._stream.losses:
            self._tally.add(loss)
        return self._stream.finish()

    def _pieces(self) -> Iterator[tuple[str, bool]]:
        """Each line and whether it was ended. Of one that is too long only a beginning is kept."""
        rest = ""
        for text in self._decoded():
            *whole, last = text.split("\n")
            if whole:
                yield rest + whole[0], True
                yield from ((line, True) for line in whole[1:])
                rest = ""
            rest = (rest + last)[: self._max_characters + 1]
        if rest:
            yield rest, False

    def _decoded(self) -> Iterator[str]:
        data = self._stream.read(READ_BYTES)
        utf16 = data.startswith(UTF16_MARKS)
        of_text = codecs.getincrementaldecoder("utf-16" if utf16 else "utf-8-sig")("replace")
        decoder = io.IncrementalNewlineDecoder(of_text, translate=True)
        if not utf16:
            _refuse_binary(self.path, data)
        while data:
            yield decoder.decode(data)
            data = self._stream.read(READ_BYTES)
        yield decoder.decode(b"", final=True)


def _refuse_binary(path: str, head: bytes) -> None:
    """UnreadableInput where the first line holds a zero byte: no log of text begins so."""
    first = head.partition(b"\n")[0]
    for start, order in ((1, "LE"), (0, "BE")):
        every_second = head[start:UTF16_LOOKED_AT_BYTES:2]
        between = "".join(head[1 - start : UTF16_LOOKED_AT_BYTES : 2].decode("latin-1").split())
        if len(every_second) > 1 and not any(every_second) and between.isprintable():
            advice = f"convert with: iconv -f UTF-16{order} -t UTF-8"
            raise UnreadableInput(f"{path}: UTF-16 text without a byte order mark ({advice})")
    if b"\0" in first:
        place = f"a zero byte at byte {first.index(0):,}, in line 1"
        raise UnreadableInput(f"{path}: binary data, not a text log ({place}): give the sampler's own output")
