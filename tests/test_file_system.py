"""The journal follows the file system: WAL where it is known to be local, rollback everywhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from layers.evidence import file_system
from layers.evidence.file_system import Journal, file_system_of, journal_for

MOUNTS = r"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /proc rw shared:5 master:2 - proc proc rw
24 22 0:30 / /data rw - xfs /dev/vdb rw
25 24 0:31 / /data/shared\040files rw - nfs4 server:/export rw
26 22 0:32 / /scratch rw - ext4 /dev/vdc rw
27 22 0:33 / /scratch rw - fuse.sshfs user@host: rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/me", "ext4"),
        ("/", "ext4"),
        ("/data/a", "xfs"),
        ("/database", "ext4"),
        ("/data/shared files/run", "nfs4"),
        ("/scratch/run", "fuse.sshfs"),
    ],
)
def test_the_deepest_and_last_mount_above_a_folder_decides(folder: str, kind: str) -> None:
    assert file_system_of(Path(folder), MOUNTS) == kind


def test_a_table_without_a_matching_mount_says_nothing() -> None:
    assert file_system_of(Path("/home"), "24 22 0:30 / /data rw - xfs /dev/vdb rw\n") == ""


def mount_here(monkeypatch: pytest.MonkeyPatch, folder: Path, kind: str) -> None:
    """Make the mount table say that the folder lies on a file system of this kind."""
    table = folder / "mountinfo"
    table.write_text(f"22 1 254:0 / {folder} rw - {kind} source rw\n")
    monkeypatch.setattr(file_system, "MOUNT_TABLE", table)


NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "lustre", "gpfs", "ceph", "fuse.sshfs", "virtiofs")


@pytest.mark.parametrize("kind", [*NETWORK, "unheard-of"])
def test_network_and_unknown_file_systems_get_the_rollback_journal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    mount_here(monkeypatch, tmp_path, kind)
    assert journal_for(tmp_path / "investigation") is Journal.ROLLBACK


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "overlay", "tmpfs"])
def test_local_file_systems_get_wal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    mount_here(monkeypatch, tmp_path, kind)
    assert journal_for(tmp_path) is Journal.WAL


def test_without_a_mount_table_the_rollback_journal_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(file_system, "MOUNT_TABLE", tmp_path / "absent")
    assert journal_for(tmp_path) is Journal.ROLLBACK
