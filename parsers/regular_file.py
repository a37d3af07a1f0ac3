"""The one way in which perfkit opens a file that a user named.

Pipes, sockets and devices are refused unopened: opening one may block for ever, and what it gives may never
end.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path


def open_regular(path: str | Path) -> BufferedReader:
    """The file, open for reading bytes. OSError, with what to do as its strerror, for what is no file."""
    try:
        mode = os.stat(path).st_mode
    except ValueError as error:  # a name that no file can have
        raise OSError(errno.EINVAL, str(error), path) from error
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder: name the files in it", path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a pipe or a device: save what it gives to a file first", path)
    return open(path, "rb")


def read_regular(path: str | Path) -> bytes:
    """All of the file; OSError as above."""
    with open_regular(path) as file:
        return file.read()
