"""The bodies of control frames: JSON that is validated when it is decoded.

A field whose name on the wire differs from its name here has it in `field(name=...)`.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from frameworks.harmonicio.engine.wire.frame import MAX_BODY_BYTES
from frameworks.harmonicio.engine.wire.shared_memory import SharedMemoryHandle

Name = Annotated[str, Meta(min_length=1, max_length=999)]
"""Name of an image or stream; the legacy protocol cannot carry a longer one."""


def check_names(*names: str) -> None:
    """Raise ValueError unless streams and images with these names can be passed to a process."""
    for name in names:
        if "\0" in name:
            raise ValueError(f"{name[:40]!a} is no name of a stream or an image: it has a NUL")


class Hello(Struct, frozen=True):
    """The first frame of a connection, sent by the side that opened it."""

    role: Literal["connector", "master"]
    c_name: Name
    session: Annotated[int, Meta(ge=0, le=2**62)]
    token: Annotated[str, Meta(max_length=512)] = ""
    shared: SharedMemoryHandle | None = None
    """memory of a connector that a PE on its host may read"""


class Welcome(Struct, frozen=True):
    """The answer to a Hello: the instance that answers, and its initial credit.

    Another `instance` at the same address is another process, which knows nothing of earlier frames.
    """

    instance: str
    credit_messages: int
    """messages that may be unacknowledged"""
    credit_bytes: int
    """bytes that may be unacknowledged"""
    shared: bool = False
    """whether frames may refer to the memory that the Hello offered"""
    max_body_bytes: int = field(default=MAX_BODY_BYTES, name="most_bytes")
    """longest frame body that is accepted"""


class NodeAddress(Struct, frozen=True):
    """The id of a PE, and the host and port at which it listens."""

    id: str
    host: str
    port: int


class Leases(Struct, frozen=True):
    """The PEs that a connector may send to for the next `seconds`; renewed long before they lapse."""

    seconds: float
    addresses: list[NodeAddress] = field(name="places")
    number: int = 0
    """of these among all that the connection was sent"""


class Bye(Struct, frozen=True):
    """The reason for which a connection is being closed."""

    reason: str
