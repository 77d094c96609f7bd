"""Each role has no more than it needs: a PE no token but its own, no new privileges; a log no token at all."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import pytest
from processes import numbered

from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.operator_client import OperatorClient
from frameworks.harmonicio.engine.wire.shared_memory import SharedMemory

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.real
TOKENS = {role: f"{role}-4711-token" for role in ("operator", "worker", "pe", "connector")}


@pytest.fixture
def secured(cluster):
    """A master and a worker that have all tokens in their environment."""
    cluster.environment |= {f"HARMONICIO_TOKEN_{role.upper()}": token for role, token in TOKENS.items()}
    cluster.operator = OperatorClient("127.0.0.1", cluster.port, TOKENS["operator"])
    cluster.start_master()
    cluster.start_worker()
    return cluster


def test_a_pe_has_no_token_but_those_of_its_role_and_gets_no_privileges(secured):
    """Its function could use whatever stands in its environment."""
    secured.submit("Describe")
    secured.wait_pes(1)
    variables = (secured.numbers / "variables").read_text().splitlines()
    tokens = {name for name in variables if name.startswith("HARMONICIO_TOKEN_")}
    assert tokens == {"HARMONICIO_TOKEN_PE", "HARMONICIO_TOKEN_CONNECTOR"}
    status = (secured.numbers / "status").read_text()
    assert "NoNewPrivs:\t1" in status
    assert "Max core file size        0                    0" in status


def test_no_token_stands_in_a_log_or_a_page(secured):
    """Also not after a refusal of a wrong one."""
    secured.submit()
    secured.wait_pes(1)
    with Connector(c_name="s", port=secured.data_port, token=TOKENS["connector"]) as connector:
        connector.send_many(numbered(0, 100))
    with pytest.raises(HarmonicError), Connector(c_name="s", port=secured.data_port, token=TOKENS["pe"]) as connector:
        connector.send(b"x")
    with pytest.raises(HarmonicError):
        OperatorClient("127.0.0.1", secured.port, TOKENS["worker"]).status()
    shown = secured.log() + json.dumps(secured.operator.status())
    assert [token for token in TOKENS.values() if token in shown] == []


@pytest.fixture
def nobody():
    """The user nobody, if this is root and nobody can run this Python."""
    if os.geteuid() != 0:
        pytest.skip("only root can start processes of another user")
    user = pwd.getpwnam("nobody")
    try:
        run_as(user, "import frameworks.harmonicio.engine.pe.main").check_returncode()
    except (OSError, subprocess.CalledProcessError) as problem:
        pytest.skip(f"nobody cannot run {sys.executable}, or read this repository: {problem}")
    return user


def run_as(user, script):
    """Run Python code as a user."""
    return subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, user=user.pw_uid, group=user.pw_gid, extra_groups=[],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_pes_of_a_worker_of_root_have_a_user_of_their_own(cluster, nobody):
    """They can be stopped as before, and start no processes without an end."""
    cluster.numbers = Path(mkdtemp(dir="/tmp"))
    cluster.numbers.chmod(0o777)
    try:
        cluster.environment["HARMONICIO_PE_USER"] = "nobody"
        cluster.start_master()
        cluster.start_worker()
        cluster.submit("Describe")
        cluster.wait_pes(1)
        status = (cluster.numbers / "status").read_text().splitlines()
    finally:
        shutil.rmtree(cluster.numbers)
    uid = str(nobody.pw_uid)
    assert next(line.split()[1:] for line in status if line.startswith("Uid:")) == [uid] * 4
    assert next(line.split()[2:4] for line in status if line.startswith("Max processes")) == ["4096", "4096"]
    assert cluster.stop("worker") == 0


def test_a_batch_in_shared_memory_cannot_be_opened_by_another_user(nobody):
    """Neither through the file descriptor of its owner, nor if that were allowed."""
    memory = SharedMemory(4096)
    try:
        done = run_as(nobody, f"open('/proc/{os.getpid()}/fd/{memory.handle.fd}', 'rb').read(1)")
        assert "PermissionError" in done.stderr
        assert os.fstat(memory.handle.fd).st_mode & 0o777 == 0o600
    finally:
        memory.close()
