"""Check of Pulsar: sends one message through the Pulsar of a site file on a temporary topic, and reads it back."""

import secrets
import sys
import time
from pathlib import Path

from bench.plugins.site_file import read_site_file
from producers.pulsar.admin import Admin
from producers.pulsar.connection import make_client
from producers.pulsar.site import PULSAR_SITE

TIMEOUT_MS = 30_000


def main() -> None:
    """Print how long the message took; exit with 1 if another message came back."""
    site = PULSAR_SITE.read(read_site_file(Path(sys.argv[1])))
    if site is None:
        sys.exit("the site has no Pulsar")
    admin, name, message = Admin(site), f"check-{secrets.token_hex(4)}", secrets.token_bytes(1000)
    admin.make_topic(name, 1)
    client = make_client(site.service_url, {"ca_file": site.ca_file or "", "token_file": site.token_file or ""})
    topic, started = f"persistent://{site.namespace}/{name}", time.monotonic()
    try:
        consumer = client.subscribe(topic, "check")
        client.create_producer(topic).send(message)
        received = consumer.receive(TIMEOUT_MS).data()
    finally:
        client.shutdown()
        admin.delete_topic(name)
    if received != message:
        sys.exit(f"{site.service_url} returned another message")
    print(f"a message of 1000 B went through {','.join(site.brokers)} in {time.monotonic() - started:.2f} s")


if __name__ == "__main__":
    main()
