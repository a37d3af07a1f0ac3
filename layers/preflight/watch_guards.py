"""The guards of a watch: whether others touched what is measured, and whether that could be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from layers.collectors.gpu.fields import PROCESSES
from layers.collectors.watching import Watched
from layers.evidence.guard import Effect, Guard, Outcome
from layers.evidence.wording import FEW, counted, first_few, limit, pct
from layers.preflight.gpu_choice import BUSY_PCT, MEMORY_MOVES_BYTES, MIN_SAMPLES
from layers.preflight.watch import FOREIGN_CPU_SHARE, Arrival, Stretch, foreign_cpu_share, times
from parsers.series_model import NO_DEVICE
from parsers.trace_model import I64

MIN_COVERED_SHARE = 0.8
"""Of the time of a watch. perfkit's choice: the start of the samplers stays above."""
LOOK_NS = 1_000_000_000
"""The host is looked at once a second, cards more often."""
METHODOLOGY = "SGLang-Omni methodology 1.2 (pre-flight)"


@dataclass(frozen=True, slots=True)
class WatchFacts:
    """A watch with what it found. `cards` are ours; `known` says whether ids can be told apart here."""

    watched: Watched
    stretches: tuple[Stretch, ...]
    arrivals: tuple[Arrival, ...]
    cards: tuple[int, ...]
    seen: tuple[int, ...]
    known: bool

    def looks(self, device: int) -> int:
        """How often a card, or the host (NO_DEVICE), was looked at."""
        return len(self.look_times(device))

    def look_times(self, device: int) -> I64:
        """When it was."""
        if device == NO_DEVICE:
            return foreign_cpu_share(self.watched.series)[0]
        found = [s for s in self.watched.series if s.device == device and s.field == PROCESSES]
        return max(map(times, found), key=len, default=np.empty(0, np.int64))

    def covered_s(self, device: int) -> float:
        """The time that the looks at it reach over, a look's own time at both ends included."""
        at_ns = self.look_times(device)
        return min(self.asked_s, float(at_ns[-1] - at_ns[0] + 2 * LOOK_NS) / 1e9) if len(at_ns) else 0.0

    @property
    def asked_s(self) -> float:
        """How long it was to be watched; 0 where that is not known."""
        return (self.watched.end_ns - self.watched.begin_ns) / 1e9

    def covers(self, device: int) -> bool:
        """Whether the looks reach over the time, so that what they did not see was not there."""
        return self.covered_s(device) >= MIN_COVERED_SHARE * self.asked_s


def clock_text(at_ns: int) -> str:
    """The time of day in UTC."""
    return f"{datetime.fromtimestamp(at_ns / 1e9, UTC):%H:%M:%S} UTC"


def stretch_text(one: Stretch) -> str:
    """Where, when, how long and why."""
    when = f"from {clock_text(one.begin_ns)} for {one.seconds:.1f} s"
    return f"{one.where} {when}: {', '.join(one.why[:FEW])}"


def arrival_text(one: Arrival) -> str:
    """Who came where, and when."""
    return f"process {one.pid} came to gpu {one.device} at {clock_text(one.at_ns)}"


def _card_touched(facts: WatchFacts) -> Outcome | None:
    """Use of other cards alone is worth a note: it is no load of ours, and does not touch it."""
    if not facts.seen:
        return None
    ours = [one for one in facts.stretches if one.device in facts.cards]
    others = [one for one in facts.stretches if one.device not in (*facts.cards, NO_DEVICE)]
    if ours:
        return Outcome(True, first_few(map(stretch_text, ours)))
    if others:
        return Outcome(True, f"other cards than ours: {first_few(map(stretch_text, others))}", Effect.NOTE)
    return Outcome(False, f"nobody else touched a card ({counted(len(facts.seen), 'card')} watched)")


def _host_touched(facts: WatchFacts) -> Outcome | None:
    at, share = foreign_cpu_share(facts.watched.series)
    if not len(at):
        return None
    found = [one for one in facts.stretches if one.device == NO_DEVICE]
    said = f"others kept at most {pct(float(share.max()))} of the cores busy (n = {counted(len(at), 'look')})"
    return Outcome(bool(found), first_few(map(stretch_text, found)) if found else said)


def _came(facts: WatchFacts) -> Outcome | None:
    if not facts.seen:
        return None
    whose = "" if facts.known else "; whose they are cannot be told here"
    said = first_few(map(arrival_text, facts.arrivals))
    return Outcome(bool(facts.arrivals), said + whose if said else "no process came that is not ours")


def _untold(facts: WatchFacts) -> Outcome | None:
    if not facts.seen:
        return None
    said = "the driver lists ids of the host, and this is another PID namespace"
    return Outcome(not facts.known, "ids are those of the driver" if facts.known else said)


