"""Host spans by what they are and by thread, and the innermost one at a moment.

Spans of one thread nest like a call stack, though not strictly: profilers write children that end a little
after their parents. The innermost span at a moment is therefore the last to start among those that cover it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from layers.layer1_gpu_busy.grouped import inside_earlier
from layers.layer1_gpu_busy.kept import kept
from parsers.chrome_categories import ROLE_OF, Role
from parsers.trace_model import I8, I64, Bools, DeviceTrace, HostSpans

LEGACY_OPERATORS = "Operator"
"""The category under which the first Kineto (torch 1.8 to 1.11) files annotations too."""

LEGACY_ANNOTATION = re.compile(r"^(ProfilerStep|enumerate\(DataLoader\)|Optimizer\.\w+)#")
"""Names that torch itself gives to annotations; a user's own cannot be told from operators in such files."""

_ROLES = tuple(Role)
_CODE_OF = {role: code for code, role in enumerate(_ROLES)}


def spans_of(trace: DeviceTrace, *roles: Role) -> HostSpans:
    """The host spans of the given roles, by start time."""
    return trace.host.select(np.isin(_role_codes(trace), [_CODE_OF[role] for role in roles]))


@kept
def process_of_track(trace: DeviceTrace) -> I64:
    """A number for the process of each track; shape (tracks,)."""
    _, numbers = np.unique(np.array([track.pid for track in trace.tracks], str), return_inverse=True)
    return numbers


@dataclass(frozen=True, slots=True)
class ByThread:
    """Host spans sorted by (thread, start)."""

    spans: HostSpans

    def of(self, track_id: int) -> HostSpans:
        """The spans of one thread, by start; none for a thread that has none."""
        low, high = np.searchsorted(self.spans.track_id, (track_id, track_id + 1))
        return self.spans.select(np.arange(low, high))


def by_thread(spans: HostSpans) -> ByThread:
    """Spans (by start) made ready to be asked for by thread."""
    return ByThread(spans.select(np.argsort(spans.track_id, kind="stable")))


@kept
def outermost_operators(trace: DeviceTrace) -> HostSpans:
    """Operators that no other operator of their thread encloses: what a model's code calls itself."""
    operators = spans_of(trace, Role.OPERATOR)
    return operators.select(are_outermost(operators))


def are_outermost(spans: HostSpans) -> Bools:
    """Which spans lie in no other of their thread; of equal ones the first."""
    return ~inside_earlier(spans.track_id, spans.start_ns, spans.end_ns)


def hold_a_moment(spans: HostSpans, at_ns: I64) -> Bools:
    """Which spans any of the moments (ascending) lies in; an end is no part of its span."""
    holds: Bools = np.searchsorted(at_ns, spans.end_ns) > np.searchsorted(at_ns, spans.start_ns)
    return holds


def names_matching(trace: DeviceTrace, spans: HostSpans, pattern: re.Pattern[str]) -> Bools:
    """Which spans' names the pattern finds."""
    return names_that(trace, spans, lambda name: pattern.search(name) is not None)


def names_that(trace: DeviceTrace, spans: HostSpans, fits: Callable[[str], bool]) -> Bools:
    """Which spans have a name that fits; each distinct name is asked once."""
    name_ids, which = np.unique(spans.name_id, return_inverse=True)
    found = np.array([fits(trace.names[i]) for i in name_ids], bool)
    return found[which]


def innermost_name(trace: DeviceTrace, spans: HostSpans, track_id: int, at_ns: int) -> str:
    """Name of the last span to start among those of a thread that cover a moment; empty when none does."""
    covering = np.flatnonzero(
        (spans.track_id == track_id) & (spans.start_ns <= at_ns) & (at_ns < spans.end_ns)
    )
    return trace.names[spans.name_id[covering[-1]]] if len(covering) else ""


@kept
def _role_codes(trace: DeviceTrace) -> I8:
    """For each host span the index into _ROLES of what it is; shape (n,)."""
    of_category = [_CODE_OF[ROLE_OF.get(category, Role.UNKNOWN)] for category in trace.categories]
    codes = np.array(of_category, np.int8)[trace.host.category_id]
    if LEGACY_OPERATORS in trace.categories:
        legacy = np.flatnonzero(trace.host.category_id == trace.categories.index(LEGACY_OPERATORS))
        annotations = names_matching(trace, trace.host.select(legacy), LEGACY_ANNOTATION)
        codes[legacy[annotations]] = _CODE_OF[Role.ANNOTATION]
    return codes
