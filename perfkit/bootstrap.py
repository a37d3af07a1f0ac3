"""Makes perfkit import its own packages, whatever else is called `layers` or `reports` on this machine.

perfkit's five top-level names are generic, so PYTHONPATH or the current folder may hold a package of the
same name. Importing this file puts a finder in front of all others; it resolves the five names in the one
folder that holds perfkit itself and nowhere else, and forgets foreign ones that were imported before. What
it cannot resolve there ends the program with one line and exit code 2.

The file stands alone (standard library only, run by its path) since it also starts every child process:

    python -P …/perfkit/bootstrap.py module:function [argument …]

imports the module and calls the function, which finds its arguments in sys.argv. `parsers.children` builds
that command line. Processes that multiprocessing spawns are safe too: they import the main module, and so
this file.

It also opens the null device in place of a standard stream that is closed (cron jobs and daemons run so), so
that nobody else has to ask whether there is one, and no file of a user comes to be number 2.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import NoReturn

OWN_PACKAGES = ("perfkit", "layers", "parsers", "reports", "sample_engine")

HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
"""The folder that holds all five packages: site-packages, or the root of a clone."""

STANDARD_STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}
"""In the order of their numbers."""

COLLECT_AFTER = 50_000
"""New objects between two garbage collections. Python's 700 has it walk all modules again while more
are imported, a tenth of the time that a command takes to start, and finds nothing: modules stay."""

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class OwnPackages:
    """Finds the five packages in `HOME`; every other name is left to the finders behind it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return _own_spec(fullname) if fullname in OWN_PACKAGES else None


def install() -> None:
    """Put the finder first, once, and forget foreign packages; SystemExit(2) if an own one is missing."""
    for name in OWN_PACKAGES:
        _own_spec(name)
        if name in sys.modules and not _is_own(sys.modules[name]):
            _forget(name)
    if not any(isinstance(finder, OwnPackages) for finder in sys.meta_path):
        sys.meta_path.insert(0, OwnPackages())


def open_closed_streams() -> None:
    """Open the null device for each standard stream that is closed; children inherit it."""
    for name, mode in STANDARD_STREAMS.items():
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)  # the lowest free one, which is that of the stream
            os.set_inheritable(number, True)
            stream = open(number, mode, closefd=False)  # noqa: SIM115  (it stays open as long as the program)
            setattr(sys, name, stream)


def main() -> int:
    """The console script. SIGTERM ends it as Ctrl-C does, unless it was started to ignore it."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from perfkit.cli.app import main as run
    except KeyboardInterrupt:
        sys.stderr.write("perfkit: interrupted\n")
        return EXIT_INTERRUPTED
    return run(sys.argv[1:])


def run_child(arguments: Sequence[str]) -> int | None:
    """Call `module:function` with the rest of the arguments as its sys.argv[1:]; returns what it returns."""
    target = arguments[0] if arguments else ""
    module, _, function = target.partition(":")
    if not (module and function):
        _fail("the child program takes module:function and its arguments")
    sys.argv = list(arguments)
    try:
        code: int | None = getattr(import_module(module), function)()
        return code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _own_spec(name: str) -> ModuleSpec:
    spec = PathFinder.find_spec(name, [HOME])
    if spec is None or spec.origin is None:  # without an origin it is a folder without __init__.py
        _fail(f"its package {name!r} is missing from {HOME}{_shadow(name)}: reinstall perfkit")
    return spec


def _shadow(name: str) -> str:
    """Which foreign package would be taken instead, if any."""
    spec = PathFinder.find_spec(name)
    return f", and {spec.origin} would be taken for it" if spec and spec.origin else ""


def _is_own(module: ModuleType) -> bool:
    path = getattr(module, "__file__", None)
    return path is not None and os.path.dirname(os.path.dirname(os.path.realpath(path))) == HOME


def _forget(name: str) -> None:
    for loaded in [m for m in sys.modules if m == name or m.startswith(name + ".")]:
        del sys.modules[loaded]


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"perfkit: {message}\n")
    raise SystemExit(EXIT_USAGE)


gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
open_closed_streams()
install()

if __name__ == "__main__":
    sys.exit(run_child(sys.argv[1:]))
