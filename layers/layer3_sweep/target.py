"""From a server's address to where the load client connects."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from layers.collectors.load.plan import Target
from layers.collectors.servers import PORTS, seen_roots, server_address
from layers.collectors.stacks.standing import standing_still
from layers.evidence.wording import first_few
from parsers.errors import InvalidMeasurement, UsageError

VERSION_PATHS = ("", "/", "/v1", "/v1/")
"""Paths of addresses as OpenAI's clients take them; endpoints bring their own."""


CONNECT_TIMEOUT_S = 10.0


def require_listening(url: str) -> None:
    """InvalidMeasurement where nothing can be connected to at this address, or where a process of the server
    is stopped: the kernel takes connections for it all the same."""
    target = target_for(url, {})
    try:
        socket.create_connection((target.address, target.port), CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise InvalidMeasurement(f"{url}: {error.strerror or error}: is the server running?") from error
    if standing := standing_still(seen_roots(url)):
        raise InvalidMeasurement(f"{url}: nothing is sent: {first_few(map(str, standing))}")


def target_for(url: str, headers: Mapping[str, str]) -> Target:
    """The name is looked up once, here: two load processes must not load two servers.

    UsageError for an address with a path of its own, InvalidMeasurement where the name is not known.
    """
    address = server_address(url)
    if address.path not in VERSION_PATHS or address.query:
        raise UsageError(f"--server {url}: give the address alone, and the path with --path {address.path}")
    host, port = address.hostname or "", address.port or PORTS[address.scheme]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InvalidMeasurement(f"{url}: {error.strerror or error}") from error
    return Target(host, str(found[0][4][0]), port, tls=address.scheme == "https", headers=dict(headers))
