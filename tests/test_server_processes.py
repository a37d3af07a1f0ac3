"""The processes of a server by its address: real servers that fork, detach and share a socket."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from layers.collectors import servers
from layers.collectors.processes import family_of_roots, read_process, scan
from layers.collectors.servers import roots_of, server_roots
from layers.evidence.verdict import Exit
from layers.preflight.process_tree import Kind, server_family
from parsers.errors import NotPermitted, UsageError
from perfkit.cli.app import main
from tests.process_trees import wait_until_gone

SERVER = """
import os, socket, subprocess, sys, time
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.create_server((sys.argv[1], 0), family=family)
port = listener.getsockname()[1]
pids = [os.getpid()]
for act in sys.argv[2:]:
    if act == "fork":            # shares the socket
        pid = os.fork()
        if not pid:
            time.sleep(600)
    elif act == "engine":        # does not, and is in a session of its own
        sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
        pid = subprocess.Popen(sleeper, start_new_session=True).pid
    pids.append(pid)
print(port, *pids, flush=True)
time.sleep(600)
"""

Serve = Callable[..., tuple[int, list[int]]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server on a free port of an address; port and process ids, its own first."""
    started: list[subprocess.Popen[bytes]] = []
    ids: list[int] = []

    def start(address: str, *acts: str) -> tuple[int, list[int]]:
        server = subprocess.Popen([sys.executable, "-c", SERVER, address, *acts], stdout=subprocess.PIPE)
        started.append(server)
        assert server.stdout is not None
        with server.stdout:
            port, *pids = map(int, server.stdout.readline().split())
        ids.extend(pids)
        return port, pids

    yield start
    for pid in ids:
        os.kill(pid, signal.SIGKILL)
    for server in started:
        server.wait()
    wait_until_gone(ids)


def test_the_whole_tree_of_a_listener_is_found(serve: Serve) -> None:
    port, pids = serve("127.0.0.1", "fork", "engine")
    found = family_of_roots(scan(), server_roots(f"http://127.0.0.1:{port}"))
    assert found == set(pids)


@pytest.mark.parametrize(("bound", "asked"), [("0.0.0.0", "localhost"), ("127.0.0.1", "localhost")])
def test_a_server_is_found_by_any_name_of_its_address(serve: Serve, bound: str, asked: str) -> None:
    port, pids = serve(bound)
    assert server_roots(f"http://{asked}:{port}/v1") == [str(pids[0])]


def test_a_server_on_ipv6_is_found(serve: Serve) -> None:
    with socket.socket(socket.AF_INET6) as tried:
        try:
            tried.bind(("::1", 0))
        except OSError:
            pytest.skip("no IPv6 here")
    port, pids = serve("::1")
    assert server_roots(f"http://[::1]:{port}") == [str(pids[0])]


def test_a_port_on_another_address_is_not_the_server(serve: Serve) -> None:
    port, _ = serve("127.0.0.1")
    with pytest.raises(UsageError, match=f"nothing on this machine listens on port {port}"):
        server_roots(f"http://127.0.0.2:{port}")


def test_a_server_elsewhere_is_said_to_be_elsewhere(serve: Serve) -> None:
    port, _ = serve("0.0.0.0")
    with pytest.raises(UsageError, match="found only where it runs"):
        server_roots(f"http://192.0.2.1:{port}")  # an address for documentation, nobody's


def test_a_listener_that_may_not_be_looked_into_is_to_be_named(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, _ = serve("127.0.0.1")
    monkeypatch.setattr(servers, "_holds", lambda pid, sockets: False)
    with pytest.raises(UsageError, match="cannot be seen"):
        server_roots(f"http://127.0.0.1:{port}")


def test_a_listener_of_another_user_is_told_by_its_user(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, _ = serve("127.0.0.1")
    monkeypatch.setattr(servers, "_holds", lambda pid, sockets: False)
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.raises(NotPermitted, match=f"a process of user {me} listens on port {port}") as refused:
        server_roots(f"http://127.0.0.1:{port}")
    assert refused.value.exit_code == 4


def test_who_shares_the_session_of_a_listener_and_its_launch_belong_to_it() -> None:
    me = read_process(os.getpid())
    assert me is not None
    front = replace(me, pid=10, parent=1, group=10, session=10, launch="1.2.3.ab")
    orphan = replace(me, pid=11, parent=1, group=11, session=10, launch="")
    stranger = replace(me, pid=12, parent=1, group=12, session=12, launch="")
    assert roots_of({p.pid: p for p in (front, orphan, stranger)}, {10}) == ["10", "11", "1.2.3.ab"]


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://h:x", "http://[::1", "127.0.0.1:8000"])
def test_what_is_no_address_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="give an address such as"):
        server_roots(url)


def test_the_family_of_a_server_is_listed_or_the_reason_why_not(serve: Serve) -> None:
    port, pids = serve("127.0.0.1", "engine")
    family = server_family(f"http://127.0.0.1:{port}", scan(), lambda pid: pid == pids[1])
    assert (family.kind, family.on_gpu) == (Kind.SERVER, (pids[1],))
    assert [p.pid for p in family.members] == sorted(pids)
    gone = server_family("http://me:secret@127.0.0.1:1", scan(), lambda pid: False)
    assert gone.members == () and "listens on port 1" in gone.why
    assert "secret" not in gone.key + gone.why


def test_preflight_lists_the_servers_processes(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    port, pids = serve("127.0.0.1", "engine")
    main(["preflight", "--server", f"http://127.0.0.1:{port}", "--seconds", "0.1", "--no-record", "--json"])
    document = json.loads(capsys.readouterr().out)
    (family,) = [one for one in document["processes"] if one["kind"] == "server"]
    assert [member["pid"] for member in family["members"]] == sorted(pids)


def test_a_watch_takes_a_server_for_ours(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    port, pids = serve("127.0.0.1", "engine")
    arguments = ["--watch", "0.5", "--server", f"http://127.0.0.1:{port}", "--no-record", "--json"]
    main(["preflight", *arguments])
    assert set(pids) <= set(json.loads(capsys.readouterr().out)["family"])
    nobody = "http://127.0.0.1:1"
    assert main(["preflight", "--watch", "0.5", "--server", nobody, "--no-record"]) == Exit.USAGE


def service_check(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["doctor", *arguments, "--json"]) == Exit.OK
    checks: list[dict[str, object]] = json.loads(capsys.readouterr().out)["checks"]
    return next(check for check in checks if check["name"] == "the service's processes")


def test_doctor_says_whether_a_server_can_be_looked_into(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    port, pids = serve("127.0.0.1", "engine")
    found = service_check(capsys, "--server", f"http://127.0.0.1:{port}")
    assert found["there"] and found["seen"] == f"2 processes (first {pids[0]})"
    assert service_check(capsys, "--pid", str(pids[1]))["seen"] == f"1 process (first {pids[1]})"
    nobody = service_check(capsys, "--server", "http://127.0.0.1:1")
    assert not nobody["there"] and "listens on port 1" in str(nobody["seen"])


def test_doctor_names_an_address_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--server", "nonsense"]) == Exit.USAGE
    assert "give an address such as" in capsys.readouterr().err
