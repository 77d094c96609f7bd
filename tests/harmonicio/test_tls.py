"""With mutual TLS every peer needs a certificate of the authority, on every port."""

import contextlib
import select
import shutil
import socket
import subprocess

import numpy as np
import pytest
from processes import DEADLINE, numbered, wait_until
from stubs import Stub

from frameworks.harmonicio.engine.config import MasterConfig, WorkerConfig, read_config
from frameworks.harmonicio.engine.connector import Connector, Feeder, Options, connect
from frameworks.harmonicio.engine.errors import ConfigError, UnreachableError
from frameworks.harmonicio.engine.operator_client import OperatorClient
from frameworks.harmonicio.engine.tls import server_context
from frameworks.harmonicio.engine.wire.tls_socket import TlsSocket

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl, which makes the certificates, is not installed"
)


def openssl(*arguments, folder):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


def trusted(folder):
    """Create a folder with a certificate of its own authority."""
    folder.mkdir()
    new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl(*new, "-x509", "-subj", "/CN=authority", "-keyout", "authority.key", "-out", "authority.pem", folder=folder)
    openssl(*new, "-subj", "/CN=peer", "-keyout", "key.pem", "-out", "peer.csr", folder=folder)
    signed = [
        "-CA",
        "authority.pem",
        "-CAkey",
        "authority.key",
        "-CAcreateserial",
        "-out",
        "certificate.pem",
        "-days",
        "2",
    ]
    openssl("x509", "-req", "-in", "peer.csr", *signed, folder=folder)
    return str(folder)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Certificates of our authority, and of another one."""
    here = tmp_path_factory.mktemp("trust")
    return trusted(here / "ours"), trusted(here / "theirs")


@pytest.fixture
def sealed(cluster, folders):
    """A master and a worker that accept TLS only."""
    cluster.operator = OperatorClient("127.0.0.1", cluster.port, tls=folders[0])
    cluster.start_master("--tls", folders[0])
    cluster.start_worker("--tls", folders[0])
    return cluster


@pytest.mark.real
@pytest.mark.parametrize("shared", [True, False], ids=["shared memory", "socket"])
def test_everything_goes_over_tls(sealed, folders, shared):
    """Queue, leases, PEs and control plane work with small messages and large ones."""
    with Connector(c_name="s", port=sealed.data_port, tls=folders[0], shared_memory=shared) as connector:
        connector.send_many(numbered(0, 2000))
        connector.flush()
        assert connector.feeder.queued == 2000
        sealed.submit(num=2)
        wait_until(lambda: (connector.feeder.step(), connector.feeder.pes)[1] == 2, "two PEs")
        connector.send_many(numbered(2000, 50_000))
        connector.send_many(numbered(52_000, 20, size=3_000_000))
    wait_until(lambda: len(sealed.processed()) == 52_020, "all messages")
    assert np.array_equal(np.sort(sealed.processed()), np.arange(52_020))


@pytest.mark.real
def test_a_peer_without_a_certificate_is_rejected(sealed, folders):
    """So is one of another authority, while peers with ours are served as before."""
    for certificates in (None, folders[1]):
        with pytest.raises(UnreachableError):
            OperatorClient("127.0.0.1", sealed.port, tls=certificates).info()
        with (
            pytest.raises(UnreachableError),
            Connector(c_name="s", port=sealed.data_port, tls=certificates, timeout=1) as connector,
        ):
            connector.send(b"a message")
    with socket.create_connection(("127.0.0.1", sealed.data_port)) as sock:
        sock.sendall(b"001sa legacy message")
    assert sealed.operator.status()["streams"] == []
    with connect("s", "127.0.0.1", sealed.port, tls=folders[0]) as connector:
        connector.send(b"a message")
        connector.flush()
        assert connector.feeder.queued == 1


def test_a_tls_handshake_that_waits_for_the_peer_is_not_watched_for_writing(folders):
    """Its socket is always writable, so that the connector would loop until the answer."""
    stub, later = Stub("master"), []
    with contextlib.closing(Feeder(Options(c_name="s", port=stub.address.port, tls=folders[0]))) as feeder:
        feeder.step()
        sock, _ = stub.listener.accept()
        sock.settimeout(DEADLINE)
        hello = wait_until(lambda: (feeder.step(), sock.recv(1, socket.MSG_PEEK))[1], "the beginning of the handshake")
        assert (hello[0], [write for _, write in feeder.watched_sockets()]) == (22, [False])
        sock.settimeout(0)
        other = TlsSocket(sock, server_context(folders[0]), server_side=True)

        def greeted():
            with contextlib.suppress(BlockingIOError):
                later.append(other.recv(4096))
            if any(
                select.select(
                    [one for one, _ in feeder.watched_sockets()],
                    [one for one, write in feeder.watched_sockets() if write],
                    [],
                    0,
                )
            ):
                feeder.step()
            return later

        assert wait_until(greeted, "the handshake")[0].startswith(b"HIO4")
        other.close()
    stub.listener.close()


@pytest.mark.parametrize(
    ("kind", "flags", "said"),
    [
        (MasterConfig, {"tls": "nowhere"}, "needs certificate.pem"),
        (MasterConfig, {"compat": "on"}, "knows no TLS"),
        (WorkerConfig, {"runtime": "docker"}, "containers"),
    ],
    ids=["no certificates", "legacy protocol", "containers"],
)
def test_impossible_combinations_are_refused_before_anything_starts(folders, kind, flags, said):
    """The error is one line."""
    with pytest.raises(ConfigError, match=said):
        read_config(kind, None, {}, {"tls": folders[0], **flags})


def test_with_certificates_a_public_address_is_allowed(folders):
    """Tokens are not needed then; the legacy protocol is off."""
    config = read_config(MasterConfig, None, {}, {"tls": folders[0], "host": "0.0.0.0"})
    assert not config.legacy_protocol
