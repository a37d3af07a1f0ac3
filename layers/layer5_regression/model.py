"""What passes between the steps of Layer 5: arms of recorded outputs, differences of samples, cells, and what
is found of them all.

    arm          all outputs of one side: A the reference, B what changed, A' the reference once more
    sample       one item asked in one cell; its key names it in every arm
    cell         one way of asking (concurrency, cache, streaming); empty where nobody said
    difference   where two outputs of a key first part, by the first thing in which they do
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from layers.evidence.measurement import Artifact
from parsers.output_model import Kind, Output

Key = tuple[str, str, int]
"""Cell, item, repeat."""


class What(StrEnum):
    """In what two outputs differ: the first of these, in this order."""

    ENDED = "ended"
    """one was answered, the other was not"""
    FINISH = "finish-reason"
    TOKENS = "token-count"
    """as the servers count"""
    KIND = "kind"
    """one has text, say, and the other has not"""
    DTYPE = "dtype"
    RATE = "sample-rate"
    SHAPE = "shape"
    """beyond the length: channels, or the width of a row"""
    LENGTH = "length"
    CONTENT = "content"


@dataclass(frozen=True, slots=True)
class AudioDifference:
    """How far two sounds are apart, over the frames that both have. `lag_frames`: by how many frames B comes
    later, by cross-correlation. `max_lsb`: the largest difference of a sample, in steps of 16 bits.
    `snr_db`: of A over A - B; None where they are equal, or A is silent. `aligned_snr_db`: the same after the
    lag is taken out."""

    frames: tuple[int, int]
    lag_frames: int
    max_lsb: float
    snr_db: float | None
    aligned_snr_db: float | None
    equal_share: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Where one sample of B departs from that of A. `at` counts `unit`s from 0: characters, tokens, rows,
    frames, elements; None where not the contents differ. `a` and `b` are what stands there, in words."""

    what: What
    kind: Kind | None
    a: str
    b: str
    at: int | None = None
    unit: str = ""
    at_ms: float | None = None
    lengths: tuple[int, int] | None = None
    audio: AudioDifference | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One way of asking: so many at a time, with a content cache that was emptied before ("cold") or had seen
    every item ("warm"), streamed or not."""

    concurrency: int
    cache: str
    stream: bool

    @property
    def name(self) -> str:
        return f"c={self.concurrency} {self.cache} {'stream' if self.stream else 'whole'}"


@dataclass(frozen=True, slots=True)
class Proof:
    """A counter of the server that must have moved in this arm, and what it proves."""

    setting: str
    counter: str


@dataclass(frozen=True, slots=True)
class DataFacts:
    """The items of an arm beside those that the sweeps and A/Bs of this investigation sent: how many there
    are and were, how many are the same by content, and the length of the longest (`unit`s; 0: not known)."""

    items: int = 0
    earlier_items: int = 0
    reused: int = 0
    longest: float = 0.0
    earlier_longest: float = 0.0
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """How perfkit collected an arm. `planned`: samples that were to be asked. `declared`: settings in which
    the arms are meant to differ, by name; `settings`: the server's own resolved ones. `counters`: what grew
    of its metrics meanwhile, `hits` and `looked_up` those of its content or prefix cache in cold cells, of
    which `not_flushed` were not emptied before."""

    planned: int
    cells: tuple[Cell, ...] = ()
    server: str = ""
    declared: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    proofs: tuple[Proof, ...] = ()
    hits: float | None = None
    looked_up: float | None = None
    not_flushed: int = 0
    ended: bool = True


@dataclass(frozen=True, slots=True)
class Arm:
    """One side. `lost` says what of it could not be read, `missing` how many samples that is at least;
    `sources` are the files that it was read from, by where they really lie."""

    name: str
    outputs: tuple[Output, ...]
    artifacts: tuple[Artifact, ...]
    lost: tuple[str, ...] = ()
    missing: int = 0
    sources: frozenset[str] = frozenset()
    recorded: Recorded | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One key that both arms have. `difference`: None where the bytes are the same. `answered`: whether both
    have an output; `one_answered`: whether at least one has."""

    key: Key
    a: Output
    b: Output
    difference: Difference | None

    @property
    def answered(self) -> bool:
        return is_answered(self.a) and is_answered(self.b)

    @property
    def compared(self) -> bool:
        """Whether there is anything to tell: an output on one side at least."""
        return is_answered(self.a) or is_answered(self.b)


