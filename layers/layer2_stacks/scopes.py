"""Whose ticks: stacks split by the innermost process and its thread, and put together over captures.

Without --threads equal stacks of several threads add up in the file, and nothing takes them apart again; then
the entry frame is the scope, and `threads_known` says so. Over captures a scope is known by its thread's name
and entry where those are unique in every capture (a restarted server has new ids), else by its ids.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from layers.collectors.stacks.entries import entry_name
from layers.layer2_stacks.model import Capture, Scope
from layers.layer2_stacks.seen import Seen, see
from parsers.stack_model import Stack, ThreadName

Owner = tuple[int, ThreadName | None, str]
"""Innermost PID (NO_PID: none told), thread, and the entry where there is no thread."""
NO_PID = -1
Label = tuple[str, ...]
UNNAMED = "unnamed thread"


@dataclass(slots=True)
class ScopeStacks:
    """The stacks of one scope, one list a capture."""

    scope: Scope
    captures: list[list[Seen]] = field(default_factory=list)


def split(captures: Sequence[Capture]) -> list[ScopeStacks]:
    """All scopes of the captures, the one with most ticks first."""
    owned = [_by_owner(capture.recorded.stacks) for capture in captures]
    repeated = {label for owners in owned for label in _repeated(owners)}
    groups: dict[Label, list[dict[Owner, list[Seen]]]] = defaultdict(lambda: [{} for _ in captures])
    for at, owners in enumerate(owned):
        for owner, seen in owners.items():
            label = _label(owner, seen)
            key = (*label, *_identity(owner)) if label in repeated else label
            groups[key][at][owner] = seen
    scopes = [_scope(parts, key[:2] in repeated) for key, parts in groups.items()]
    return sorted(scopes, key=lambda s: (-sum(_ticks(c) for c in s.captures), s.scope.name))


def _repeated(owners: dict[Owner, list[Seen]]) -> list[Label]:
    """Labels that several threads of one capture bear."""
    counts = Counter(_label(owner, seen) for owner, seen in owners.items())
    return [label for label, n in counts.items() if n > 1]


def owner_of(stack: Stack, entry: str) -> Owner:
    """Whose stack it is."""
    pid = stack.processes[-1].pid if stack.processes else NO_PID
    return pid, stack.thread, "" if stack.thread else entry


def _by_owner(stacks: Iterable[Stack]) -> dict[Owner, list[Seen]]:
    owners: dict[Owner, list[Seen]] = defaultdict(list)
    for stack in stacks:
        seen = see(stack)
        owners[owner_of(stack, entry_name(seen.entry))].append(seen)
    return owners


def _ticks(seen: Iterable[Seen]) -> int:
    return sum(s.stack.count for s in seen)


def _entry(seen: Iterable[Seen]) -> str:
    """The commonest entry; of equals the first by name, so that no order of lines matters."""
    counts: Counter[str] = Counter()
    for s in seen:
        if s.entry is not None:
            counts[entry_name(s.entry)] += s.stack.count
    return min(counts, key=lambda name: (-counts[name], name), default="")


def _label(owner: Owner, seen: Iterable[Seen]) -> Label:
    _, thread, entry = owner
    return (thread.name, _entry(seen)) if thread else ("", entry)


def _identity(owner: Owner) -> tuple[str, str]:
    pid, thread, _ = owner
    return str(pid), thread.identity if thread else ""


def _scope(parts: Sequence[dict[Owner, list[Seen]]], by_identity: bool) -> ScopeStacks:
    owners = {owner for part in parts for owner in part}
    threads = {thread for _, thread, _ in owners if thread}
    captures = [[s for seen in part.values() for s in seen] for part in parts]
    entry = _entry(s for seen in captures for s in seen)
    thread = min((t.name for t in threads), default="")
    pids = tuple(sorted({pid for pid, _, _ in owners if pid != NO_PID}))
    identities = tuple(sorted({t.identity for t in threads}))
    name = _name(thread, bool(threads), entry, pids, identities if by_identity else ())
    return ScopeStacks(Scope(name, pids, identities, thread, bool(threads), entry), captures)


def _name(thread: str, known: bool, entry: str, pids: Sequence[int], identities: Sequence[str]) -> str:
    who = (thread or UNNAMED) if known else "all threads"
    where = f" in {entry}" if entry else ""
    process = f", process {pids[0]}" if len(pids) == 1 else ""
    return f"{who}{where}{process}" + (f", thread {identities[0]}" if identities else "")
