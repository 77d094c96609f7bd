"""Check of Kafka: sends one message through the Kafka of a site file on a temporary topic, and reads it back."""

import secrets
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its stubs forget it

from bench.plugins.site_file import read_site_file
from producers.kafka.security import client_settings, for_librdkafka
from producers.kafka.site import KAFKA_SITE

TIMEOUT_S = 30.0


def main() -> None:
    """Print how long the message took; exit with 1 if it did not come back."""
    kafka = KAFKA_SITE.read(read_site_file(Path(sys.argv[1])))
    if kafka is None:
        sys.exit("the site has no Kafka")
    connection = {
        "bootstrap.servers": kafka.bootstrap,
        **for_librdkafka(client_settings(kafka.security)),
    }
    admin, topic, message = AdminClient(connection), f"check-{secrets.token_hex(4)}", secrets.token_bytes(1000)
    admin.create_topics([NewTopic(topic, 1)])[topic].result(TIMEOUT_S)
    started = time.monotonic()
    try:
        producer = Producer(connection)
        producer.produce(topic, message)
        if producer.flush(TIMEOUT_S):
            sys.exit(f"{kafka.bootstrap} did not confirm the message within {TIMEOUT_S:g} s")
        consumer = Consumer(connection | {"group.id": "stream-bench-check", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0)])
        received = consumer.poll(TIMEOUT_S)
        consumer.close()
        if received is None or received.error() or received.value() != message:
            sys.exit(f"{kafka.bootstrap} did not return the message: {received and received.error()}")
    finally:
        admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    print(f"a message of 1000 B went through {kafka.bootstrap} in {time.monotonic() - started:.2f} s")


if __name__ == "__main__":
    main()
