"""The declaration of the source `kafka`."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.analysis.bounds import Copies
from bench.config.site import Site
from bench.plugins.client_lint import ConfigWarning, warn_of_compression
from bench.plugins.placement import default_partitions
from bench.plugins.plugin import SourceCapabilities, SourcePlugin
from bench.services.preflight import missing_jars, missing_java
from producers.kafka import client, sender
from producers.kafka.baselines import client_loop, client_loop_batch
from producers.kafka.perf_test import perf_test
from producers.kafka.sender import KafkaSender
from producers.kafka.site import KAFKA_SITE
from producers.kafka.source import KafkaSettings, KafkaSource, results_topic


def missing(site: Site, cache: Path) -> Sequence[str]:
    """Return what the embedded broker lacks here, a sentence each; nothing where the site has a Kafka."""
    return () if KAFKA_SITE.read(site) is not None else (*missing_java(), *missing_jars(("kafka",), cache))


def kafka_copies(replicas: int, consumers: int = 1, brokers: int = 1) -> Copies:
    """Return what Kafka makes of each byte.

    Each copy enters some broker; it leaves for each follower and consumer; it is written once, on one of the brokers.
    Both directions of a leader's card added up would call it full at half its load.
    """
    return Copies(network=max(replicas, replicas - 1 + consumers) / brokers, disk=replicas / brokers)


def copies(settings: KafkaSettings, site: Site) -> Copies:
    """Return what Kafka makes of each byte that is read once."""
    there = KAFKA_SITE.read(site)
    if there is None:
        return kafka_copies(max(1, settings.replication))
    by_brokers = there.replication or 1
    return kafka_copies(settings.replication if settings.replication > 0 else by_brokers, brokers=len(there.brokers))


def warnings(settings: KafkaSettings, message_bytes: int, entropy: float) -> list[ConfigWarning]:
    """Return what distorts a measurement in these settings, for messages of that size and entropy."""
    limit = settings.message_limit
    return [
        *_warn_of_acks(settings.acks),
        *(_warn_of_message_limit(int(limit), message_bytes) if limit is not None else ()),
        *warn_of_compression(settings.compression, entropy, "settings.kafka.compression"),
    ]


def _warn_of_message_limit(limit: int, message_bytes: int) -> Iterator[ConfigWarning]:
    """Refuse a limit below the size, with which every message would be refused."""
    if limit < message_bytes:
        yield ConfigWarning(
            f"settings.kafka.message_limit: {limit} B is below the message size of {message_bytes} B: every message"
            f" would be refused; give at least {message_bytes + 2**16} B, or leave it out",
            refused=True,
        )


def _warn_of_acks(acks: object) -> Iterator[ConfigWarning]:
    """Refuse settings without confirmations: what is not confirmed cannot be counted as sent."""
    if acks in (0, "0"):
        yield ConfigWarning(
            "settings.kafka.acks: 0 means no confirmations, so sent messages cannot be counted; use 1 or all",
            refused=True,
        )


plugin = SourcePlugin(
    settings=KafkaSettings,
    open=KafkaSource,
    sender=KafkaSender,
    capabilities=SourceCapabilities(retains_unread=True, keyed=True),
    site=KAFKA_SITE,
    preflight=missing,
    prepare=lambda settings, cell, env: KafkaSource(settings).prepare(cell, env),
    copies=copies,
    parts=lambda settings, cores: default_partitions(settings.partitions, cores),
    parts_setting="partitions",
    disk_copies=1,
    warnings=warnings,
    results_topic=results_topic,
    baselines={
        "client-loop": client_loop,
        "client-loop-constant": partial(client_loop, stamped=False),
        "client-loop-batch": client_loop_batch,
        "kafka-producer-perf-test": perf_test,
    },
    client_code=(sender, client),
    packages=("kafka-python", "confluent-kafka"),
)
