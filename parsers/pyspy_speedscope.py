"""`py-spy record --format speedscope`: one profile a thread, its samples in the order of time.

The better file of the two: names are JSON strings, so nothing in them can be mistaken, threads stay apart
without --threads, and the order shows how far samples depend on each other. Threads are not aligned: every
profile starts at 0 and samples that py-spy dropped as idle leave no gap. Only what weighs all samples alike
is read, since a share here counts samples: other tools' profiles of events, of bytes or of uneven weights are
named as lost. A cut or damaged JSON text is refused whole. With --threads and --subprocesses py-spy puts
the names of thread and processes in front of the frames as well, as in raw text: they are read as such.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from parsers.errors import UnreadableInput
from parsers.loss import Loss
from parsers.not_json import NOT_JSON
from parsers.pyspy_grammar import read_header
from parsers.stack_model import Frame, ProcessName, RecordedStacks, Stack, ThreadName
from parsers.text_stream import READ_BYTES, TextStream, open_text

FORMAT = "py-spy speedscope"
MAX_TEXT_BYTES = 1 << 30
"""Real files reach 1 GB (speedscope #340); the decoded samples take several times that in memory."""
PROCESS = r"Process (?P<pid>\d{1,10})"
THREAD = r'Thread (?P<id>\d{1,20}|0x[0-9A-Fa-f]{1,16})(?: "(?P<name>.*)")?'
NAME = re.compile(rf"(?:{PROCESS})?(?:(?:^|(?<=\d) ){THREAD})?", re.DOTALL)
"""What py-spy writes, and a process alone: so perfkit names stacks whose threads are not known."""
UNITS = {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
"""py-spy writes seconds since 0.3.8, and `none` with a weight of 1 before."""
NO_UNIT = "none"


class _Frame(msgspec.Struct):
    name: str
    file: str | None = None
    line: int | None = None


class _Shared(msgspec.Struct):
    frames: list[_Frame]


class _Profile(msgspec.Struct):
    type: str
    name: str = ""
    unit: str = NO_UNIT
    samples: list[list[int]] = []
    weights: list[float] = []


class _Document(msgspec.Struct):
    profiles: list[_Profile]
    shared: _Shared
    exporter: str = ""


def read_speedscope(path: str) -> RecordedStacks:
    """All stacks of the file, with `series`. Raises UnreadableInput where it holds no sampled profile."""
    stream = open_text(path)
    try:
        document = _decode(path, _all_text(path, stream))
        sha256, size_bytes = stream.finish()
    finally:
        stream.close()
    reading = _Reading(document.shared.frames, list(stream.losses))
    kept = [profile for profile in document.profiles if reading.add(profile)]
    if document.profiles and not kept:
        raise UnreadableInput(f"{path}: no profile in it is one of samples: {reading.losses[0].what}")
    intervals = {interval for profile in kept if (interval := _interval_s(profile)) is not None}
    return RecordedStacks(
        path,
        sha256,
        size_bytes,
        FORMAT,
        document.exporter,
        tuple(reading.stacks()),
        tuple(reading.series),
        intervals.pop() if len(intervals) == 1 else None,
        tuple(reading.losses),
    )


def _all_text(path: str, stream: TextStream) -> bytes:
    pieces, size = [], 0
    while piece := stream.read(READ_BYTES):
        pieces.append(piece)
        size += len(piece)
        if size > MAX_TEXT_BYTES:
            raise UnreadableInput(f"{path}: over {MAX_TEXT_BYTES:,} bytes of text: record for a shorter time")
    return b"".join(pieces)


def _decode(path: str, text: bytes) -> _Document:
    try:
        return msgspec.json.decode(text, type=_Document)
    except NOT_JSON as error:
        raise UnreadableInput(f"{path}: no speedscope file, or a damaged one: {error}") from error


def _interval_s(profile: _Profile) -> float | None:
    """The time between two samples, None where the file does not tell it."""
    scale = UNITS.get(profile.unit)
    return profile.weights[0] * scale if scale is not None and profile.weights else None


class _Reading:
    """Profiles turned into counted stacks, one distinct stack of a thread once."""

    def __init__(self, frames: Sequence[_Frame], losses: list[Loss]) -> None:
        self._frames = [Frame(f.name, f.file or "", f.line or None) for f in frames]
        headers = (
            (at, read_header(frame.function)) for at, frame in enumerate(self._frames) if not frame.file
        )
        self._headers = {at: header for at, header in headers if header is not None}
        self._index: dict[tuple[tuple[ProcessName, ...], ThreadName | None, tuple[int, ...]], int] = {}
        self._counts: list[int] = []
        self.series: list[tuple[int, ...]] = []
        self.losses = losses

    def add(self, profile: _Profile) -> bool:
        """Whether the profile could be read; what is lost of it is written down."""
        if why := _unfit(profile):
            self._lose(f"profile {profile.name!r}: {why}", len(profile.samples))
            return False
        processes, thread = _named(profile.name)
        sound = [tuple(sample) for sample in profile.samples if self._known(sample)]
        if lost := len(profile.samples) - len(sound):
            self._lose(f"profile {profile.name!r}: {lost} samples name a frame that is not there", lost)
        self.series.append(tuple(self._count(*self._headed(processes, thread, sample)) for sample in sound))
        return True

    def stacks(self) -> list[Stack]:
        """The distinct stacks in the order in which they were first seen."""
        return [
            Stack(processes, thread, tuple(self._frames[i] for i in sample), count)
            for (processes, thread, sample), count in zip(self._index, self._counts, strict=True)
        ]

    def _headed(
        self, processes: tuple[ProcessName, ...], thread: ThreadName | None, sample: tuple[int, ...]
    ) -> tuple[tuple[ProcessName, ...], ThreadName | None, tuple[int, ...]]:
        """What stands in front of a sample's frames, which says more than the profile's name; the rest."""
        start = next((n for n, at in enumerate(sample) if at not in self._headers), len(sample))
        front = [self._headers[at] for at in sample[:start]]
        named = tuple(header for header in front if isinstance(header, ProcessName))
        threads = [header for header in front if isinstance(header, ThreadName)]
        return named or processes, threads[-1] if threads else thread, sample[start:]

    def _known(self, sample: list[int]) -> bool:
        return not sample or (min(sample) >= 0 and max(sample) < len(self._frames))

    def _count(
        self, processes: tuple[ProcessName, ...], thread: ThreadName | None, sample: tuple[int, ...]
    ) -> int:
        index = self._index.setdefault((processes, thread, sample), len(self._counts))
        if index == len(self._counts):
            self._counts.append(0)
        self._counts[index] += 1
        return index

    def _lose(self, what: str, samples: int) -> None:
        self.losses.append(Loss(what, -1, 0, samples, False))


def _unfit(profile: _Profile) -> str:
    """Why a profile's samples cannot be counted; empty where they can."""
    if profile.type != "sampled":
        return f"a profile of type {profile.type!r}, not of samples"
    if profile.unit not in UNITS and profile.unit != NO_UNIT:
        return f"samples of {profile.unit}, not of time"
    if len(profile.weights) != len(profile.samples):
        return f"{len(profile.samples)} samples with {len(profile.weights)} weights"
    if profile.weights and min(profile.weights) != max(profile.weights):
        return "samples of unequal weight, which py-spy does not write"
    return ""


def _named(name: str) -> tuple[tuple[ProcessName, ...], ThreadName | None]:
    """py-spy's `Process P Thread T "name"`; another tool's name is that of a thread without an id."""
    found = NAME.fullmatch(name)
    if found is None:
        return (), ThreadName("", name)
    processes = (ProcessName(int(found["pid"]), ""),) if found["pid"] else ()
    return processes, ThreadName(found["id"], found["name"] or "") if found["id"] else None