def _few(facts: WatchFacts) -> Outcome:
    places: Sequence[int] = facts.cards or [NO_DEVICE]
    fewest = min(facts.looks(place) for place in places)
    return Outcome(fewest < MIN_SAMPLES, f"{counted(fewest, 'look')} at what was watched least")


def _not_covered(facts: WatchFacts) -> Outcome | None:
    """Of places that were looked at; PK025 counts the looks at the others."""
    places = [place for place in (*facts.cards, NO_DEVICE) if facts.looks(place)]
    if not places or not facts.asked_s:
        return None
    whole = f"of {facts.asked_s:.1f} s"
    names = {place: "the host" if place == NO_DEVICE else f"gpu {place}" for place in places}
    short = [place for place in places if not facts.covers(place)]
    said = [f"{names[place]} was watched for {facts.covered_s(place):.1f} s {whole}" for place in short]
    return Outcome(bool(said), first_few(said) or f"looks over the whole time, {facts.asked_s:.1f} s")


WATCH_GUARDS: tuple[Guard[WatchFacts], ...] = (
    Guard(
        code="PK021",
        name="card-used-by-others",
        layer="preflight",
        effect=Effect.VOID,
        sees="One run among several that is slower, with no change of ours.",
        cause="Somebody else computed on the card, or filled or freed memory there, while it ran.",
        detection=f"A process that is not ours came, left, reached {BUSY_PCT:g} % of SM utilisation or moved "
        f"more than {MEMORY_MOVES_BYTES >> 20} MiB; any use while ours did not run. A note on other cards.",
        remedy="Leave out the runs that the named stretches touch, or keep them for qualitative conclusions.",
        source=f"{METHODOLOGY}: a spot check during the run; a spike by others marks the runs it touched.",
        check=_card_touched,
    ),
    Guard(
        code="PK022",
        name="host-used-by-others",
        layer="preflight",
        effect=Effect.VOID,
        sees="Host-bound numbers that come and go.",
        cause="Processes that are not ours, in this container or out of it, keep cores busy.",
        detection=f"{limit(FOREIGN_CPU_SHARE)} of the machine's cores or more busy with what is not ours.",
        remedy="Leave out the touched runs; name every process of ours (--pid: server, load client).",
        source="proc_stat(5) against /proc/PID/stat; perfkit: a scheduler that waits for a core looks slow.",
        check=_host_touched,
    ),
    Guard(
        code="PK023",
        name="gpu-processes-came",
        layer="preflight",
        effect=Effect.NOTE,
        sees="A card that was ours alone when the run began.",
        cause="A process that is not ours opened a card during the run, ours or a neighbour's.",
        detection="Processes that the driver lists and did not list at the first look.",
        remedy="See whose they are; a neighbour shares the host, its memory and its links with you.",
        source=f"{METHODOLOGY}: other cards are sampled too; a neighbour's load is not taken for ours.",
        check=_came,
    ),
    Guard(
        code="PK024",
        name="watch-cannot-tell-whose",
        layer="preflight",
        effect=Effect.DIRECTIONAL,
        sees="A quiet watch in a container.",
        cause="Process ids of the driver mean nothing in another PID namespace: who uses the card beside "
        "our load looks like our load.",
        detection="A PID namespace that is not the host's, and a GPU to watch.",
        remedy="Run the watch on the host, or in a container with --pid=host.",
        source="nvidia-docker issues 179, 759, 1460; nvitop issue 152.",
        check=_untold,
    ),
    Guard(
        code="PK025",
        name="short-watch",
        layer="preflight",
        effect=Effect.DIRECTIONAL,
        sees="A quiet watch that was too short to see anything.",
        cause="Others come in bursts, and a handful of looks falls between them.",
        detection=f"Fewer than {MIN_SAMPLES} looks at a card of ours, or at the host where there is no card.",
        remedy="Watch for as long as the layer runs.",
        source="SGLang and vLLM practice: at least ten samples, and the maximum of them.",
        check=_few,
    ),
    Guard(
        code="PK027",
        name="watch-not-covered",
        layer="preflight",
        effect=Effect.DIRECTIONAL,
        sees="A quiet watch whose sampler had ended.",
        cause="The watch's sampler was killed, hung in the driver, or lost the card; nobody looked then.",
        detection="The looks at a card of ours, or at the host, reach over less than "
        f"{limit(MIN_COVERED_SHARE)} of the time.",
        remedy="See the notes on the samplers, and watch again.",
        source="perfkit: a quiet watch says what was not seen, so it must have looked.",
        check=_not_covered,
    ),
)
