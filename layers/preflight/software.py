"""The service's Python environment as facts: versions, broken pins, and what editable packages really run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from layers.collectors.bounded import ProbeFailed
from layers.preflight.checkouts import Checkout, moved_on, read_checkout
from layers.preflight.facts import Gathering, Section
from layers.preflight.packages import Package, PythonEnvironment, list_packages
from layers.preflight.pins import PinCheck, check_pins, find_pin_files, read_pins
from parsers.errors import UnreadableInput

PYTHON, PACKAGES, EDITABLE = "python", "packages", "editable packages"


@dataclass(frozen=True, slots=True)
class EditablePackage:
    """One editable install. `checkout` is None where git gave no answer, with the reason in `problem`.

    `moved`: whether the commit that its version names is another than the one that runs; None where the
    version names none.
    """

    package: Package
    checkout: Checkout | None
    moved: bool | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Software:
    """What was found of one interpreter. `problem` says why there is nothing."""

    environment: PythonEnvironment | None
    editables: tuple[EditablePackage, ...] = ()
    pins: tuple[PinCheck, ...] = ()
    unread: tuple[str, ...] = ()
    problem: str = ""


def read_software(python: str, folder: Path, pin_files: Sequence[Path] = ()) -> Software:
    """Ask an interpreter; pins are those of `pin_files`, else of `folder` and of every editable checkout."""
    try:
        environment = list_packages(python)
    except ProbeFailed as error:
        return Software(None, problem=str(error))
    editables = tuple(_editable(package) for package in environment.packages if package.editable)
    files = list(pin_files) or _pin_files(folder, editables)
    unread: list[str] = []
    pins = tuple(_checked(files, environment, unread))
    return Software(environment, editables, pins, tuple(unread))


def software_sections(software: Software) -> list[Section]:
    """The interpreter, its packages, and its editable ones."""
    environment = software.environment
    if environment is None:
        return [Section(PYTHON, {}, {"packages": software.problem})]
    python = {"executable": environment.executable, "version": environment.version}
    versions = {package.name: _version(package) for package in environment.packages if not package.editable}
    return [
        Section(PYTHON, {**python}),
        Section(PACKAGES, {**versions}),
        _editable_section(software.editables),
    ]


def _editable(package: Package) -> EditablePackage:
    folder = package.checkout
    assert folder is not None
    try:
        checkout = read_checkout(folder)
    except ProbeFailed as error:
        return EditablePackage(package, None, None, str(error))
    return EditablePackage(package, checkout, moved_on(package.version, checkout))


def _editable_section(editables: Iterable[EditablePackage]) -> Section:
    facts = Gathering(EDITABLE)
    for editable in editables:
        name, checkout = editable.package.name, editable.checkout
        facts.know(f"{name} installed as", editable.package.version)
        if checkout is None:
            facts.miss(f"{name} runs", editable.problem)
            continue
        facts.know(f"{name} runs", checkout.label)
        facts.know(f"{name} branch", checkout.branch)
        facts.know(f"{name} from", checkout.folder)
    return facts.section()


def _version(package: Package) -> str:
    return f"{package.version} at {package.commit}" if package.commit else package.version


def _pin_files(folder: Path, editables: Iterable[EditablePackage]) -> list[Path]:
    checkouts = [Path(one.checkout.folder) for one in editables if one.checkout]
    return [file for place in dict.fromkeys([folder, *checkouts]) for file in find_pin_files(place)]


def _checked(files: Iterable[Path], environment: PythonEnvironment, unread: list[str]) -> Iterator[PinCheck]:
    installed = {str(canonicalize_name(one.name)): one.version for one in environment.packages}
    for file in files:
        try:
            yield from check_pins(read_pins(file, environment.markers), installed)
        except UnreadableInput as error:
            unread.append(str(error))
