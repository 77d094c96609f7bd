"""Waits until all replicas of every partition of a site's Kafka are in sync, so that the next node may be restarted."""

import sys
import time
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench.plugins.site_file import read_site_file
from producers.kafka.security import client_settings, for_librdkafka
from producers.kafka.site import KAFKA_SITE

REQUEST_TIMEOUT_S = 10.0
POLL_INTERVAL_S = 1.0


def main() -> None:
    """Print how many partitions are in sync; exit with 1 if some still are not when the time is over."""
    kafka, timeout_s = KAFKA_SITE.read(read_site_file(Path(sys.argv[1]))), float(sys.argv[2])
    if kafka is None:
        sys.exit("the site has no Kafka")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, **for_librdkafka(client_settings(kafka.security))})
    deadline, behind, partitions = time.monotonic() + timeout_s, ["all, since no node answered"], 0
    while behind and time.monotonic() < deadline:
        try:
            topics = admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics.values()
        except KafkaException:
            time.sleep(POLL_INTERVAL_S)
            continue
        found = [(f"{topic.topic}-{number}", part) for topic in topics for number, part in topic.partitions.items()]
        behind, partitions = [name for name, part in found if len(part.isrs) < len(part.replicas)], len(found)
        if behind:
            time.sleep(POLL_INTERVAL_S)
    if behind:
        sys.exit(f"after {timeout_s:g} s replicas are still not in sync: {', '.join(behind[:10])}")
    print(f"all replicas of {partitions} partitions are in sync")


if __name__ == "__main__":
    main()
