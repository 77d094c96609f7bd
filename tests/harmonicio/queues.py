"""Helpers for the master's queue: adding frames, taking messages, and a full disk."""

import contextlib
import resource

from frameworks.harmonicio.engine.wire.frame import encode_frame


def put(queue, first, messages, stream="s", session=1):
    """Add a frame to a queue."""
    head, *body = encode_frame(messages, session, first, 0).buffers
    return queue.add(stream, head, b"".join(body))


def contents(queue, stream="s"):
    """Take all messages of a stream, and return them."""
    found = []
    while (taken := queue.take_message(stream)) is not None:
        queue.done(stream, taken[0].key)
        found.append(taken[1])
    return found


@contextlib.contextmanager
def full(most_bytes):
    """Limit the size of files: a longer write is done in part and then fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
