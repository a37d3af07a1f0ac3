"""The processes of a server that is known by its address: who listens there, and all that belongs to them.

    socket    /proc/net/tcp and tcp6 name the inode of every listening socket
    holders   the processes that have it open: a front process, its parent, workers that share it
    roots     the holders, whoever shares a session or group that one of them leads, and the launch whose tag
              they carry; what descends from these is the server

A server of another network namespace (a container) is listened for here by a proxy, if at all, and of another
user's processes nothing can be read: then it must be named by its process id.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from layers.collectors.processes import PROC, Process, require_running, scan
from parsers.errors import NotPermitted, UsageError

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LOCAL_FIELD, STATE_FIELD, USER_FIELD, INODE_FIELD = 1, 3, 7, 9
"""Places in a line of the tables (proc_net(5))."""
LISTEN = "0A"
PORTS = {"http": 80, "https": 443}
HEX_OF_WORD = 8

Address = IPv4Address | IPv6Address


def server_address(url: str) -> SplitResult:
    """The parts of a server's address, without name and password; UsageError where it is none."""
    try:
        address = urlsplit(url)
        if address.scheme in PORTS and address.hostname and address.port != 0:
            return address._replace(netloc=address.netloc.rpartition("@")[2])
    except ValueError:  # a port that is no number, half an IPv6 address
        pass
    raise UsageError(f"--server {url}: give an address such as http://127.0.0.1:8000")


def service_roots(pids: Sequence[int], url: str | None) -> list[str]:
    """What stands for a service that is named by process ids, by its address, or both; UsageError for an id
    that no process has, and as `server_roots`."""
    require_running(pids)
    return [*map(str, pids), *(server_roots(url) if url is not None else ())]


def server_roots(url: str) -> list[str]:
    """Process ids, and the tag of the launch if there is one, that stand for a server of this machine.

    UsageError, with the reason, where its processes cannot be found; NotPermitted where they are another
    user's.
    """
    address = server_address(url)
    url, port = address.geturl(), address.port or PORTS[address.scheme]
    sockets = dict(_listening(port, _addresses(address.hostname or "", url)))
    if not sockets:
        raise UsageError(
            f"--server {url}: nothing on this machine listens on port {port}; its processes are found only "
            "where it runs"
        )
    processes = scan()
    holders = {pid for pid in processes if _holds(pid, sockets)}
    if not holders:
        raise _unseen(f"--server {url}", port, {user for user in sockets.values() if user != os.geteuid()})
    return roots_of(processes, holders)


def _unseen(named: str, port: int, others: Collection[int]) -> UsageError:
    """Nobody who holds the port is seen: sockets of `others` (user ids), or of another container."""
    if not others:
        seen = f"who listens on port {port} cannot be seen (another container's process)"
        return UsageError(f"{named}: {seen}: name it with --pid")
    users = " and ".join(map(str, sorted(others)))
    return NotPermitted(
        f"{named}: a process of user {users} listens on port {port}, and this user may not look into it: run "
        "perfkit as that user or as root"
    )


def seen_roots(url: str) -> list[str]:
    """As `server_roots`; nothing where a proxy, another machine's or another user's process listens, whose
    state cannot be seen from here."""
    try:
        return server_roots(url)
    except UsageError:
        return []


def roots_of(processes: Mapping[int, Process], holders: Collection[int]) -> list[str]:
    """What stands for the server that these processes listen for."""
    tags = {processes[pid].launch for pid in holders if processes[pid].launch}
    led = {p.pid for p in processes.values() if p.session in holders or p.group in holders}
    return [*map(str, sorted(led.union(holders))), *sorted(tags)]


def _addresses(host: str, url: str) -> set[Address]:
    """What a name stands for."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(f"--server {url}: {error.strerror or error}") from error
    return {ip_address(str(entry[4][0]).partition("%")[0]) for entry in found}


def _listening(port: int, addresses: Collection[Address]) -> Iterator[tuple[str, int]]:
    """Inode and user of the sockets that listen on this port of one of these addresses, or of all."""
    local = any(_is_ours(address) for address in addresses)
    for table in TABLES:
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            at, _, hex_port = fields[LOCAL_FIELD].partition(":")
            if fields[STATE_FIELD] == LISTEN and int(hex_port, 16) == port:
                bound = _decode(at)
                if bound in addresses or (bound.is_unspecified and local):
                    yield fields[INODE_FIELD], int(fields[USER_FIELD])


def _decode(text: str) -> Address:
    """An address as the kernel prints it: words of 32 bits in the machine's own order."""
    words = (int(text[at : at + HEX_OF_WORD], 16) for at in range(0, len(text), HEX_OF_WORD))
    found = ip_address(b"".join(struct.pack("=I", word) for word in words))
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def _is_ours(address: Address) -> bool:
    """Whether an address is one of this machine's: only then a socket can be bound to it."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as tried:
        try:
            tried.bind((str(address), 0))
        except OSError:
            return False
    return True


def _holds(pid: int, sockets: Collection[str]) -> bool:
    """Whether a process has one of these sockets open; False where that may not be looked at."""
    wanted = {f"socket:[{inode}]" for inode in sockets}
    try:
        return any(_link(entry) in wanted for entry in (PROC / str(pid) / "fd").iterdir())
    except OSError:
        return False


def _link(entry: Path) -> str:
    try:
        return os.readlink(entry)
    except OSError:  # closed meanwhile
        return ""
