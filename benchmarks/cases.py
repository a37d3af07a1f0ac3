"""The five cases of docs/cases/ and two tutorials, made anew: what perfkit prints goes into the pages.

python -m benchmarks.cases [--only CASE] [--step NAME] [--keep FOLDER]

Each case is a page that a person wrote, with a place for each command. There its output goes as it was, with
the exit code, the machine and the load average before, and the figures that `perfkit report` makes of it. All
of it takes about twenty minutes on two cores that nobody else uses; beside other work the commands say so
themselves (PK312), and that is what then stands in the page.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.case_steps import CASES, SERVER, Case, Step
from benchmarks.closed_loop import served
from benchmarks.page import described, place

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SHOWN_ADDRESS = "http://127.0.0.1:30000"
COLUMNS = 100
PATH_DATA = re.compile(r' d="([^"]+)"')
LONG_FRACTION = re.compile(r"(\d+\.\d{2})\d+")


@dataclass(frozen=True, slots=True)
class Ran:
    """What a step printed, and beside what."""

    command: str
    output: str
    code: int
    machine: str
    figures: tuple[Path, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the pages of docs/cases/ anew.")
    parser.add_argument("--only", choices=[case.name for case in CASES], action="append")
    parser.add_argument("--step", help="this step alone")
    parser.add_argument("--keep", type=Path, help="a folder for the investigations")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for case in (case for case in CASES if not asked.only or case.name in asked.only):
            make(case, asked.step, (asked.keep or Path(folder)).resolve() / case.name)


def make(case: Case, only: str | None, folder: Path) -> None:
    page = DOCS / case.folder / f"{case.name}.md"
    for step in (step for step in case.steps if only in (None, step.name)):
        print(f"{case.name} {step.name}", flush=True)
        ran = run(case, step, folder / step.name)
        place(page, step.name, written(ran) if step.text else pictures(ran))


def run(case: Case, step: Step, folder: Path) -> Ran:
    """Run one step in a folder of its own, then write up what it recorded."""
    machine = f"Emulated device; {described()}" if step.measured else "Read from the file; nothing was run."
    with address(step) as url:
        arguments = [one.replace(SERVER, url) for one in step.arguments]
        done = perfkit([*arguments, "--investigation", str(folder)])
    shown = " ".join(("perfkit", *(quoted(one.replace(SERVER, SHOWN_ADDRESS)) for one in step.arguments)))
    output = without_places(done.stdout, folder).replace(url or SHOWN_ADDRESS, SHOWN_ADDRESS)
    served_by = f"$ perfkit engine serve {shlex.join(step.serve)} &\n" if step.serve else ""
    command = served_by + wrapped(f"$ {shown}")
    return Ran(command, output.rstrip(), done.returncode, machine, figures(case, step, folder))


def without_places(text: str, folder: Path) -> str:
    """A page says nothing of where this machine keeps recordings, perfkit and its Python."""
    for place_of in (folder, ROOT, Path(sys.prefix, "bin")):
        text = text.replace(f"{place_of}{os.sep}", "")
    return text


@contextmanager
def address(step: Step) -> Iterator[str]:
    """That of the server which the step asks, as long as it does; empty where it starts its own."""
    if not step.serve:
        yield ""
        return
    with served(*step.serve) as server:
        yield f"http://127.0.0.1:{server.port}"


def perfkit(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run it as users do: what a step launches finds `perfkit` and `python` on the path."""
    with tempfile.TemporaryDirectory() as programs:
        for name, call in {"perfkit": f"{sys.executable} -m perfkit", "python": sys.executable}.items():
            program = Path(programs, name)
            program.write_text(f'#!/bin/sh\nexec {call} "$@"\n')
            program.chmod(0o755)
        path = os.pathsep.join([programs, os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": str(COLUMNS)}
        command = [sys.executable, "-m", "perfkit", *arguments]
        return subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment, check=False
        )


def figures(case: Case, step: Step, folder: Path) -> tuple[Path, ...]:
    """Those of the report, under the names of the case."""
    if not step.figures:
        return ()
    perfkit(["report", "--investigation", str(folder)])
    beside = DOCS / case.folder / "figures"
    beside.mkdir(exist_ok=True)
    made = []
    for ending in step.figures:
        for drawn in sorted((folder / "figures").glob(f"*{ending}.svg")):
            path = beside / f"{case.name}-{step.name}{ending}.svg"
            path.write_text(smaller(drawn.read_text("utf-8")), encoding="utf-8")
            made.append(path)
    return tuple(made)


def smaller(svg: str) -> str:
    """Hundredths of a point are enough for the outlines of a drawing."""
    return PATH_DATA.sub(lambda data: LONG_FRACTION.sub(r"\1", data[0]), svg)


def written(ran: Ran) -> str:
    """What stands in the place of a step."""
    about = f"*Exit code {ran.code}. {ran.machine}*"
    return f"```text\n{ran.command}\n{ran.output}\n```\n\n{about}\n{pictures(ran)}"


def pictures(ran: Ran) -> str:
    return "".join(
        f"\n![{path.stem}, drawn by perfkit report](figures/{path.name})\n" for path in ran.figures
    )


def quoted(argument: str) -> str:
    return argument if re.fullmatch(r"[\w@%+=:,./-]+", argument) else f"'{argument}'"


def wrapped(command: str) -> str:
    """A long command over several lines, as a shell takes it; nothing inside quotes is broken."""
    lines = textwrap.wrap(
        command, COLUMNS - 4, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return " \\\n".join(lines) if all(line.count("'") % 2 == 0 for line in lines) else command


if __name__ == "__main__":
    main()
