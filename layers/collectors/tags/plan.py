"""What is to be tagged, as typed: `--tag schedule=pkg.mod:Class.method` and `--batch 'len(batch.reqs)'`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from parsers.errors import UsageError

TAG = re.compile(r"(?P<name>[A-Za-z_][\w.\-]*)=(?P<module>[A-Za-z_][\w.]*):(?P<attribute>[A-Za-z_][\w.]*)")
BATCH_OF_TAG = re.compile(r"(?P<name>[A-Za-z_][\w.\-]*)=(?!=)(?P<expression>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tag:
    """One function: `attribute` of `module`, ranges called `name`; `batch` is an expression or empty."""

    name: str
    module: str
    attribute: str
    batch: str = ""

    @property
    def target(self) -> str:
        return f"{self.module}:{self.attribute}"


def plan_tags(tags: Sequence[str], batches: Sequence[str]) -> list[Tag]:
    """The tags with their batch expressions.

    `TAG=EXPR` belongs to the tag of that name, any other expression to every tag without one. Raises
    UsageError for a tag that is none, two of one name, or an expression that nothing uses.
    """
    if not tags:
        raise UsageError("name what to tag: perfkit run --tag schedule=pkg.mod:Class.method -- COMMAND")
    planned = [_tag(text) for text in tags]
    names = [tag.name for tag in planned]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"two tags are called {repeated.pop()}: a name stands for one function")
    own, common = _split(batches, names)
    return [Tag(tag.name, tag.module, tag.attribute, own.get(tag.name, common)) for tag in planned]


def configuration(tags: Sequence[Tag], report: str) -> dict[str, Any]:
    """What the injected file reads from its environment variable."""
    return {"tags": [asdict(tag) for tag in tags], "report": report}


def _tag(text: str) -> Tag:
    found = TAG.fullmatch(text)
    if found is None:
        raise UsageError(f"--tag {text}: write NAME=MODULE:FUNCTION, such as schedule=pkg.mod:Class.method")
    return Tag(found["name"], found["module"], found["attribute"])


def _split(batches: Sequence[str], names: Sequence[str]) -> tuple[dict[str, str], str]:
    """Expressions by tag, and the one for all others."""
    own: dict[str, str] = {}
    common = ""
    for text in batches:
        found = BATCH_OF_TAG.fullmatch(text)
        if found is not None and found["name"] in names:
            own[found["name"]] = found["expression"]
        elif common:
            raise UsageError(f"--batch {text}: a second expression for all tags; write TAG=EXPRESSION")
        else:
            common = text
    if common and len(own) == len(names):
        raise UsageError(f"--batch {common}: every tag has an expression of its own")
    return own, common
