"""Mutual TLS: both sides of a connection need a certificate that one authority has signed.

A folder has certificate.pem and key.pem of its user, and authority.pem. Names in certificates are not checked: the
authority signs for this system only. Tokens tell roles apart where that is needed, too.
"""

import functools
import http.client
import ssl
from pathlib import Path

from frameworks.harmonicio.engine.errors import ConfigError

CERTIFICATE, KEY, AUTHORITY = "certificate.pem", "key.pem", "authority.pem"


@functools.cache
def server_context(folder: str) -> ssl.SSLContext:
    """Return the context of the accepting side; raises ConfigError when the folder is not complete."""
    return _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), Path(folder))


@functools.cache
def client_context(folder: str) -> ssl.SSLContext:
    """Return the context of the connecting side; raises ConfigError when the folder is not complete."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    return _load(context, Path(folder))


def http_connection(host: str, port: int, timeout: float, folder: str | None) -> http.client.HTTPConnection:
    """Return a connection to a control plane, not opened yet; with TLS where there is a folder."""
    if folder is None:
        return http.client.HTTPConnection(host, port, timeout=timeout)
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=client_context(folder))


def _load(context: ssl.SSLContext, folder: Path) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
        context.load_verify_locations(folder / AUTHORITY)
    except OSError as error:  # includes ssl.SSLError
        raise ConfigError(f"{folder} needs {CERTIFICATE}, {KEY} and {AUTHORITY} that fit together: {error}") from None
    return context
