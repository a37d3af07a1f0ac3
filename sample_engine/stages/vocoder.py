"""The `vocoder` stage: chunks of codes of many streams to samples, each stream in a slot.

A launch runs chunks of exactly equal length, one a slot, in buckets of 1, 2, 4, 8, 16: codes and slot numbers
are written to fixed places, then the step is replayed or launched kernel by kernel, then the samples go out.
Which slots are live is data that the step reads, so a graph serves them all; items that fill up a bucket
belong to nobody's slot.

Memory bounds the batch. Without graphs a launch allocates what it needs; if that fails, it left no trace, and
is tried in two halves. If a single chunk does not fit, it waits until other chunks have let their memory go:
for those of the same call in `execute_resolve`, else in the hands of the caller, who gets OutOfDeviceMemory,
calls again after the next release, and counts that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sample_engine.config.settings import Settings
from sample_engine.device import Buffer, Device, Event, Pinned, Stream
from sample_engine.dtypes import INT16, INT64
from sample_engine.errors import OutOfDeviceMemory
from sample_engine.models.sizes import AR_SIZES, CODEBOOKS
from sample_engine.models.vocoder import make_vocoder, start_slot
from sample_engine.models.vocoder_probes import vocoder_probes
from sample_engine.models.vocoder_sizes import SAMPLES_A_FRAME, VOCODER_SIZES
from sample_engine.models.weights import Weights
from sample_engine.observe.metrics import Metrics
from sample_engine.primitives import kernels
from sample_engine.primitives.promise import Promise, find_promise
from sample_engine.stages.exact_length import Batch, batches, halves
from sample_engine.stages.graph_choice import LengthCoverage, chosen_lengths, expected_lengths
from sample_engine.stages.graphs import Graphs
from sample_engine.stages.handoff import receive
from sample_engine.stages.payloads import Audio, CodeChunk
from sample_engine.stages.slots import Slots

STAGE = "vocoder"


@dataclass(frozen=True, slots=True)
class ChunkShape:
    """What a graph is captured for."""

    items: int
    frames: int


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch whose samples are on their way."""

    batch: Batch
    samples: Pinned
    arrived: Event


@dataclass(slots=True, eq=False)
class VocoderPending:
    """Chunks (and with them the memory they lie in), what of them was launched, what waits for memory."""

    chunks: Sequence[CodeChunk]
    waiting: list[Batch]
    launched: list[Launched] = field(default_factory=list)
    audio: dict[int, Audio] = field(default_factory=dict)


