"""One point of the grid."""

from msgspec import Struct

from bench.model.message_sizes import Sizes
from bench.units import Size, seconds_text, size_text


class Cell(Struct, frozen=True):
    """One point of the grid: a system, a message size in bytes and a CPU cost per message in seconds."""

    framework: str
    source: str
    message_bytes: int
    """where sizes differ, their mean"""
    cpu_seconds: float
    sizes: Sizes | None = None
    """their distribution, where they differ"""

    @property
    def system(self) -> str:
        """The framework and the source it reads, such as "spark/kafka"."""
        return f"{self.framework}/{self.source}"

    @property
    def name(self) -> str:
        """A name that is fit for a folder, such as "spark-kafka-10kB-20ms"; no two cells of a grid have the same."""
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
        """Its size as people read it; where sizes differ, their mean, and that it is one."""
        return size_text(self.message_bytes) if self.sizes is None else f"mean {size_text(self.message_bytes)}"
