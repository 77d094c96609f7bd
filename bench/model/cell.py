"""One cell of a scenario's grid."""

from typing import Annotated

from msgspec import Meta, Struct

from bench.model.message_sizes import Sizes
from bench.units import Size, seconds_text, size_text


class Cell(Struct, frozen=True):
    """One point of the grid: a system, a message size in bytes and a CPU cost per message in seconds."""

    framework: str
    source: str
    message_bytes: Annotated[int, Meta(ge=1)]
    """the mean, if sizes differ"""
    cpu_seconds: Annotated[float, Meta(ge=0)]
    sizes: Sizes | None = None
    """the distribution of sizes, if they differ"""

    @property
    def system(self) -> str:
        """The framework and the source it reads, such as "spark/kafka"."""
        return f"{self.framework}/{self.source}"

    @property
    def name(self) -> str:
        """A name for files, such as "spark-kafka-10kB-20ms"; unique within a grid."""
        size = size_text(self.message_bytes)
        if Size.read(size) != self.message_bytes:
            size = f"{self.message_bytes} B"
        mix = "-mix" if self.sizes is not None else ""
        point = f"{size}{mix}-{seconds_text(self.cpu_seconds)}".replace(" ", "").replace("µ", "u")
        return f"{self.framework}-{self.source}-{point}"

    @property
    def largest_bytes(self) -> int:
        """The size of the largest message."""
        return self.message_bytes if self.sizes is None else self.sizes.largest

    @property
    def size_text(self) -> str:
        """The message size for reports, such as "10 kB"; "mean 10 kB" if sizes differ."""
        return size_text(self.message_bytes) if self.sizes is None else f"mean {size_text(self.message_bytes)}"
