"""Mutual TLS: everybody shows a certificate that one authority has signed, and talks to nobody who does not.

A folder has what it takes: certificate.pem and key.pem of whoever uses it, and authority.pem. Names in certificates mean nothing:
the authority signs for this system only. Tokens tell roles apart, where that is wanted besides.
"""

import functools
import http.client
import ssl
from pathlib import Path

from frameworks.harmonicio.engine.errors import ConfigError

CERTIFICATE, KEY, AUTHORITY = "certificate.pem", "key.pem", "authority.pem"


@functools.cache
def server_context(folder: str) -> ssl.SSLContext:
    """For who is called; raises ConfigError when the folder has not what it takes."""
    return _loaded(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), Path(folder))


@functools.cache
def client_context(folder: str) -> ssl.SSLContext:
    """For who calls; raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    return _loaded(context, Path(folder))


def http_connection(host: str, port: int, timeout: float, folder: str | None) -> http.client.HTTPConnection:
    """To a control plane, with TLS where there is a folder."""
    if folder is None:
        return http.client.HTTPConnection(host, port, timeout=timeout)
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=client_context(folder))


def _loaded(context: ssl.SSLContext, folder: Path) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
        context.load_verify_locations(folder / AUTHORITY)
    except OSError as problem:  # ssl.SSLError is one
        raise ConfigError(f"{folder} needs {CERTIFICATE}, {KEY} and {AUTHORITY} that fit together: {problem}") from None
    return context
