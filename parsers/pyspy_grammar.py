"""py-spy's collapsed stacks: one record of text to one `Stack`, whatever its names hold.

    record  = stack SPACE count               split at the last space
    stack   = *(process ";") [thread ";"] frame *(";" frame)          root first
    process = 'process ' pid ':"' command '"'
    thread  = 'thread (' id ')' [': ' name]
    frame   = name ' (' file ':' line ')'  |  name ' (' file ')'

py-spy escapes nothing, so names may hold `;`, quotes, brackets and line ends. What holds a record together: a
command ends at the first `";` that something of this grammar follows, a frame ends where a segment closes a
bracket, and a bare segment right after a thread's name belongs to that name. A first frame whose function
holds a `;` is therefore read as part of the thread's name: the text alone cannot tell. Other tools' frames
without a file are read as names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from parsers.stack_model import Frame, ProcessName, Stack, ThreadName

COUNT = re.compile(r"(?:(?P<stack>.*) |^ ?)(?P<count>[0-9]{1,18})\Z", re.DOTALL)
"""One column of counts, of what an int64 holds."""
PROCESS = re.compile(r'process ([0-9]{1,10}):"')
THREAD = re.compile(r"thread \(([0-9]{1,20}|0x[0-9A-Fa-f]{1,16})\)(?:: ([^;]*))?(?:;|\Z)")
THREAD_NAME = re.compile(r"thread \(([0-9]{1,20}|0x[0-9A-Fa-f]{1,16})\)(?:: (.*))?", re.DOTALL)
HEADER = re.compile(r'process [0-9]{1,10}:"|thread \((?:[0-9]{1,20}|0x[0-9A-Fa-f]{1,16})\)(?:[:;]| )')
LINE = re.compile(r":([0-9]{1,9})\Z")
BRACKET = re.compile(r"[()]")
FRAMES_HELD = 1 << 16
"""Distinct frames, so that one in thousands of stacks is read once; a big engine has some thousand."""


def split_count(record: str) -> tuple[str, int] | None:
    """The stack's text and its count; None where the record does not end in one."""
    found = COUNT.match(record)
    return (found["stack"] or "", int(found["count"])) if found else None


def read_stack(text: str, count: int) -> Stack | None:
    """The stack of a record's text; None where it is unfinished: its end must lie on a later line."""
    processes, start = _processes(text)
    if start < 0:
        return None
    thread, start = _thread(text, start)
    segments = text[start:].split(";") if start < len(text) else []
    if thread is not None:
        named = _bare_before_frames(segments)
        thread = ThreadName(thread.identity, ";".join([thread.name, *segments[:named]]))
        segments = segments[named:]
    pieces = tuple(_frames(segments))
    if pieces and not _ends(pieces[-1]) and (processes or thread or any(map(_ends, pieces))):
        return None
    return Stack(processes, thread, tuple(map(read_frame, pieces)), count)


@lru_cache(maxsize=FRAMES_HELD)
def read_frame(text: str) -> Frame:
    """Name, file and line: the file is what the last bracket encloses, the line its last `:digits`."""
    opens = _opening(text) if text.endswith(")") else -1
    if opens < 0:
        return Frame(text, "", None)
    inside = text[opens + 2 : -1]
    found = LINE.search(inside)
    if found is None:
        return Frame(text[:opens], inside, None)
    return Frame(text[:opens], inside[: found.start()], int(found[1]))


def read_header(text: str) -> ProcessName | ThreadName | None:
    """What a whole segment names, a process or a thread; None where it is neither."""
    if (head := PROCESS.match(text)) and text.endswith('"') and len(text) > head.end():
        return ProcessName(int(head[1]), text[head.end() : -1])
    found = THREAD_NAME.fullmatch(text)
    return ThreadName(found[1], found[2] or "") if found else None


def _processes(text: str) -> tuple[tuple[ProcessName, ...], int]:
    """The processes in front, and where what follows them starts; -1 where a command never ends."""
    found: list[ProcessName] = []
    start = 0
    while head := PROCESS.match(text, start):
        end = _command_end(text, head.end())
        if end < 0:
            return tuple(found), -1
        found.append(ProcessName(int(head[1]), text[head.end() : end]))
        start = end + len('";')
    return tuple(found), start


def _command_end(text: str, start: int) -> int:
    """Where the command's closing quote is: the first one that this grammar can follow; -1 for none."""
    at = text.find('";', start)
    while at >= 0:
        if _may_follow(text, at + len('";')):
            return at
        at = text.find('";', at + 1)
    return len(text) - 1 if text.endswith('"') and len(text) > start else -1


def _may_follow(text: str, start: int) -> bool:
    if HEADER.match(text, start):
        return True
    end = text.find(";", start)
    return _ends(text[start : end if end >= 0 else len(text)])


def _thread(text: str, start: int) -> tuple[ThreadName | None, int]:
    found = THREAD.match(text, start)
    if found is None:
        return None, start
    return ThreadName(found[1], found[2] or ""), found.end()


def _bare_before_frames(segments: Sequence[str]) -> int:
    """How many segments still belong to a thread's name: bare ones, where a frame follows them."""
    bare = next((i for i, segment in enumerate(segments) if " (" in segment), len(segments))
    return bare if bare < len(segments) else 0


def _frames(segments: Sequence[str]) -> Iterator[str]:
    """Segments joined to frames: a name with `;` in it goes on until a bracket closes it."""
    held: list[str] = []
    opened = False
    for segment in segments:
        held.append(segment)
        opened = opened or " (" in segment
        if opened and segment.endswith(")"):
            yield ";".join(held)
            held, opened = [], False
    yield from held


def _ends(frame: str) -> bool:
    """Whether the text is a whole frame with a file."""
    return frame.endswith(")") and " (" in frame


def _opening(text: str) -> int:
    """Where the ` (` is that the last `)` closes; the last ` (` where brackets do not pair."""
    last = text.rfind(" (")
    if not BRACKET.search(text, last + len(" ("), len(text) - 1):
        return last
    depth = 0
    for at in range(len(text) - 1, 0, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return at - 1 if text[at - 1] == " " else text.rfind(" (")
    return text.rfind(" (")
