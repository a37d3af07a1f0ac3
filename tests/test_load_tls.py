"""TLS: requests over it, certificates that do not fit, and a server that speaks none."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from layers.collectors.load.plan import Extent, Load, Target
from layers.collectors.load.records import Outcome
from layers.collectors.load.team import run_load
from tests.load_builders import measured, plan_for, stream
from tests.load_servers import serving

NAME = "server.test"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """A certificate for NAME that vouches for itself, and a server's context with it."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, file = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    files = ["-keyout", str(key), "-out", str(file)]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    return file, context


def test_requests_go_over_tls_to_a_name_at_a_literal_address(
    tmp_path: Path, certificate: tuple[Path, ssl.SSLContext]
) -> None:
    file, context = certificate
    with serving(lambda _: stream(3, 0.01, 0.005), context) as server:
        target = Target(NAME, "127.0.0.1", server.port, tls=True, ca_file=str(file))
        run = run_load(plan_for(tmp_path, server.port, Load(3), Extent(requests=9), target=target))
    assert [record.outcome for record in measured(run)] == [Outcome.OK] * 9
    assert server.connections == 3 and f"Host: {NAME}:{server.port}".encode() in server.asked[0].head


@pytest.mark.parametrize(("host", "trusted"), [(NAME, False), ("other.test", True)])
def test_a_certificate_that_does_not_fit_is_no_connection(
    tmp_path: Path, certificate: tuple[Path, ssl.SSLContext], host: str, trusted: bool
) -> None:
    file, context = certificate
    with serving(lambda _: stream(1, 0.01, 0.0), context) as server:
        ca_file = str(file) if trusted else ""
        target = Target(host, "127.0.0.1", server.port, tls=True, ca_file=ca_file)
        plan = plan_for(tmp_path, server.port, Load(1), Extent(requests=2), target=target)
        run = run_load(plan)
    assert {record.outcome for record in run.records} == {Outcome.REFUSED}
    assert "certificate verify failed" in run.connect_problem and not server.asked


def test_a_certificate_may_be_left_unchecked(
    tmp_path: Path, certificate: tuple[Path, ssl.SSLContext]
) -> None:
    with serving(lambda _: stream(1, 0.01, 0.0), certificate[1]) as server:
        target = Target("127.0.0.1", "127.0.0.1", server.port, tls=True, verify=False)
        run = run_load(plan_for(tmp_path, server.port, Load(1), Extent(requests=2), target=target))
    assert {record.outcome for record in run.records} == {Outcome.OK}
