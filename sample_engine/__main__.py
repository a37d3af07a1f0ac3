"""python -m sample_engine serve [options]: the engine as a server. `bench` starts one and measures it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from sample_engine.bench.command import BenchOptions, bench
from sample_engine.config.limits import LIMITS
from sample_engine.config.resolve import PREFIX, resolve
from sample_engine.config.switches import PRESETS
from sample_engine.config.values import SettingsError
from sample_engine.server.serve import ServeOptions, serve

EXIT_USAGE = 2
NEEDED = ("torch", "fastapi", "uvicorn", "multipart", "prometheus_client")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    given = _parser().parse_args(arguments)
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        print(f"sample_engine: not installed: {', '.join(missing)} (extra `engine`)", file=sys.stderr)
        return EXIT_USAGE
    try:
        return _COMMANDS[given.command](given)
    except (SettingsError, OSError) as error:
        print(f"sample_engine: {error}", file=sys.stderr)
        return EXIT_USAGE


def _serve(given: argparse.Namespace) -> int:
    where = ServeOptions(given.host, given.port, given.start_method, given.allow_profilers)
    return serve(resolve(given.config, os.environ, _options(given)), where)


def _bench(given: argparse.Namespace) -> int:
    """Settings are checked here, before anything starts; the server gets them as they were given."""
    resolve(given.config, os.environ, _options(given))
    one_valued = {f"--{name}": getattr(given, name) for name in ("pipeline", "preset", "limits", "config")}
    server = [f"{name}={value}" for name, value in one_valued.items() if value is not None]
    server += [f"--set={one}" for one in given.set]
    return bench(BenchOptions(server, given.requests, given.concurrency, given.json))


_COMMANDS = {"serve": _serve, "bench": _bench}


def _options(given: argparse.Namespace) -> dict[str, object]:
    """Settings by their flat names."""
    options = {name: value for name in ("pipeline", "preset", "limits") if (value := getattr(given, name))}
    for one in given.set:
        name, equals, value = one.partition("=")
        if not equals:
            raise SettingsError(f"--set takes NAME=VALUE, not {one!r}")
        options[name] = value
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sample_engine", description="The bundled speech engine.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    served = commands.add_parser("serve", help="Serve over HTTP.")
    plain = ServeOptions()
    _add_settings(served)
    served.add_argument("--host", default=plain.host)
    served.add_argument("--port", type=int, default=plain.port, help="0 takes a free one")
    served.add_argument("--start-method", choices=("fork", "spawn"), default=plain.start_method)
    served.add_argument("--allow-profilers", action="store_true", help="let this user's processes trace it")
    benched = commands.add_parser("bench", help="Start a server, load it, print one table.")
    usual = BenchOptions()
    _add_settings(benched)
    benched.add_argument("--requests", type=_count, default=usual.requests)
    benched.add_argument("--concurrency", type=_count, default=usual.concurrency, help="of the closed loop")
    benched.add_argument("--json", action="store_true")
    return parser


def _add_settings(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--pipeline", choices=("tts", "asr"))
    add("--preset", choices=tuple(PRESETS))
    add("--limits", choices=tuple(LIMITS))
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="any setting; may be repeated")
    add("--config", type=Path, metavar="FILE", help=f"a TOML file; {PREFIX}NAME and options overrule it")


def _count(text: str) -> int:
    """At least one."""
    if (number := int(text)) < 1:
        raise ValueError
    return number


if __name__ == "__main__":
    sys.exit(main())
