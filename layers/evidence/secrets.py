"""Keeps secrets out of what is recorded: by the name that stands before a value, not by how the value looks.

Masked are `--api-key VALUE`, `--password=VALUE`, `HF_TOKEN=VALUE`, `?key=VALUE` and `"token": "VALUE"`, what
follows Bearer or Basic, and user and password in an address. A secret that stands under no such name is not
found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"

SECRET = re.compile(
    r"(?i)(?<!radix)(^|[_\-.])(api|admin|access|auth|private|secret|ssl|hf)?_?"
    r"(key|keys|token|secret|secrets|password|passwd|passphrase|pwd|credential|credentials|authorization|auth"
    r"|signature)$"
)
"""Names whose value is a secret. `radix_key` is the bundled engine's switch for where a key is hashed."""
CREDENTIALS = re.compile(r"//[^\s/@]*(:[^\s@]*)?@")
"""User and password in an address."""
SCHEME = re.compile(r"(?i)\b(bearer|basic)(\s+)[^\s\"']+")
NAMED = re.compile(r"([\w.-]+)(=|[\"']?:\s*[\"']?)([^\s&\"',;]+)")
PARAMETER = re.compile(r"(?<=[?&])([\w.-]+)(=)([^\s&\"',;]+)")
"""Of an address."""
OPTION = re.compile(r"(?<!\S)(--?[\w-]+)(\s+)([^\s-]\S*)")
"""An option and its value inside one text, such as the command of --launch."""


def masked_addresses(text: str) -> str:
    """The text with a mask in the place of each secret in an address; for messages, whose words are ours."""
    return PARAMETER.sub(_mask_value, CREDENTIALS.sub(f"//{MASK}@", text))


def masked_text(text: str) -> str:
    """The text with a mask in the place of each secret."""
    text = SCHEME.sub(rf"\1\2{MASK}", CREDENTIALS.sub(f"//{MASK}@", text))
    return OPTION.sub(_mask_value, NAMED.sub(_mask_value, text))


def masked_arguments(arguments: Iterable[str]) -> tuple[str, ...]:
    """The arguments of a command with a mask in the place of each secret."""
    masked: list[str] = []
    named = False
    for argument in arguments:
        masked.append(MASK if named and not argument.startswith("-") else masked_text(argument))
        named = argument.startswith("-") and SECRET.search(argument.lstrip("-")) is not None
    return tuple(masked)


def _mask_value(found: re.Match[str]) -> str:
    name, between, value = found.groups()
    return f"{name}{between}{MASK if SECRET.search(name.lstrip('-')) else value}"
