"""Free ports of the loopback interface."""

import contextlib
import socket

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Return so many different ports at which nobody listens right now."""
    with contextlib.ExitStack() as stack:
        ends = [stack.enter_context(socket.socket()) for _ in range(count)]
        for end in ends:
            end.bind((LOOPBACK, 0))
        return [end.getsockname()[1] for end in ends]
