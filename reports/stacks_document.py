"""Layer 2 in a run's document, as the report reads it: captures, the thread of the verdict, its lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layers.evidence.finding import Finding, FindingKind, Strength
from layers.evidence.measurement import Artifact
from layers.evidence.store_rows import Run
from layers.evidence.verdict import Exit
from parsers.errors import StoreError
from reports.file_names import files_name
from reports.history import verdict_of
from reports.model import Basis, RunVerdict

NEEDED = ("captures", "scopes", "thread", "lost")
METHOD = "py-spy; leaf lines of one thread over its own ticks, intervals by captures and design effect"

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StackRun:
    """One recorded run of Layer 2 that counts, the artifacts behind it, and what it found."""

    run: Run
    artifacts: tuple[Artifact, ...]
    findings: tuple[Finding, ...]

    @property
    def captures(self) -> list[Entry]:
        """All that were given, void ones too."""
        return list(self.run.document["captures"])

    @property
    def thread(self) -> Entry | None:
        """The thread of the verdict; None where no capture counts."""
        thread: Entry | None = self.run.document["thread"]
        return thread

    @property
    def chosen(self) -> list[Entry]:
        """That thread's stacks, one entry a mode."""
        return [scope for scope in self.run.document["scopes"] if scope["chosen"]]

    @property
    def others(self) -> list[Entry]:
        """The other threads, in the mode of the verdict."""
        scopes = self.run.document["scopes"]
        mode = self.thread["mode"] if self.thread else None
        return [scope for scope in scopes if not scope["chosen"] and scope["mode"] == mode]

    @property
    def title(self) -> str:
        """What it is about."""
        target = self.run.document.get("target")
        if not self.captures and target is not None:
            return f"process {target['pid']}, not recorded"
        return f"stacks in {files_name([str(c['file']) for c in self.captures], 'capture')}"

    def basis(self, scopes: Sequence[Entry]) -> Basis:
        """What numbers of these threads rest on."""
        return Basis(sum(scope["ticks"] for scope in scopes), "ticks", METHOD, self.artifacts)


def read_stacks(run: Run, artifacts: Sequence[Artifact], findings: Sequence[Finding]) -> StackRun:
    """The run; StoreError where its document is none of Layer 2."""
    if missing := [name for name in NEEDED if name not in run.document]:
        raise StoreError(f"run {run.id}: its document has no {', '.join(missing)}: measure again")
    return StackRun(run, tuple(artifacts), tuple(findings))


def stacks_verdict(r: StackRun) -> RunVerdict:
    """What the run concluded, with the n behind it."""
    verdict, (strength, rule) = verdict_of(r.run), stacks_strength(r)
    concluded = r.thread is not None and verdict.exit_code is not Exit.INVALID
    main = [scope for scope in r.chosen if r.thread is not None and scope["mode"] == r.thread["mode"]]
    return RunVerdict(r.run.id, r.title, verdict, "", r.basis(main) if concluded else None, strength, rule)


def stacks_strength(r: StackRun) -> tuple[Strength | None, str]:
    """Of the finding that is the verdict; None where the run is void."""
    verdict = next((f for f in r.findings if f.kind is FindingKind.VERDICT), None)
    return (verdict.strength, verdict.rule) if verdict is not None else (None, "")
