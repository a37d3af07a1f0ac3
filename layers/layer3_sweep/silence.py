"""Whether a pass that runs can still come to something: a server that stands still answers nothing more.

Its sockets go on taking connections and requests while a process of it is stopped, so that a pass would wait
for each of its timeouts. The states of its processes say it at once, where they can be seen from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from layers.collectors.load.team import Progress
from layers.collectors.stacks.standing import in_the_way, standing_still
from layers.evidence.wording import first_few

LOOK_EVERY_S = 2.0
"""Between looks at the states of the server's processes: each reads all of /proc."""
LOOKS = 2
"""In a row that find a process stopped: a debugger's look is no reason to end a pass."""
TELL_EVERY_S = 15.0
LEAST_S = 30.0
"""Without one request served, and with failures: a server that is slow at first has not failed by then."""


@dataclass(slots=True)
class Silence:
    """Follows one pass. `roots`: what stands for the server's processes, empty where they cannot be seen;
    `first_byte_s`: what a request waits for its first byte. `why`: set once the pass is to end."""

    roots: Sequence[str]
    first_byte_s: float
    says: Callable[[str], None]
    why: str = ""
    _looked_s: float = 0.0
    _told_s: float = 0.0
    _ended: int = 0
    _ended_s: float = 0.0
    _standing: int = 0

    def look(self, progress: Progress) -> str:
        """Why the pass can come to nothing more; empty while it can."""
        now_s, ended = progress.elapsed_s, progress.ok + progress.shed + progress.failed
        if ended != self._ended:
            self._ended, self._ended_s = ended, now_s
        if not self.why and self.roots and now_s >= self._looked_s + LOOK_EVERY_S:
            self._looked_s = now_s
            self.why = self._stopped()
        self.why = self.why or self._never(progress)
        if not self.why and progress.in_flight and now_s >= max(self._ended_s, self._told_s) + TELL_EVERY_S:
            self._told_s = now_s
            self.says(self._waits(progress))
        return self.why

    def _stopped(self) -> str:
        found = standing_still(self.roots)
        self._standing = self._standing + 1 if found else 0
        return first_few(map(str, found)) if self._standing >= LOOKS else ""

    def _never(self, progress: Progress) -> str:
        limit_s = max(self.first_byte_s, LEAST_S)
        if progress.ok or progress.shed or not progress.failed or progress.elapsed_s <= limit_s:
            return ""
        why = first_few(in_the_way(self.roots)) if self.roots else ""
        said = f"not one request was served in {limit_s:g} s"
        return f"{said}: {why}" if why else said

    def _waits(self, progress: Progress) -> str:
        what = "of the load" if progress.measuring else "of the warm-up"
        silent_s = progress.elapsed_s - self._ended_s
        return (
            f"no answer to {progress.in_flight} requests {what} for {silent_s:.0f} s; "
            f"each is given up after {self.first_byte_s:g} s without a byte (--timeout)"
        )
