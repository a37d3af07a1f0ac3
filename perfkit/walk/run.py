"""Runs the walk: part after part, each as a program of its own, with a decision behind each.

    with Walk(...) as walk:
        walk.go_on()

The server is started where a part first needs it, and stopped before Layer 4, which starts servers of its
own. What has ended is in the journal and is never run twice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from layers.collectors.server_adapters.adapter import ServerCallFailed
from layers.collectors.server_adapters.registry import adapter_for
from layers.evidence.store import ARTIFACTS
from layers.evidence.verdict import Exit
from layers.layer3_sweep.subject import serving
from parsers.children import child_command
from parsers.errors import PerfkitError
from perfkit.walk.candidates import candidates
from perfkit.walk.decide import KERNELS_INSTEAD, decide
from perfkit.walk.journal import Journal, Told
from perfkit.walk.lock import held
from perfkit.walk.model import OF_A_CHANGE, UNDER_LOAD, Candidate, Decision, Outcome, Part, Profile, Way
from perfkit.walk.steps import RESUMABLE, arguments_of
from perfkit.walk.subject import Investigated

LOOK_EVERY_S = 0.2
END_S = 60.0
"""For a part to keep what it has once it is told to end."""
ENDED_BY_SIGNAL = 128


@dataclass(frozen=True, slots=True)
class People:
    """Those whom the walk asks and tells. `waits`: nothing new; `cut`: what was cut keeps what it has first;
    `rests`: nothing is at work any more. `may_load`: may load be sent to a server that somebody else runs?
    `choose`: which of the candidates, None for none of them."""

    told: Callable[[], bool]
    begins: Callable[[Part], None]
    waits: Callable[[], None]
    cut: Callable[[], None]
    ended: Callable[[Outcome, Decision], None]
    left_out: Callable[[Part, str], None]
    rests: Callable[[], None]
    may_load: Callable[[], bool]
    choose: Callable[[Sequence[Candidate]], Candidate | None]


class Walk:
    """One walk through an investigation. Use as a context manager."""

    def __init__(
        self,
        investigation: Path,
        journal: Journal,
        whom: Investigated,
        profile: Profile,
        skipped: dict[Part, str],
        people: People,
    ) -> None:
        self._investigation, self._journal, self._people = investigation, journal, people
        self._whom, self._profile, self._skipped = whom, profile, skipped
        self._server, self._holding = ExitStack(), ExitStack()
        self._url = ""

    def __enter__(self) -> Self:
        """UsageError where another walk is at work in this folder."""
        place, people = self._journal.folder, self._people
        self._lock = self._holding.enter_context(held(place, people.told, people.cut))
        self._journal.read_again()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._server.close()
        finally:
            self._holding.close()

    @property
    def _told(self) -> Told:
        return self._journal.told

    def go_on(self) -> bool:
        """Walk what is left; False where somebody ended it, or is to decide something first."""
        for part in Part:
            if part in self._told.decisions or part in self._told.left_out:
                continue
            if self._people.told() or not self._agreed(part):
                return False
            if reason := self._why_not(part):
                self._leave_out(part, reason)
            elif (part in OF_A_CHANGE and not self._chosen()) or not self._run(part):
                return False
        self._journal.finished()
        return True

    def _agreed(self, part: Part) -> bool:
        """The first stop for a human: before load is sent to a server that perfkit did not start."""
        if part not in UNDER_LOAD or not self._whom.foreign or self._told.agreed:
            return True
        if not self._people.may_load():
            return False
        self._journal.agreed()
        return True

    def _why_not(self, part: Part) -> str:
        """Why a part is left out; empty where it is not."""
        if part in self._skipped:
            return self._skipped[part]
        if self._led_to_kernels and part in KERNELS_INSTEAD:
            return "Layer 1 says that the device is busy: roofline and kernel tables instead"
        if part is Part.LAYER4:
            return self._why_no_change()
        if part is Part.LAYER5:
            return self._why_no_answers()
        return ""

    @property
    def _led_to_kernels(self) -> bool:
        first = self._told.decisions.get(Part.LAYER1)
        return first is not None and first.way is Way.KERNELS

    def _why_no_change(self) -> str:
        found = self._proposed()
        if not found:
            return "no switch of this server is known that the evidence points at"
        if not any(one.runs for one in found):
            return f"perfkit cannot switch it by itself: {found[0].how}"
        if self._whom.foreign:
            return "perfkit did not start this server, and restarts nobody's: name its command with --launch"
        if self._whom.launch:
            tried = f"{found[0].set_} against {found[0].vs}"
            return f"the command of --launch has no place for it: perfkit ab --launch A --launch-b B, {tried}"
        return ""

    def _why_no_answers(self) -> str:
        if Part.LAYER4 in self._told.left_out:
            return "no change was tried"
        decision = self._told.decisions[Part.LAYER4]
        return decision.because if decision.way is Way.END else ""

    def _proposed(self) -> tuple[Candidate, ...]:
        """The candidates for Layer 4, from what was found so far; written down once."""
        if not self._told.candidates:
            found = candidates(self._told.kind, self._told.outcomes)
            if found:
                self._journal.proposed(found)
        return self._told.candidates

    def _chosen(self) -> bool:
        """The second stop for a human: which variable Layer 4 changes."""
        if self._told.chosen is None:
            chosen = self._people.choose([one for one in self._proposed() if one.runs])
            if chosen is None:
                return False
            self._journal.chose(chosen)
        return True

    def _leave_out(self, part: Part, because: str) -> None:
        self._journal.left_out(part, because)
        self._people.left_out(part, because)

    def _run(self, part: Part) -> bool:
        """Run a part to its end; False where somebody ended it."""
        self._people.begins(part)
        try:
            return self._run_to_its_end(part)
        finally:
            self._people.rests()

    def _run_to_its_end(self, part: Part) -> bool:
        if part in OF_A_CHANGE:
            self._server.close()
        elif not self._serve():
            return False
        options = arguments_of(part, self._profile, self._whom, self._url, self._told.chosen)
        arguments = [part.value, *self._resumed(part, options), *self._always()]
        self._journal.began(part, arguments, self._artifacts())
        began_s = time.monotonic()
        code, document = self._child(part, arguments)
        if code == Exit.INTERRUPTED or code < 0 or self._people.told():
            return False
        outcome = Outcome(part, code, document)
        decision = decide(outcome)
        self._journal.ended(outcome, decision, round(time.monotonic() - began_s, 1))
        self._people.ended(outcome, decision)
        return True

    def _always(self) -> list[str]:
        return [f"--investigation={self._investigation}", "--json"]

    def _resumed(self, part: Part, options: list[str]) -> list[str]:
        """--resume, and what no folder keeps, where the part had begun and left a folder of its own."""
        if part not in RESUMABLE or part not in self._told.begun:
            return options
        new = set(self._artifacts()) - set(self._told.begun[part])
        left = any(name.startswith(FOLDERS[part]) for name in new)
        return ["--resume", *(one for one in options if one.startswith(KEPT_NOWHERE))] if left else options

    def _artifacts(self) -> list[str]:
        folder = self._investigation / ARTIFACTS
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def _serve(self) -> bool:
        """Have the server answer, and know its kind; False where somebody ended it before that."""
        if not self._url:
            log = self._journal.folder / "server.log"
            try:
                served = self._server.enter_context(serving(self._whom.subject, {}, log, self._looks))
            except PerfkitError:
                if not self._people.told():
                    raise
                return False
            self._url = served.url
        if not self._told.kind:
            self._journal.kind(self._kind())
        return True

    def _looks(self) -> bool:
        """Whether somebody ended the walk; seen, and shown, while a server starts."""
        self._people.waits()
        return self._people.told()

    def _kind(self) -> str:
        headers = dict(header.split("=", 1) for header in self._whom.headers)
        try:
            return adapter_for(self._url, headers).kind
        except ServerCallFailed:
            return "unknown"

    def _child(self, part: Part, arguments: Sequence[str]) -> tuple[int, dict[str, Any]]:
        """Exit code and document of a part. What it says meanwhile is in a log beside the journal."""
        log = self._journal.folder / f"{part}.log"
        answer = self._journal.folder / f"{part}.answer"
        command = child_command("perfkit.walk.child:main", str(os.getpid()), *arguments)
        with log.open("ab") as said, answer.open("wb") as printed:
            code = self._wait(command, said, printed)
        try:
            document = json.loads(answer.read_text(encoding="utf-8"))
        except ValueError:  # it ended before it had one; the log says why
            document = {}
        answer.unlink()
        return code, document if isinstance(document, dict) else {}

    def _wait(self, command: Sequence[str], said: IO[bytes], printed: IO[bytes]) -> int:
        """Until it has ended; told to end, it is given time to keep what it has.

        It is in a session of its own: a Ctrl-C at the terminal reaches the walk alone, which tells it once.
        It holds the walk's lock for as long as it lives.
        """
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=said,
            start_new_session=True,
            pass_fds=(self._lock,),
        ) as child:
            asked = False
            while True:
                try:
                    return child.wait(END_S if asked else LOOK_EVERY_S)
                except subprocess.TimeoutExpired:
                    if asked:
                        child.kill()
                    self._people.waits()
                    if self._people.told() and not asked:
                        self._people.cut()
                        child.send_signal(signal.SIGTERM)
                        asked = True


KEPT_NOWHERE = ("--header=", "--ran=", "--unblocked=")
"""Options that a part which goes on must be given again: secrets, and how an A/B is judged."""
FOLDERS = {Part.LAYER3: "sweep-", Part.LAYER4: "ab-", Part.LAYER5: "regress-"}
"""How the commands that can be resumed name their folders."""
