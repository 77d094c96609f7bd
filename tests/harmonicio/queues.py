"""Frames into a queue of the master, messages out of it, and a disk that is full."""

import contextlib
import resource

from frameworks.harmonicio.engine.wire.frame import encode_frame


def put(queue, first, messages, stream="s", session=1):
    """Put a frame in."""
    head, *body = encode_frame(messages, session, first, 0).buffers
    return queue.add(stream, head, b"".join(body))


def contents(queue, stream="s"):
    """All messages of a stream, which are taken."""
    found = []
    while (taken := queue.take_message(stream)) is not None:
        queue.done(stream, taken[0].key)
        found.append(taken[1])
    return found


@contextlib.contextmanager
def full(most_bytes):
    """No file grows beyond that: what goes beyond it is written in part, and then refused, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
