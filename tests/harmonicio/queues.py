"""Frames into a queue of the master, and messages out of it."""

from frameworks.harmonicio.wire.frame import seal


def put(backlog, first, messages, stream="s", session=1):
    """Put a frame in."""
    head, *body = seal(messages, session, first, 0).buffers
    return backlog.add(stream, head, b"".join(body))


def contents(backlog, stream="s"):
    """All messages of a stream, which are taken."""
    found = []
    while (taken := backlog.take_message(stream)) is not None:
        backlog.done(stream, taken[0].key)
        found.append(taken[1])
    return found
