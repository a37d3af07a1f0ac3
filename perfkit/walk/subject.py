"""The server that is investigated, and how the parts of the walk name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from layers.layer3_sweep.subject import Subject

ENGINE_PRESET, ENGINE_PIPELINE = "baseline", "tts"


@dataclass(frozen=True, slots=True)
class Investigated:
    """A server that runs (`server`), one to start (`launch`), or, without either, the bundled engine.

    `options` go to every part that sends load (--endpoint, --model, --data), `headers` too and are recorded
    nowhere; `roofline` to Layer 1. `a_a`: Layer 4 compares A with itself, which shows what such a walk claims
    where nothing was changed.
    """

    server: str = ""
    launch: str = ""
    preset: str = ENGINE_PRESET
    pipeline: str = ENGINE_PIPELINE
    options: Mapping[str, str] = field(default_factory=dict)
    roofline: Mapping[str, str] = field(default_factory=dict)
    a_a: bool = False
    headers: tuple[str, ...] = ()

    @property
    def is_bundled(self) -> bool:
        """Whether it is perfkit's own engine."""
        return not self.server and not self.launch

    @property
    def foreign(self) -> bool:
        """Whether somebody else started it: load is sent only after a yes."""
        return bool(self.server)

    @property
    def subject(self) -> Subject:
        """As it is started, or found."""
        if self.is_bundled:
            engine = ("--pipeline", self.pipeline, "--preset", self.preset, "--allow-profilers")
            return Subject(engine=engine)
        return Subject(url=self.server, command=self.launch)

    def load_options(self) -> list[str]:
        """What is sent: the same in every part."""
        said = [f"--{name}={value}" for name, value in self.options.items()]
        return [*said, *(f"--header={header}" for header in self.headers)]
