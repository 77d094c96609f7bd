"""The first messages of a Pulsar that has just started, sent and fetched by a process of its own.

It ends without destructors: that of a client which was opened while the broker was still cold has crashed
(decision 0218).
"""

import os
import sys
import time

import pulsar

from bench.errors import HarnessError
from producers.pulsar.admin import Admin
from producers.pulsar.connection import make_client
from producers.pulsar.site import PulsarSite


def warm(site: PulsarSite, seconds: float) -> None:
    """Send and fetch single messages for so many seconds, so that the JVM compiles what every request needs.

    Raises:
        pulsar.PulsarException: Pulsar refuses, or does not answer in time.
        HarnessError: Its admin interface does.
    """
    admin, topic, deadline = Admin(site), "warming-up", time.monotonic() + seconds
    admin.make_topic(topic, 1)
    client = make_client(site.service_url, {})
    consumer = client.subscribe(topic, topic)
    producer = client.create_producer(topic)
    while time.monotonic() < deadline:
        producer.send(b"\0" * 1000)
        consumer.acknowledge(consumer.receive(1000))
    client.shutdown()
    admin.delete_topic(topic)


def main() -> None:
    """Warm up the Pulsar of two URLs (service, admin) for so many seconds; exit code 1 and a line if that fails."""
    service_url, admin_url, seconds = sys.argv[1:]
    try:
        warm(PulsarSite(service_url, admin_url), float(seconds))
        code = 0
    except (pulsar.PulsarException, HarnessError) as problem:
        code = 1
        sys.stdout.write(f"{problem}\n")
        sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
