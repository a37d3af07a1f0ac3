"""What decoding JSON raises for a text that somebody else wrote and that is not what it should be.

msgspec has an error of its own for most of it; text that is no UTF-8, and values that are nested a thousand
deep, raise those of Python.
"""

from __future__ import annotations

import msgspec

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
