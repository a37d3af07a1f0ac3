"""Pins: what requirement files ask for, against what is installed, by the rules of PEP 440 and PEP 508.

Read are `[project] dependencies` of pyproject.toml, requirements*.txt with the files that they include, and
uv.lock. A requirement whose marker does not hold for the service's interpreter asks for nothing. Lines that
are no requirements (addresses, options) are left out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from parsers.errors import UnreadableInput
from parsers.regular_file import read_regular

PATTERNS = ("pyproject.toml", "requirements*.txt", "uv.lock")
INCLUDES = ("-r ", "--requirement ", "-c ", "--constraint ")
MAX_DEPTH = 5
"""Files that include files."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A file asks for a package in some versions ("==2.6.0"); of several, as in a lock, any will do."""

    file: str
    name: str
    any_of: tuple[str, ...]

    @property
    def wanted(self) -> str:
        return " or ".join(self.any_of)


@dataclass(frozen=True, slots=True)
class PinCheck:
    """A pin against what is installed."""

    pin: Pin
    installed: str
    kept: bool


def find_pin_files(folder: Path) -> list[Path]:
    """Files of a folder that may hold pins."""
    return sorted(path for pattern in PATTERNS for path in folder.glob(pattern) if path.is_file())


def read_pins(path: Path, markers: Mapping[str, str]) -> list[Pin]:
    """All pins of a file that hold for these markers; UnreadableInput where it cannot be read."""
    try:
        if path.suffix == ".txt":
            return list(_requirements(path, markers, 0))
        document = tomllib.loads(read_regular(path).decode())
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UnreadableInput(f"{path}: {error}") from error
    return list(
        _locked(path, document, markers) if path.suffix == ".lock" else _project(path, document, markers)
    )


def check_pins(pins: Iterable[Pin], installed: Mapping[str, str]) -> list[PinCheck]:
    """Each pin of a package that is installed, kept or not; `installed` is version by canonical name.

    A package that is not installed is no broken pin: extras and other platforms leave many out.
    """
    present = [(pin, installed[pin.name]) for pin in pins if pin.name in installed]
    return [
        PinCheck(pin, version, any(_fits(version, one) for one in pin.any_of)) for pin, version in present
    ]


def _fits(version: str, specifiers: str) -> bool:
    try:
        return SpecifierSet(specifiers).contains(Version(version), prereleases=True)
    except (InvalidVersion, InvalidSpecifier):  # a version of no known scheme can only be equal
        return specifiers == f"=={version}"


def _project(path: Path, document: Mapping[str, Any], markers: Mapping[str, str]) -> Iterator[Pin]:
    for line in document.get("project", {}).get("dependencies", ()):
        yield from _pin(path, str(line), markers)


def _requirements(path: Path, markers: Mapping[str, str], depth: int) -> Iterator[Pin]:
    text = read_regular(path).decode(errors="replace")
    for raw in text.replace("\\\n", " ").splitlines():
        line = raw.partition(" #")[0].partition(" --hash")[0].strip()
        if line.startswith(INCLUDES) and depth < MAX_DEPTH:
            included = path.parent / line.split(maxsplit=1)[1]
            if included.is_file():
                yield from _requirements(included, markers, depth + 1)
        elif line and not line.startswith(("#", "-")):
            yield from _pin(path, line, markers)


def _pin(path: Path, line: str, markers: Mapping[str, str]) -> Iterator[Pin]:
    try:
        wanted = Requirement(line)
    except InvalidRequirement:
        return
    if wanted.specifier and (wanted.marker is None or wanted.marker.evaluate({**markers, "extra": ""})):
        yield Pin(str(path), canonicalize_name(wanted.name), (str(wanted.specifier),))


def _locked(path: Path, document: Mapping[str, Any], markers: Mapping[str, str]) -> Iterator[Pin]:
    versions: dict[str, list[str]] = {}
    for package in document.get("package", ()):
        forks = package.get("resolution-markers", ())
        if "version" in package and (not forks or any(_holds(fork, markers) for fork in forks)):
            versions.setdefault(canonicalize_name(package["name"]), []).append(f"=={package['version']}")
    yield from (Pin(str(path), name, tuple(any_of)) for name, any_of in versions.items())


def _holds(marker: str, markers: Mapping[str, str]) -> bool:
    try:
        return Marker(marker).evaluate({**markers, "extra": ""})
    except InvalidMarker:
        return True
