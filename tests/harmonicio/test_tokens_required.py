"""No request passes because a token is not configured."""

import http.client

import pytest

from frameworks.harmonicio.engine.config import MasterConfig, WorkerConfig, read_config
from frameworks.harmonicio.engine.errors import ConfigError

ROLES = ("operator", "worker", "pe", "connector")


def status_of(port, token):
    """Send a request with that token; return the status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/docker?command=status", headers={"Authorization": f"Bearer {token}"})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.real
def test_a_worker_without_an_operators_token_requires_its_own(cluster):
    """An empty token does not count."""
    file = cluster.folder / "worker.yaml"
    file.write_text("tokens: {worker: w, pe: p, connector: c}\n")
    cluster.start_master()
    cluster.start_worker("--config", str(file))
    assert [status_of(cluster.worker_port, token) for token in ("", "o", "p", "w")] == [401, 401, 401, 200]


@pytest.mark.parametrize("kind", [MasterConfig, WorkerConfig], ids=["master", "worker"])
@pytest.mark.parametrize("role", ROLES)
def test_a_public_address_requires_every_token(kind, role):
    """The error names the missing one."""
    tokens = dict.fromkeys(ROLES, "secret")
    assert read_config(kind, None, {}, {"host": "0.0.0.0", "tokens": tokens}).tokens.missing == []
    with pytest.raises(ConfigError, match=rf"needs tokens \(there is none of: {role}\)") as caught:
        read_config(kind, None, {}, {"host": "0.0.0.0", "tokens": {**tokens, role: ""}})
    assert "\n" not in str(caught.value)
