"""Check of Pulsar: sends one message on a temporary topic and reads it back."""

import os
import secrets
import ssl
import sys
import time
import urllib.request

import pulsar

TIMEOUT_MS = 30_000


def main() -> None:
    """Print how long the message took; exit with 1 if another message came back."""
    host, port, web_port = sys.argv[1:]
    token, authority = os.environ.get("PULSAR_TOKEN", ""), os.environ.get("PULSAR_AUTHORITY", "")
    pulsar_scheme, http_scheme = ("pulsar+ssl", "https") if authority else ("pulsar", "http")
    name, message = f"check-{secrets.token_hex(4)}", secrets.token_bytes(1000)
    topic = f"{http_scheme}://{host}:{web_port}/admin/v2/persistent/public/default/{name}"
    _request(topic, "PUT", token, authority)
    options = (
        {"authentication": pulsar.AuthenticationToken(token), "tls_trust_certs_file_path": authority} if token else {}
    )
    client = pulsar.Client(f"{pulsar_scheme}://{host}:{port}", operation_timeout_seconds=30, **options)
    started = time.monotonic()
    try:
        consumer = client.subscribe(name, "check")
        client.create_producer(name).send(message)
        received = consumer.receive(TIMEOUT_MS).data()
    finally:
        client.close()
        _request(f"{topic}?force=true", "DELETE", token, authority)
    if received != message:
        sys.exit(f"{host}:{port} returned another message")
    print(f"a message of 1000 B went through {host}:{port} in {time.monotonic() - started:.2f} s")


def _request(url: str, method: str, token: str, authority: str) -> None:
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"Bearer {token}"} if token else {})  # noqa: S310
    context = ssl.create_default_context(cafile=authority) if authority else None
    urllib.request.urlopen(request, timeout=TIMEOUT_MS / 1000, context=context).close()  # noqa: S310  an address of the site


if __name__ == "__main__":
    main()
