"""Each role has no more than it needs: a PE no token but its own, no new privileges; a log no token at all."""

import json

import pytest
from processes import numbered

from frameworks.harmonicio.engine.connector import Connector
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.operator_client import OperatorClient

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