def is_answered(output: Output) -> bool:
    """Whether there is an output that is not empty."""
    return not output.error and any(payload.data for payload in output.payloads)


@dataclass(frozen=True, slots=True)
class Paired:
    """Two arms, key by key. `only_a` and `only_b` have no partner; `doubled` are keys that one arm has more
    than once: nobody knows which one counts, so they are not compared."""

    samples: tuple[Sample, ...]
    only_a: tuple[Key, ...]
    only_b: tuple[Key, ...]
    doubled: tuple[Key, ...]

    @property
    def compared(self) -> tuple[Sample, ...]:
        return tuple(one for one in self.samples if one.compared)

    @property
    def different(self) -> tuple[Sample, ...]:
        return tuple(one for one in self.compared if one.difference is not None)


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing that was planted into a copy of the data, and how often the comparison found it."""

    planted: str
    times: int
    caught: int


@dataclass(frozen=True, slots=True)
class Judged:
    """How one cell is judged. `exact`: by its bytes, which an A/A run has shown to be possible; else
    `why_not` says why not. `aa_*`: the same counts between the two runs of A, None where there are none."""

    cell: str
    n: int
    different: int
    outside: int
    aa_n: int | None
    aa_different: int | None
    exact: bool
    why_not: str


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Right and wrong on the same items in both arms. `right` says by which rule; `lost` were right in the
    baseline alone, `gained` in B alone. `detectable_share`: the smallest loss that such a comparison finds in
    80 % of cases. `error_rates`: (metric, A, B, and the interval of B - A), where texts were expected."""

    right: str
    n: int
    baseline_right: int
    lost: int
    gained: int
    p_value: float
    detectable_share: float | None
    error_rates: ErrorRates | None = None

    @property
    def loss_share(self) -> float:
        return (self.lost - self.gained) / self.n


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """WER or CER of both arms over the same items; `low` and `high` enclose B - A (95 %, over utterances)."""

    metric: str
    a: float
    b: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Options:
    """How to judge. `preserving`: whether the change is meant to leave every byte alone; `margin_share`: the
    loss of accuracy that would be accepted; `encoder_decoder`: what makes the model one, empty where it is
    not, or not known; `data`: the items beside those that were sent before, where that is known."""

    preserving: bool = True
    margin_share: float = 0.01
    max_lsb: float = 1.0
    encoder_decoder: tuple[str, ...] = ()
    data: DataFacts | None = None


@dataclass(frozen=True, slots=True)
class Signs:
    """What the outputs themselves say of whether anything was exercised. Counts are of answered samples:
    `alike_*` of the most common output, over items; `cut_*` of answers that ended at a length limit;
    `silent_*` of sounds without a sample that differs; `not_finite` of outputs that hold NaN or infinity;
    `swapped` of samples of B whose output is that of another item in A; `load_dependent` of items that A
    itself answers differently in another cell, of `several_cells` that it has in more than one."""

    items: int
    answered: tuple[int, int]
    alike: tuple[int, int]
    cut: tuple[int, int]
    silent: tuple[int, int]
    not_finite: tuple[int, int]
    swapped: int
    load_dependent: int
    several_cells: int
    cell_pairs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that is judged. `aa` is the second run of A; `repeated` sets it beside the first."""

    a: Arm
    b: Arm
    aa: Arm | None
    options: Options
    paired: Paired
    repeated: Paired | None
    cells: tuple[Judged, ...]
    trials: tuple[Trial, ...]
    accuracy: Accuracy | None
    signs: Signs

    @property
    def arms(self) -> tuple[Arm, ...]:
        return (self.a, self.b) if self.aa is None else (self.a, self.b, self.aa)

    @property
    def tolerant(self) -> tuple[Judged, ...]:
        """The cells that cannot be judged by their bytes."""
        return tuple(one for one in self.cells if not one.exact)

    @property
    def outside(self) -> int:
        """Samples of such cells that are off by more than a rounding."""
        return sum(one.outside for one in self.tolerant)
