"""The words of control frames; JSON, read strictly."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from frameworks.harmonicio.engine.wire.frame import MAX_BODY
from frameworks.harmonicio.engine.wire.shared_memory import Shared

Name = Annotated[str, Meta(min_length=1, max_length=999)]
"""Of an image or stream; the old wire cannot carry a longer one."""


class Hello(Struct, frozen=True):
    """The first frame of a connection, from whoever opened it."""

    role: Literal["connector", "master"]
    c_name: Name
    session: Annotated[int, Meta(ge=0, le=2**62)]
    token: Annotated[str, Meta(max_length=512)] = ""
    shared: Shared | None = None
    """memory of a connector that a PE of its host may read"""


class Welcome(Struct, frozen=True):
    """The answer: who answers (another instance has forgotten everything), and how much may be on its way unacknowledged."""

    instance: str
    credit_messages: int
    credit_bytes: int
    shared: bool = False
    """whether frames may refer to the memory that was offered"""
    most_bytes: int = MAX_BODY
    """of a frame's body that is accepted; who does not say it is believed to accept any"""


class Place(Struct, frozen=True):
    """Where a PE listens."""

    id: str
    host: str
    port: int


class Leases(Struct, frozen=True):
    """The PEs that a connector may send to for `seconds` more; renewed long before."""

    seconds: float
    places: list[Place]


class Bye(Struct, frozen=True):
    """Why a connection is being closed."""

    reason: str
