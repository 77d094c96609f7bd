"""Sends one message through a Pulsar, on a topic of its own that is deleted again, and reads it."""

import os
import secrets
import ssl
import sys
import time
import urllib.request

import pulsar

PATIENCE_MS = 30_000


def main() -> None:
    """Says in one line how long it took; ends with 1 when the message did not come back."""
    host, port, web_port = sys.argv[1:]
    token, authority = os.environ.get("PULSAR_TOKEN", ""), os.environ.get("PULSAR_AUTHORITY", "")
    secured = "+ssl" if authority else "", "s" if authority else ""
    name, message = f"check-{secrets.token_hex(4)}", secrets.token_bytes(1000)
    topic = f"http{secured[1]}://{host}:{web_port}/admin/v2/persistent/public/default/{name}"
    _ask(topic, "PUT", token, authority)
    options = (
        {"authentication": pulsar.AuthenticationToken(token), "tls_trust_certs_file_path": authority} if token else {}
    )
    client = pulsar.Client(f"pulsar{secured[0]}://{host}:{port}", operation_timeout_seconds=30, **options)
    began = time.monotonic()
    try:
        consumer = client.subscribe(name, "check")
        client.create_producer(name).send(message)
        answer = consumer.receive(PATIENCE_MS).data()
    finally:
        client.close()
        _ask(f"{topic}?force=true", "DELETE", token, authority)
    if answer != message:
        sys.exit(f"{host}:{port} has given another message back")
    print(f"a message of 1000 B went through {host}:{port} in {time.monotonic() - began:.2f} s")


def _ask(url: str, method: str, token: str, authority: str) -> None:
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"Bearer {token}"} if token else {})  # noqa: S310
    context = ssl.create_default_context(cafile=authority) if authority else None
    urllib.request.urlopen(request, timeout=PATIENCE_MS / 1000, context=context).close()  # noqa: S310  an address of the site


if __name__ == "__main__":
    main()
