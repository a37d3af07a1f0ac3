"""What tests of the engine's decoder share: a tiny stage, prompts, and a board that runs them to the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sample_engine.config.resolve import resolve
from sample_engine.config.settings import Settings
from sample_engine.device import Device
from sample_engine.observe.metrics import Metrics
from sample_engine.scheduling.decode_loop import DecodeLoop
from sample_engine.stages.ar import ArStage
from sample_engine.stages.payloads import Frame, Prompt
from sample_engine.stages.slot_decoder import StepPending
from tests.engine_builders import small_device

BUDGET_BYTES = 32 << 20
Codes = list[tuple[int, ...]]


@dataclass(eq=False)
class Row:
    """A prompt in a slot, and what came out."""

    prompt: Prompt
    slot: int
    frames: list[Frame] = field(default_factory=list)
    ended: bool = False

    @property
    def made(self) -> Codes:
        return [(one.text_id, *one.codes, one.key) for one in self.frames]


class Hall:
    """A board: lets prompts in while slots are free, in order."""

    def __init__(self, stage: ArStage, prompts: Sequence[Prompt], most: int) -> None:
        self.rows: list[Row] = []
        self._stage, self._waiting, self._most = stage, list(prompts), most

    def running(self) -> list[Row]:
        running = [row for row in self.rows if not row.ended]
        while self._waiting and len(running) < self._most:
            prompt = self._waiting.pop(0)
            row = Row(prompt, self._stage.open(prompt))
            while not self._stage.advance(row.slot):
                pass
            running.append(row)
            self.rows.append(row)
        return running

    def collect(self, row: Row, frame: Frame) -> None:
        row.frames.append(frame)
        if frame.last:
            self.leave(row)

    def leave(self, row: Row) -> None:
        row.ended = True
        self._stage.close(row.slot)


@dataclass
class Bench:
    """A stage with its device and counters."""

    device: Device
    stage: ArStage
    metrics: Metrics

    def loop(self, hall: Hall, lookahead: bool, min_batch: int = 2) -> DecodeLoop[Row, StepPending, Frame]:
        return DecodeLoop(self.stage, hall, self.metrics, "ar", lookahead=lookahead, min_batch=min_batch)

    def decode(self, prompts: Sequence[Prompt], most: int = 4, lookahead: bool = False) -> list[Codes]:
        """What each prompt makes, `most` at a time."""
        hall = Hall(self.stage, prompts, most)
        loop = self.loop(hall, lookahead)
        while not loop.is_idle:
            loop.turn()
        return [row.made for row in hall.rows]

    def configure(self, **options: Any) -> None:
        self.stage.configure(settings_with(options))

    def count(self, name: str, value: str = "ar") -> float:
        return self.metrics.get(f"engine_{name}_total", value)


@contextmanager
def bench(**options: Any) -> Iterator[Bench]:
    """A tiny stage on an emulated device; options as `settings_with` takes them."""
    with small_device(BUDGET_BYTES) as device, Metrics() as metrics:
        yield Bench(device, ArStage(device, device.streams[0], settings_with(options), metrics), metrics)


def settings_with(options: dict[str, Any]) -> Settings:
    """Settings by their flat names, over the baseline with keys on the device."""
    chosen = {"size": "tiny", "preset": "baseline", "radix_key": "device", **options}
    return resolve(options=chosen).settings


def prompt(index: int, steps: int = 8, temperature: float = 0.0) -> Prompt:
    """Different ones for different numbers, of 1 to 7 ids."""
    ids = tuple((index * 7 + place * place) % 60 for place in range(1 + index % 7))
    return Prompt(ids, ids, steps, temperature, seed=index)