class VocoderStage:
    """A `SlotStage[None, CodeChunk, VocoderPending, Audio]`. Chunks of a call may be of any slots and lengths
    (those of one slot in order). `exact_length` and `graphs.enabled` may be switched between calls.
    """

    def __init__(self, device: Device, stream: Stream, settings: Settings, metrics: Metrics) -> None:
        self.size = VOCODER_SIZES[settings.size]
        self._device, self._stream, self._metrics = device, stream, metrics
        self._slots = Slots(settings.limits.max_running_requests)
        self._ready: set[int] = set()
        self._buckets = item_buckets(settings.vocoder_max_batch)
        self._vocoder = make_vocoder(Weights(stream, settings.seed, "vocoder."), self.size, self._slots.rows)
        self._ports = Ports(stream, self._buckets[-1], self.size.longest)
        self._behind: VocoderPending | None = None
        self._captured_for: tuple[bool, int] | None = None
        self.graphs = Graphs(device, stream, self._step, self._reset, metrics, STAGE)
        self.configure(settings)
        self.promise = self._found_promise(settings.chunk_frames)

    def configure(self, settings: Settings) -> None:
        """Take over the switches; only while no slot is open."""
        if self._ready:
            raise ValueError("the vocoder can be reconfigured only while nothing runs")
        if not 1 <= settings.chunk_frames <= self.size.longest:
            raise ValueError(f"chunk_frames is 1 to {self.size.longest}, not {settings.chunk_frames}")
        self.exact_length = settings.switches.vocoder_batch == "exact-length"
        self.graphs.enabled = settings.switches.cuda_graph
        wanted = self.exact_length, settings.chunk_frames
        if self.graphs.enabled and not self.graphs.failure and self._captured_for != wanted:
            self._captured_for = wanted
            self._capture_expected(settings)

    @property
    def max_batch(self) -> int:
        return self._buckets[-1] if self.exact_length else 1

    @property
    def free_slots(self) -> int:
        return self._slots.free

    def open(self, opening: None = None) -> int:
        return self._slots.take()

    def advance(self, slot: int) -> bool:
        """There is nothing to prepare but to forget the last tenant."""
        self._stream.launch(start_slot, (self._vocoder.offset,), (slot,))
        self._ready.add(slot)
        return True

    def close(self, slot: int) -> None:
        self._slots.give_back(slot)
        self._ready.discard(slot)

    def execute_launch(self, items: Sequence[CodeChunk]) -> VocoderPending:
        for chunk in items:
            self._check(chunk)
        if self._behind is not None and self._behind.waiting:
            raise OutOfDeviceMemory("chunks of an earlier call still wait for memory: resolve that one first")
        most = self._buckets[-1] if self.exact_length else 1
        pending = VocoderPending(items, batches(items, most))
        self._launch_what_fits(pending)
        self._behind = pending
        return pending

    def execute_resolve(self, pending: VocoderPending) -> list[Audio]:
        """Raises OutOfDeviceMemory when a chunk does not fit though all others of the call are done; what was
        read is kept, so call again after the next release.
        """
        while pending.launched or pending.waiting:
            for one in pending.launched:
                self._read(one, pending)
            pending.launched.clear()
            self._launch_what_fits(pending)
        return [pending.audio[place] for place in range(len(pending.chunks))]

    def give_up(self, pending: VocoderPending) -> None:
        """Forget the chunks of a call that found no memory, so that later calls have their turn. Streams of
        that call are unusable: close their slots.
        """
        pending.waiting.clear()

    def capture(self, counts: Mapping[int, int], share: float, budget_bytes: int) -> None:
        """Capture graphs of the lengths that make up this share of the counted ones, as memory allows, and
        use them instead of those there are. The memory of a length is scaled from a trial: all that a step
        makes grows with its rows.
        """
        self.graphs.close()
        self.graphs.enabled = True
        buckets = self._buckets if self.exact_length else self._buckets[:1]
        trial = ChunkShape(1, max(counts, key=lambda frames: counts[frames]))
        bytes_a_frame = self.graphs.trial(trial) / trial.frames * sum(buckets)
        lengths = chosen_lengths(counts, share, budget_bytes, bytes_a_frame)
        shapes = [ChunkShape(items, frames) for frames in lengths for items in buckets]
        self.graphs.capture(sorted(shapes, key=lambda one: -one.items * one.frames), budget_bytes)

    def coverage(self) -> list[LengthCoverage]:
        """Captured lengths and those that occurred, shortest first, with their steps."""
        seen, captured = self.graphs.coverage, self.graphs.captured
        shapes = {*captured, *seen.replays, *seen.eager}
        return [self._coverage_of(frames) for frames in sorted({one.frames for one in shapes})]

    def _capture_expected(self, settings: Settings) -> None:
        expected = expected_lengths(settings.chunk_frames, AR_SIZES[settings.size].positions)
        others_bytes = int(self._metrics.get("engine_graph_bytes", "ar"))
        self.capture(expected, settings.graph_coverage, settings.graph_budget_bytes - others_bytes)

    def _found_promise(self, chunk_frames: int) -> Promise:
        """For chunks of the usual length, and of one frame, for which BLAS may take other paths."""
        probes = [probe for frames in (1, chunk_frames) for probe in vocoder_probes(self._vocoder, frames)]
        return find_promise(self._device, self._stream, probes, self._buckets)

    def _coverage_of(self, frames: int) -> LengthCoverage:
        shapes = [ChunkShape(items, frames) for items in self._buckets]
        seen = self.graphs.coverage
        return LengthCoverage(
            frames=frames,
            captured=tuple(one.items for one in shapes if one in self.graphs.captured),
            replays=sum(seen.replays[one] for one in shapes),
            eager=sum(seen.eager[one] for one in shapes),
        )

    def _check(self, chunk: CodeChunk) -> None:
        if chunk.slot not in self._ready:
            raise ValueError(f"slot {chunk.slot} is not open")
        if not 1 <= chunk.frames <= self.size.longest:
            raise ValueError(f"a chunk has 1 to {self.size.longest} frames, not {chunk.frames}")

    def _launch_what_fits(self, pending: VocoderPending) -> None:
        """Launch waiting batches until none is left or memory is short; if it is so short that nothing is on
        its way, raise.
        """
        while pending.waiting:
            batch = pending.waiting[0]
            try:
                pending.launched.append(self._launch(batch, [pending.chunks[place] for place in batch]))
            except OutOfDeviceMemory:
                if len(batch) == 1 and not pending.launched:
                    raise
                self._metrics.add("engine_allocation_retries_total", value=STAGE)
                if len(batch) == 1:
                    return
                pending.waiting[:1] = halves(batch)
            else:
                del pending.waiting[0]

    def _launch(self, batch: Batch, chunks: Sequence[CodeChunk]) -> Launched:
        """One launch; whatever can fail for want of memory comes before anything lasting."""
        items, frames = len(chunks), chunks[0].frames
        shape = ChunkShape(next(one for one in self._buckets if one >= items), frames)
        samples = self._device.pinned((items, frames * SAMPLES_A_FRAME), INT16)
        with self._device.annotate(f"vocoder batch={items} frames={frames}"):
            self._bring(chunks, shape)
            self.graphs.run(shape)
            self._stream.copy_out(samples, self._ports.pcm(items, frames))
        self._metrics.add("engine_steps_total", value=STAGE)
        self._metrics.observe("engine_batch_items", items, STAGE)
        self._metrics.add("engine_vocoder_items_total", items, "batched" if items > 1 else "single")
        return Launched(batch, samples, self._stream.record_event())

    def _bring(self, chunks: Sequence[CodeChunk], shape: ChunkShape) -> None:
        """Codes and slots to where the step reads them."""
        slots = self._device.pinned((shape.items,), INT64)
        slots.array[:] = self._vocoder.nobody
        slots.array[: len(chunks)] = [chunk.slot for chunk in chunks]
        self._stream.copy_in(self._ports.slots(shape.items), slots)
        codes = self._ports.codes(shape.items, shape.frames)
        for place, chunk in enumerate(chunks):
            own = codes.narrow(0, place * shape.frames, shape.frames)
            received = receive(self._stream, chunk.codes, own)
            if received is not own:
                self._stream.launch(kernels.copy, (own, received))

    def _step(self, shape: ChunkShape) -> None:
        slots, codes = self._ports.slots(shape.items), self._ports.codes(shape.items, shape.frames)
        self._vocoder.step(self._stream, codes, slots, self._ports.pcm(shape.items, shape.frames))

    def _reset(self) -> None:
        self._vocoder.clear(self._stream)

    def _read(self, launched: Launched, pending: VocoderPending) -> None:
        launched.arrived.synchronize()
        for row, place in enumerate(launched.batch):
            samples = launched.samples.array[row].copy()
            pending.audio[place] = Audio(pending.chunks[place].slot, samples)


class Ports:
    """Where a launch finds codes and slots, and leaves samples. Fixed places, the first part of them for
    smaller launches: graphs hold addresses.
    """

    def __init__(self, stream: Stream, most_items: int, longest: int) -> None:
        self._slots = stream.empty((most_items,), INT64)
        self._codes = stream.empty((most_items * longest, CODEBOOKS), INT64)
        self._pcm = stream.empty((most_items * longest * SAMPLES_A_FRAME,), INT16)
        for buffer in (self._slots, self._codes, self._pcm):
            stream.launch(kernels.fill, (buffer,), (0.0,))

    def slots(self, items: int) -> Buffer:
        return self._slots.narrow(0, 0, items)

    def codes(self, items: int, frames: int) -> Buffer:
        return self._codes.narrow(0, 0, items * frames)

    def pcm(self, items: int, frames: int) -> Buffer:
        samples = frames * SAMPLES_A_FRAME
        return self._pcm.narrow(0, 0, items * samples).view(items, samples)


def item_buckets(most: int) -> list[int]:
    """1, 2, 4, ... up to the first that holds the most items of a launch."""
    if most < 1:
        raise ValueError("vocoder_max_batch is at least 1")
    return [1 << power for power in range((most - 1).bit_length() + 1)]
