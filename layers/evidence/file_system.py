"""Which SQLite journal suits the file system that a folder lies on.

SQLite's write-ahead log (WAL) needs memory that every process with the file open can map, and no network file
system gives that to two machines (sqlite.org/wal.html). So WAL is used only on file systems known to be
local; everywhere else the rollback journal is, which is right on all of them and merely lets writers wait for
readers.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

MOUNT_TABLE = Path("/proc/self/mountinfo")

LOCAL_TYPES = frozenset(
    ("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs")
)
"""Types that live on this machine alone. nfs, cifs, smb3, 9p, lustre, gpfs, ceph, virtiofs and all that FUSE
serves (fuse.sshfs, fuse.gcsfuse) are not among them, nor is a type that nobody has heard of yet."""


class Journal(StrEnum):
    """How SQLite keeps a transaction whole; the values are those of `PRAGMA journal_mode`."""

    WAL = "wal"
    ROLLBACK = "delete"


def journal_for(folder: Path) -> Journal:
    """The journal for a database in this folder; rollback where the mount table cannot be read."""
    try:
        mounts = MOUNT_TABLE.read_text("utf-8", "surrogateescape")
    except OSError:  # no Linux, or no /proc: nothing is known
        return Journal.ROLLBACK
    return Journal.WAL if file_system_of(folder.resolve(), mounts) in LOCAL_TYPES else Journal.ROLLBACK


def file_system_of(folder: Path, mounts: str) -> str:
    """Type of the file system that holds an absolute path, by a table like that of proc_pid_mountinfo(5).

    It is the mount point with the longest path; of several on one point, the last mounted. Empty: none
    matches.
    """
    best, found = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        point = Path(_unescape(left.split(" ")[4]))
        if folder.is_relative_to(point) and len(point.parts) >= best:
            best, found = len(point.parts), right.split(" ")[0]
    return found


def _unescape(text: str) -> str:
    r"""Blanks, tabs, newlines and backslashes stand as \040, \011, \012 and \134."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
