"""The state of a git checkout: the commit that really runs, and a hash of what differs from it.

PEP 610 forbids installers to record the commit of a local checkout, so an editable package knows only the
version of the day on which it was installed. Git is asked in the folder that the package is imported from; no
hook, filter program or file watcher of the repository is run.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from layers.collectors.bounded import ProbeFailed, output_of

GIT_TIMEOUT_S = 20.0
GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*")
HASHED_FILE_BYTES = 1 << 20
"""Of an untracked file that is longer, the size alone goes into the hash."""
SHORT_HASH = 12

COMMIT_IN_VERSION = re.compile(r"\+.*?\bg?([0-9a-f]{7,40})\b")
"""setuptools-scm and versioneer put the commit behind the plus sign: 1.2.dev3+g1a2b3c4d."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """What is checked out. `dirty_hash`: of what differs from it, untracked files too; empty: clean."""

    folder: str
    commit: str
    branch: str
    changed: int
    untracked: int
    dirty_hash: str

    @property
    def label(self) -> str:
        """Commit and state in one word, as `git describe --dirty` has it but with the hash of the changes."""
        commit = self.commit[:SHORT_HASH]
        return f"{commit}-dirty-{self.dirty_hash[:SHORT_HASH]}" if self.dirty_hash else commit


def read_checkout(folder: Path) -> Checkout:
    """Ask git; ProbeFailed where this is no work tree, or git does not answer."""
    top = Path(_git(folder, "rev-parse", "--show-toplevel").decode().rstrip("\n"))
    tracked = _git(top, "status", "--porcelain", "--untracked-files=no").splitlines()
    untracked = [name for name in _git(top, "ls-files", "-zo", "--exclude-standard").split(b"\0") if name]
    return Checkout(
        folder=str(top),
        commit=_git(top, "rev-parse", "HEAD").decode().strip(),
        branch=_git(top, "rev-parse", "--abbrev-ref", "HEAD").decode().strip(),
        changed=len(tracked),
        untracked=len(untracked),
        dirty_hash=_hash(top, untracked) if tracked or untracked else "",
    )


def moved_on(version: str, checkout: Checkout) -> bool | None:
    """Whether a version that names a commit names another one; None where it names none."""
    named = COMMIT_IN_VERSION.search(version)
    return None if named is None else not checkout.commit.startswith(named[1])


def _hash(top: Path, untracked: list[bytes]) -> str:
    digest = hashlib.sha256(_git(top, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv"))
    for name in sorted(untracked):
        digest.update(b"\0" + name + b"\0" + _content(top / os.fsdecode(name)))
    return digest.hexdigest()


def _content(path: Path) -> bytes:
    """What an untracked file adds to the hash."""
    if path.is_symlink() or not path.is_file():
        return os.readlink(path).encode() if path.is_symlink() else b""
    size = path.stat().st_size
    return path.read_bytes() if size <= HASHED_FILE_BYTES else str(size).encode()


def _git(folder: Path, *arguments: str) -> bytes:
    where = folder.parent if folder.is_file() else folder
    if not where.is_dir():
        raise ProbeFailed(f"{where} is not there")
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    return output_of([*GIT, *arguments], GIT_TIMEOUT_S, cwd=where, environment=environment)
