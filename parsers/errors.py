"""The one tree of errors that perfkit raises on purpose.

    PerfkitError            anything a user can act on; carries the exit code of the command
    ├── UsageError          2: the command line asks for something that cannot be
    │   └── NotPermitted    4: what it names is there, and this user may not look into it
    ├── UnreadableInput     2: a file that cannot be read as what it should be
    ├── InvalidMeasurement  4: the measurement or the environment means nothing
    └── StoreError          4: the investigation cannot be written or belongs to somebody else

A message says what is wrong, where (file, row, event) and what to try next, in one line. The command line
prints it without a traceback. Everything else that escapes is a fault of perfkit (exit 70).
"""

from __future__ import annotations


class PerfkitError(Exception):
    """Base of all errors that a user can act on; `exit_code` is what the command returns."""

    exit_code = 2


class UsageError(PerfkitError):
    """The command line asks for something that cannot be done."""


class NotPermitted(UsageError):
    """What the command line names is another user's, and may not be looked into."""

    exit_code = 4


class UnreadableInput(PerfkitError):
    """A file is not what it should be, and nothing in it could be read."""


class InvalidMeasurement(PerfkitError):
    """The measurement or the environment is invalid: there is no result."""

    exit_code = 4


class StoreError(PerfkitError):
    """The investigation folder cannot be written, is locked, or was made by something else."""

    exit_code = 4
