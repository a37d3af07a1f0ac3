"""Kernel names as people read them: short in a sentence, and never two alike in a table.

A full name holds return type, template arguments and parameters; without them most are plain. Some names say
nothing by themselves (`elementwise_kernel`, `cutlass::Kernel2`): what they run is a template argument, which
then stands for them. In a table, names that are shortened alike get the place where they differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from layers.evidence.wording import cut_middle

SHORT_NAME_CHARACTERS = 60
TELLING_CHARACTERS = 16
"""Of the place where two names differ."""

GENERIC = re.compile(
    r"(^|::)(Kernel2?|device_kernel|\w*elementwise_kernel\w*|reduce_kernel|multi_tensor_apply_kernel)$"
)
"""Kernels that run whatever they are given: CUTLASS's, and those of PyTorch's iterators."""
TELLING = re.compile(
    r"\b(cutlass_\w+|\w*functor\w*|\w+Ops|\w+_cuda(_kernel)?|\w*KernelImpl|\w+_kernel(_impl)?)\b",
    re.IGNORECASE,
)
"""Template arguments that say what such a kernel runs."""
WRAPPERS = re.compile(r"(A?B?(Unary|Binary)Functor|gpu_kernel\w*|gpu_index_kernel|opmath_\w+)", re.IGNORECASE)
"""Arguments that look alike and only hold the telling one."""


def short_name(name: str) -> str:
    """A kernel's name without return type, parameters and all template arguments but the telling one of a
    generic name; long ones are cut in the middle."""
    plain = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    end = min((at for at in (plain.find("<"), plain.find("(")) if at > 0), default=len(plain))
    base, arguments = plain[:end].strip(), plain[end:]
    telling = _telling(arguments) if GENERIC.search(base) else ""
    return cut_middle(_with_telling(base, telling) if telling else base, SHORT_NAME_CHARACTERS)


def _telling(arguments: str) -> str:
    words = (found[0] for found in TELLING.finditer(arguments))
    return next((word for word in words if not WRAPPERS.fullmatch(word)), "")


def _with_telling(base: str, telling: str) -> str:
    """CUTLASS's argument is a whole name; others need the kernel's own beside them, without namespaces."""
    return telling if telling.startswith("cutlass_") else f"{base.rsplit('::', 1)[-1]}<{telling}>"


def distinct_names(names: Sequence[str], characters: int) -> list[str]:
    """The names of a table's rows in at most so many characters; different names stay different."""
    shown = {name: cut_middle(short_name(name), characters) for name in names}
    for _ in range(2):
        for alike in _alike(shown):
            at = _difference(alike)
            shown |= {name: _at_difference(name, at, characters) for name in alike}
    for alike in _alike(shown):
        shown |= {name: f"{shown[name][: characters - 4]} #{n}" for n, name in enumerate(alike, start=1)}
    return [shown[name] for name in names]


def _alike(shown: dict[str, str]) -> list[list[str]]:
    """The groups of different names that are shown alike."""
    groups: dict[str, list[str]] = {}
    for name, text in shown.items():
        groups.setdefault(text, []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def _difference(names: Sequence[str]) -> int:
    """Where the first word begins that is not the same in all names."""
    letters = enumerate(zip(*names, strict=False))
    at = next((i for i, here in letters if len(set(here)) > 1), min(map(len, names)))
    before = re.search(r"[A-Za-z0-9]*$", names[0][:at])
    return before.start() if before else at


def _at_difference(name: str, at: int, characters: int) -> str:
    telling, short = name[at : at + TELLING_CHARACTERS].strip(" ,"), short_name(name)
    room = characters - len(telling) - 1
    base = short if len(short) <= room else short.rsplit("::", 1)[-1]
    return f"{cut_middle(base, room)}…{telling}"
