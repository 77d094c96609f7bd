"""The start of an embedded Kafka that does not come up."""

import socket

import pytest

from bench.errors import ServiceError
from bench.services.ports import LOOPBACK
from producers.kafka.server import warm


def test_a_broker_that_does_not_answer_is_named_in_one_line() -> None:
    """Its process may have been stopped meanwhile: the campaign saw a traceback."""
    with socket.create_server((LOOPBACK, 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ServiceError, match=rf"^Kafka at {LOOPBACK}:{port} came up but serves nobody: ") as refused:
            warm(f"{LOOPBACK}:{port}", 0.0, timeout=0.5)
    assert "\n" not in str(refused.value)
