"""How far the bundled engine differs from itself, and how often an A/A claims that it does.

python -m benchmarks.ab_same [--times 20] [--pairs 4] [--seconds 5] [--write] [--folder DIR] [-- OPTION …]

Each time is `perfkit ab --a-a` as from a terminal, in an investigation of its own, so that none takes
another's floor; options behind -- go to it too. Whatever one claims is false. Prints a line for each and the
count of claims with its interval (Wilson); --write puts the table into docs/ab.md. Exits 1 where more than 3
of 20 claim something, or one could not be judged.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from benchmarks.page import described, place
from layers.evidence.statistics import wilson_interval
from parsers.children import child_command

PAGE = Path(__file__).parent.parent / "docs" / "ab.md"
CLAIMS = ("improvement", "regression")
MOST_CLAIMS_SHARE = 3 / 20


@dataclass(frozen=True, slots=True)
class Same:
    """One A/A: what it says of a change that there is not."""

    code: int
    document: dict[str, Any]

    @property
    def word(self) -> str:
        return str(self.document.get("verdict", {}).get("word", "failed"))

    @property
    def judged(self) -> bool:
        """Whether enough runs counted for a ratio."""
        return self._primary.get("ratio") is not None

    @property
    def claims(self) -> bool:
        return self.word in CLAIMS

    @property
    def cells(self) -> tuple[str, ...]:
        """Ratio with interval, pairs, starts, floor and what it could have seen, as they are printed."""
        p = self._primary
        if not self.judged:
            return (
                "not measured",
                "",
                str(p.get("n_pairs", 0)),
                str(p.get("n_starts", 0)),
                "",
                "",
                self.word,
            )
        interval = f"{p['low']:.4f} to {p['high']:.4f}" if p.get("low") is not None else "none"
        percents = (
            f"{p[name]:.2f} %" if p.get(name) is not None else "none" for name in ("floor_pct", "mde_pct")
        )
        return (f"{p['ratio']:.4f}", interval, str(p["n_pairs"]), str(p["n_starts"]), *percents, self.word)

    @property
    def _primary(self) -> dict[str, Any]:
        return self.document.get("primary") or {}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--write", action="store_true", help="put the table into docs/ab.md")
    parser.add_argument("--folder", type=Path, default=None, help="where investigations go; kept")
    parser.add_argument("options", nargs="*", help="behind --: for perfkit ab")
    asked = parser.parse_args()
    options = [f"--pairs={asked.pairs}", f"--seconds={asked.seconds:g}", *asked.options]
    folder = asked.folder or Path(mkdtemp(prefix="perfkit-same-"))
    machine, found = described(), []
    for number in range(asked.times):
        found.append(compared(folder / str(number + 1), options))
        print(number + 1, *found[-1].cells, sep="  ", flush=True)
    told = table(found, f"perfkit ab --a-a {' '.join(options)}", machine)
    print(f"\n{told}\ninvestigations in {folder}")
    if asked.write:
        place(PAGE, "same", told)
    claims = sum(one.claims for one in found)
    return 0 if claims <= MOST_CLAIMS_SHARE * len(found) and all(one.judged for one in found) else 1


def compared(folder: Path, options: Sequence[str]) -> Same:
    """One A/A; what it says on its way goes beside its investigation."""
    command = child_command(
        "perfkit.bootstrap:main", "ab", "--a-a", "--json", f"--investigation={folder}", *options
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".log").open("wb") as said:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, check=False
        )
    try:
        document = json.loads(ended.stdout)
    except ValueError:
        document = {}
    return Same(ended.returncode, document)


def table(found: Sequence[Same], command: str, machine: str) -> str:
    """The times in their order, and how many claim something."""
    head = ("#", "B over A", "95 % interval", "pairs", "starts", "A/A floor", "could have seen", "word")
    rows = [(str(i), *one.cells) for i, one in enumerate(found, 1)]
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
    claims = sum(one.claims for one in found)
    share = wilson_interval(claims, len(found))
    count = f"{claims} of {len(found)} claim a change [{100 * share.low:.0f}, {100 * share.high:.0f}] %"
    return "\n".join([f"`{command}`, throughput in requests/s; {machine} {count}.", "", *lines, ""])


if __name__ == "__main__":
    sys.exit(main())
