"""Commands of the harness to the Spark driver, one after the other, each answered by Ready or Failure."""

from typing import Literal

from msgspec import Struct

from bench.workload.processing import MessageProcessor

Reader = Literal["kafka", "pulsar", "memory", "files", "socket", "receiver"]
"""How Spark reads: five sources of Structured Streaming (memory is the benchmark's), and the socket receiver of Spark
Streaming."""


class StartSession(Struct, frozen=True, tag="start-session"):
    """Start Spark with these settings; comes once, and first."""

    conf: dict[str, str]
    cores: int
    """tasks that run at once, the receiver's not counted"""


class Read(Struct, frozen=True, tag="read"):
    """Process every message from now on; Ready once nothing that is sent later can be missed."""

    reader: Reader
    address: str
    """of brokers, a folder, or the sockets of senders, separated by commas"""
    topic: str
    interval: float
    work: MessageProcessor
    options: dict[str, str]
    """of the reader"""
    conf: dict[str, str]
    """SQL settings of this query alone"""
    storage: str
    """level at which a receiver stores"""
    checkpoint: str

    @property
    def addresses(self) -> list[str]:
        """Return the address of each sender's socket."""
        return self.address.split(",")


class Stop(Struct, frozen=True, tag="stop"):
    """Stop reading; what is under way is given up. Spark goes on."""


Command = StartSession | Read | Stop


def first_line(error: Exception) -> str:
    """Return what a user needs to read first of an error: of one that Java raised that is its second line."""
    lines = [line for line in str(error).strip().splitlines() if not line.startswith("An error occurred while calling")]
    return lines[0].removeprefix(": ") if lines else type(error).__name__
