"""Messages between the harness and a process of Bytewax."""

from msgspec import Struct

from bench.workload.processing import MessageProcessor


class RunDataflow(Struct, frozen=True, tag="run_dataflow"):
    """A command, sent once: run a process of the dataflow."""

    brokers: str
    """host:port, several separated by commas"""
    topic: str
    client: dict[str, str]
    """settings of librdkafka that let it in; they may hold a password"""
    work: MessageProcessor
    most: int
    """messages to take at once"""
    addresses: tuple[str, ...]
    """host:port of each process of the cluster; none where there is only one"""
    process: int
    """number of this one"""


class PartitionOpened(Struct, frozen=True, tag="partition_opened"):
    """A message: one more partition is read."""
