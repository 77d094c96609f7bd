"""Baseline producers of Kafka: loops around confluent-kafka, without schedule or Locust."""

import logging
from pathlib import Path

from confluent_kafka import Producer

from bench.model.message_header import HEADER_BYTES
from bench.plugins.protocols import Endpoint
from bench.workload.rate_meter import RateMeter, stamp
from producers.kafka.client import configuration

logger = logging.getLogger(__name__)


def client_loop(endpoint: Endpoint, message: bytes, meter: RateMeter, _: Path, *, stamped: bool = True) -> None:
    """Run the simplest loop of confluent-kafka that confirms: one `produce` a message, with number and time."""
    producer = Producer({**configuration(endpoint), "delivery.report.only.error": True}, logger=logger)
    max_waiting, some = int(endpoint.client["waiting"]), max(1, min(1000, 4 * 10**6 // len(message)))
    topic, parts, count, filler = endpoint.name, endpoint.parts, 0, message[HEADER_BYTES:]
    while meter.keep_measuring(count - len(producer)):
        if len(producer) + some <= max(some, max_waiting):
            for number in range(count, count + some):
                producer.produce(topic, stamp(number) + filler if stamped else message, partition=number % parts)
            count += some
            producer.poll(0)
        else:
            producer.poll(0.001)
    producer.purge()
    producer.flush(1)


def client_loop_batch(endpoint: Endpoint, message: bytes, meter: RateMeter, _: Path) -> None:
    """Run the same with `produce_batch` of a list that is made once.

    The client's own limit, out of reach for real data.
    """
    producer = Producer({**configuration(endpoint), "delivery.report.only.error": True}, logger=logger)
    max_waiting, some = int(endpoint.client["waiting"]), max(1, min(4096, 4 * 10**6 // len(message)))
    batch, count, turn = [{"value": message}] * some, 0, 0
    while meter.keep_measuring(count - len(producer)):
        if len(producer) + some <= max(some, max_waiting):
            count += producer.produce_batch(endpoint.name, batch, partition=turn % endpoint.parts)
            turn += 1
            producer.poll(0)
        else:
            producer.poll(0.001)
    producer.purge()
    producer.flush(1)
