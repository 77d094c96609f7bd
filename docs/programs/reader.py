"""A program under test: reads a Kafka topic, and reports the header of each message over TCP. Needs confluent-kafka."""

import socket
from os import environ as told

from confluent_kafka import Consumer

topic = told["STREAM_BENCH_TOPIC"]  # its name is the group's, too: a group would wait 45 s for a member that was killed
settings = {"group.id": topic, "auto.offset.reset": "earliest"}
reader = Consumer({"bootstrap.servers": told["STREAM_BENCH_ADDRESS"], **settings})
reader.subscribe([topic])

host, _, port = told["STREAM_BENCH_REPORT_ADDRESS"].rpartition(":")
with socket.create_connection((host, int(port))) as reports:
    reports.sendall(told["STREAM_BENCH_REPORT_TOKEN"].encode() + b"\n")
    while True:
        messages = [message for message in reader.consume(1000, timeout=0.05) if message.error() is None]
        reports.sendall(b"".join(message.value()[:64] for message in messages))
