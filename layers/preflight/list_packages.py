"""Lists the packages that a Python interpreter sees, for pre-flight: run by that interpreter, not by perfkit.

    PYTHON list_packages.py

Standard library only, for any Python from 3.8 on, since an engine's environment is not perfkit's. Writes one
JSON document to stdout. Nothing is imported: the finders are asked where an editable package runs from.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from typing import Any


def main() -> None:
    # The folder of this file is first on the path of a script; its neighbours are nobody's packages.
    sys.path.pop(0)
    document = {
        "executable": sys.executable,
        "version": platform.python_version(),
        "markers": markers(),
        "packages": packages(),
    }
    json.dump(document, sys.stdout)


def markers() -> dict[str, str]:
    """The variables of PEP 508 that depend on the interpreter."""
    return {
        "implementation_name": sys.implementation.name,
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "python_full_version": platform.python_version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "sys_platform": sys.platform,
    }


def packages() -> list[dict[str, Any]]:
    """One entry per name. A stale *.egg-info in a source folder loses to what pip installed."""
    found: dict[str, dict[str, Any]] = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name is None:
            continue
        entry = describe(distribution, name)
        key = normal(name)
        if key not in found or (entry["installed"] and not found[key]["installed"]):
            found[key] = entry
    return [found[key] for key in sorted(found)]


def describe(distribution: importlib.metadata.Distribution, name: str) -> dict[str, Any]:
    direct = json.loads(distribution.read_text("direct_url.json") or "{}")
    folder = getattr(distribution, "_path", "")
    editable = bool(direct.get("dir_info", {}).get("editable"))
    return {
        "name": name,
        "version": distribution.version,
        "installed": str(folder).endswith(".dist-info"),
        "url": direct.get("url", ""),
        "editable": editable,
        "commit": direct.get("vcs_info", {}).get("commit_id", ""),
        "runs_from": runs_from(distribution, name) if editable else "",
    }


def runs_from(distribution: importlib.metadata.Distribution, name: str) -> str:
    """Where `import` would take the package from now, without importing it."""
    listed = (distribution.read_text("top_level.txt") or "").split()
    for module in listed or [normal(name).replace("-", "_")]:
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            continue
        if spec is not None:
            places = list(spec.submodule_search_locations or ()) or [spec.origin or ""]
            return places[0]
    return ""


def normal(name: str) -> str:
    """PEP 503."""
    return "-".join(part for part in name.lower().replace("_", "-").replace(".", "-").split("-") if part)


if __name__ == "__main__":
    main()
