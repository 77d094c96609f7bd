"""Sends one message through the Kafka of a site file, on a topic of its own that is deleted again, and reads it."""

import secrets
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.config.validation import read_site
from bench.services import credentials

PATIENCE = 30.0


def main() -> None:
    """Says in one line how long it took; ends with 1 when the message did not come back."""
    kafka = read_site(Path(sys.argv[1])).kafka
    if kafka is None:
        sys.exit("the site has no Kafka")
    connection = {
        "bootstrap.servers": kafka.bootstrap,
        **credentials.for_librdkafka(credentials.of_clients(kafka.security)),
    }
    admin, topic, message = AdminClient(connection), f"check-{secrets.token_hex(4)}", secrets.token_bytes(1000)
    admin.create_topics([NewTopic(topic, 1)])[topic].result(PATIENCE)
    began = time.monotonic()
    try:
        producer = Producer(connection)
        producer.produce(topic, message)
        if producer.flush(PATIENCE):
            sys.exit(f"{kafka.bootstrap} has not confirmed a message within {PATIENCE:g} s")
        consumer = Consumer(connection | {"group.id": "stream-bench-check", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0)])
        answer = consumer.poll(PATIENCE)
        consumer.close()
        if answer is None or answer.error() or answer.value() != message:
            sys.exit(f"{kafka.bootstrap} has not given the message back: {answer and answer.error()}")
    finally:
        admin.delete_topics([topic])[topic].result(PATIENCE)
    print(f"a message of 1000 B went through {kafka.bootstrap} in {time.monotonic() - began:.2f} s")


if __name__ == "__main__":
    main()
