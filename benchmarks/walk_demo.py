"""How often the walk finds what is planted in the bundled engine, and what it claims of no change.

python -m benchmarks.walk_demo [--walks 10] [--aa-walks 10] [--profile quick] [--folder DIR]

The baseline preset hashes the key of each frame on the host (switch `radix_key`, in frame_keys.py): in every
step a copy out, a wait and a copy in, which also prevent graphs and lookahead. Each walk is
`perfkit investigate --yes`, in its own investigation. A report *names* the cause where its first verdict
names the switch and a line of that file; it *proves* it where the word is cause-found and the answers did not
change. An A/A walk is the same with --a-a: Layer 4 compares A with itself, so whatever it claims of a change
is false. Walk and A/A walk take turns. What Layers 1 to 3 say is of the same server in both and no claim of a
change.

Prints a line for each walk, then counts with 95 % intervals (Wilson), claims that both kinds made, negative
findings, and minutes. Exits 1 where a claim was made by both, a walk did not come to its end, or one has no
negative finding.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import Any

from layers.evidence.statistics import wilson_interval
from parsers.children import child_command

PLANTED_SWITCH, PLANTED_FILE = "radix_key", "frame_keys.py"
CHANGES = ("improvement", "regression")
S_PER_MINUTE = 60
THROUGH = (0, 1, 3, 4)
"""Exit codes of a walk that came to its end."""


@dataclass(frozen=True, slots=True)
class Walked:
    """One walk: its document, the first verdict of its report, and how long it took."""

    kind: str
    code: int
    document: dict[str, Any]
    verdict: str
    minutes: float

    @property
    def through(self) -> bool:
        """Whether it came to its end."""
        return self.code in THROUGH and self.word != "partial"

    @property
    def word(self) -> str:
        return str(self.document.get("verdict", {}).get("word", "failed"))

    @property
    def names(self) -> bool:
        """Whether the report names the planted cause and a line of it."""
        return PLANTED_SWITCH in self.verdict and PLANTED_FILE in self.verdict

    @property
    def proves(self) -> bool:
        return self.names and self.word == "cause-found" and self.code == 0

    @property
    def claims(self) -> frozenset[str]:
        """What it claims of a change, in words that two walks share."""
        layer4 = next((row for row in self._rows if row["command"] == "ab"), {})
        word = str(layer4.get("word", ""))
        said = (
            {f"Layer 4: {word} of {self._tried}"} if word in CHANGES and not layer4["directional"] else set()
        )
        return frozenset(said | ({f"cause-found: {self._tried}"} if self.word == "cause-found" else set()))

    @property
    def negatives(self) -> list[str]:
        return [f"{one['layer']}: {one['statement']}" for one in self.document.get("ruled_out", [])]

    @property
    def line(self) -> str:
        """One line of what it came to."""
        parts = ", ".join(f"{row['layer']} {row.get('word', 'left out')}" for row in self._rows)
        named = "named" if self.names else "not named"
        strength = self.document.get("strength", "none")
        return f"{self.kind}: {self.word} ({strength}), {named}, {self.minutes:.1f} min; {parts}"

    @property
    def _rows(self) -> list[dict[str, Any]]:
        return list(self.document.get("walk", []))

    @property
    def _tried(self) -> str:
        return str((self.document.get("tried") or {}).get("name", "nothing"))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--walks", type=int, default=10)
    parser.add_argument("--aa-walks", type=int, default=None, help="as many as walks, if not given")
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--folder", type=Path, default=None, help="where investigations go; kept")
    asked = parser.parse_args()
    folder = asked.folder or Path(mkdtemp(prefix="perfkit-walks-"))
    again = asked.walks if asked.aa_walks is None else asked.aa_walks
    walks: list[Walked] = []
    for number in range(max(asked.walks, again)):
        for kind, most in (("walk", asked.walks), ("A/A", again)):
            if number < most:
                walks.append(
                    walked(kind, folder / f"{kind.lower().replace('/', '')}-{number + 1}", asked.profile)
                )
                print(walks[-1].line, flush=True)
    print(f"\ninvestigations in {folder}")
    return tell([w for w in walks if w.kind == "walk"], [w for w in walks if w.kind == "A/A"])


def walked(kind: str, folder: Path, profile: str) -> Walked:
    """Walk once, as from a terminal; what it says on its way goes beside the investigation."""
    options = ["--yes", "--json", f"--profile={profile}", f"--investigation={folder}"]
    options += ["--a-a"] if kind == "A/A" else []
    command = child_command("perfkit.bootstrap:main", "investigate", *options)
    folder.parent.mkdir(parents=True, exist_ok=True)
    began_s = time.monotonic()
    with folder.with_suffix(".log").open("wb") as said:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, check=False
        )
    minutes = (time.monotonic() - began_s) / S_PER_MINUTE
    return Walked(kind, ended.returncode, read(ended.stdout), first_verdict(folder / "report.md"), minutes)


def read(printed: bytes) -> dict[str, Any]:
    """The document of a walk; empty where it printed none."""
    try:
        found = json.loads(printed)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def first_verdict(report: Path) -> str:
    """The report's first verdict, as it stands there; empty where there is none."""
    if not report.exists():
        return ""
    lines = report.read_text(encoding="utf-8").split("\n")
    return next((line.replace("\\", "") for line in lines if line.startswith("**Verdict")), "")


def tell(walks: Sequence[Walked], again: Sequence[Walked]) -> int:
    """Counts with intervals, and what must not be; 1 where something is."""
    share(
        "walks whose report names the planted cause and a line of it", sum(w.names for w in walks), len(walks)
    )
    share("walks that prove it (cause-found, answers the same)", sum(w.proves for w in walks), len(walks))
    share("A/A walks that claim an effect", sum(bool(w.claims) for w in again), len(again))
    both = frozenset().union(*(w.claims for w in walks)) & frozenset().union(*(w.claims for w in again))
    print(f"claimed by walks: {told(claim for w in walks for claim in w.claims)}")
    print(f"claimed by A/A walks: {told(claim for w in again for claim in w.claims)}")
    print(f"claimed by both: {told(both)}")
    everyone = [*walks, *again]
    print(f"negative findings: {told(one for w in walks for one in w.negatives)}")
    without = sum(not w.negatives for w in everyone)
    cut = [w for w in everyone if not w.through]
    print(f"walks without a negative finding: {without} of {len(everyone)}; not through: {len(cut)}")
    minutes = sorted(w.minutes for w in everyone)
    if minutes:
        spread = f"lowest {minutes[0]:.1f}, highest {minutes[-1]:.1f}, n = {len(minutes)}"
        print(f"minutes a walk: median {median(minutes):.1f}, {spread}")
    return 1 if both or without or cut else 0


def share(what: str, hits: int, n: int) -> None:
    """A count with its interval."""
    if n:
        found = wilson_interval(hits, n)
        print(f"{what}: {hits} of {n} [{100 * found.low:.0f}, {100 * found.high:.0f}] %")


def told(texts: Any) -> str:
    """Each text once, with how often."""
    counts: dict[str, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    return "; ".join(f"{text} ({n})" for text, n in counts.items()) or "nothing"


if __name__ == "__main__":
    sys.exit(main())
