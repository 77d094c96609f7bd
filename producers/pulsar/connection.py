"""Connections of the Pulsar client library, made alike by senders and readers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bench.services.credentials import read_secret

if TYPE_CHECKING:
    import pulsar

TIMEOUT_S = 30.0
"""Seconds after which Pulsar's answer is not waited for any more, and an unconfirmed message has failed."""


def make_client(address: str, settings: Mapping[str, str | int | float | bool]) -> "pulsar.Client":
    """Return a client of the cluster at `address`; it connects when it is first used.

    The caller ends it with `shutdown`.

    Args:
        address: service URL.
        settings: `ca_file` and `token_file` are read, paths or empty; the first line of the latter is the token.
    """
    import pulsar

    ca_file, token_file = str(settings.get("ca_file", "")), str(settings.get("token_file", ""))
    token = pulsar.AuthenticationToken(lambda: read_secret(token_file)) if token_file else None
    return pulsar.Client(
        address,
        authentication=token,
        operation_timeout_seconds=int(TIMEOUT_S),
        tls_trust_certs_file_path=ca_file or None,
        tls_validate_hostname=address.startswith("pulsar+ssl"),
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),  # in C++: its threads must not run Python's logging
    )
