"""python -m sample_engine serve [options]: the engine as a server."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

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
    where = ServeOptions(given.host, given.port, given.start_method, given.allow_profilers)
    try:
        return serve(resolve(given.config, os.environ, _options(given)), where)
    except (SettingsError, OSError) as error:
        print(f"sample_engine: {error}", file=sys.stderr)
        return EXIT_USAGE


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
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add = commands.add_parser("serve", help="Serve over HTTP.").add_argument
    plain = ServeOptions()
    add("--pipeline", choices=("tts", "asr"))
    add("--preset", choices=tuple(PRESETS))
    add("--limits", choices=tuple(LIMITS))
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="any setting; may be repeated")
    add("--config", type=Path, metavar="FILE", help=f"a TOML file; {PREFIX}NAME and options overrule it")
    add("--host", default=plain.host)
    add("--port", type=int, default=plain.port, help="0 takes a free one")
    add("--start-method", choices=("fork", "spawn"), default=plain.start_method)
    add("--allow-profilers", action="store_true", help="let any process of this user trace the engine")
    return parser


if __name__ == "__main__":
    sys.exit(main())
