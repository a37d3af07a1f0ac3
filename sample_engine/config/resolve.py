"""Settings from a file, the environment and options; later ones win, and each value knows its source.

Inside one source, the bundles `preset` (six switches) and `limits` (three) are applied first, then single
names. So `--preset baseline` on the command line overrules a switch in the file, and
`--preset baseline --set cuda_graph=on` is the baseline with a graph.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from sample_engine.config.limits import LIMITS, Limits
from sample_engine.config.settings import NEEDS_RESTART, Settings
from sample_engine.config.switches import PRESETS, Switches
from sample_engine.config.values import GROUP_OF, GROUPS, TYPES, SettingsError, value_of

PREFIX = "SAMPLE_ENGINE_"
"""Of environment variables: SAMPLE_ENGINE_LOOKAHEAD=off."""
Record = TypeVar("Record", Settings, Switches, Limits)
_BUNDLES: dict[str, Mapping[str, object]] = {"preset": PRESETS, "limits": LIMITS}
_FIELD_OF_BUNDLE = {"preset": "switches", "limits": "limits"}


@dataclass(frozen=True, slots=True)
class Resolved:
    """The settings, and for each flat name that somebody set, who did."""

    settings: Settings
    sources: Mapping[str, str]


def resolve(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> Resolved:
    """Defaults, then file, environment, options. Raises SettingsError, which names the source."""
    resolved = Resolved(Settings(), {})
    if file is not None:
        resolved = with_source(resolved, _from_file(file), f"file {file}")
    named = _from_environment(environment or {})
    resolved = with_source(resolved, named, "environment")
    return with_source(resolved, options or {}, "option")


def with_source(resolved: Resolved, given: Mapping[str, object], source: str) -> Resolved:
    """The settings after one more source."""
    try:
        settings, changed = _apply(resolved.settings, given)
    except SettingsError as error:
        raise SettingsError(f"{source}: {error}") from None
    return Resolved(settings, {**resolved.sources, **dict.fromkeys(changed, source)})


def flat(settings: Settings) -> dict[str, object]:
    """Every setting by its flat name."""
    values = asdict(settings)
    groups = [values.pop(group) for group in GROUPS]
    return {**values, **{name: value for group in groups for name, value in group.items()}}


def bundles() -> dict[str, dict[str, dict[str, object]]]:
    """What each value of a bundle's name stands for, by flat names."""
    presets = {value: asdict(switches) for value, switches in PRESETS.items()}
    return {"preset": presets, "limits": {value: asdict(limits) for value, limits in LIMITS.items()}}


def restart_reasons(old: Settings, new: Settings) -> dict[str, str]:
    """Why a running server cannot become the new one, for each setting that stands in the way."""
    before, after = flat(old), flat(new)
    return {name: why for name, why in NEEDS_RESTART.items() if before[name] != after[name]}


def _apply(settings: Settings, given: Mapping[str, object]) -> tuple[Settings, list[str]]:
    changed: list[str] = []
    for bundle in _BUNDLES.keys() & given.keys():
        settings = _replaced(settings, _FIELD_OF_BUNDLE[bundle], _bundle(bundle, given[bundle]))
        changed += [name for name, group in GROUP_OF.items() if group == _FIELD_OF_BUNDLE[bundle]]
    for name in given.keys() - _BUNDLES.keys():
        settings = _with_one(settings, name, value_of(name, given[name]))
        changed.append(name)
    return settings, changed


def _bundle(name: str, given: object) -> object:
    bundles = _BUNDLES[name]
    if given not in bundles:
        raise SettingsError(f"{name} cannot be {given!r}: one of {', '.join(bundles)}")
    return bundles[str(given)]


def _with_one(settings: Settings, name: str, value: object) -> Settings:
    group = GROUP_OF.get(name)
    if group is None:
        return _replaced(settings, name, value)
    return _replaced(settings, group, _replaced(getattr(settings, group), name, value))


def _replaced(record: Record, field: str, value: Any) -> Record:
    """A copy with one field changed; the value was checked by name already."""
    return replace(record, **{field: value})


def _from_file(file: Path) -> Mapping[str, object]:
    """A flat TOML file: `lookahead = true`."""
    try:
        return tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"file {file}: {error}") from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    known = TYPES.keys() | _BUNDLES.keys()
    names = {PREFIX + name.upper(): name for name in known}
    return {names[key]: value for key, value in environment.items() if key in names}
