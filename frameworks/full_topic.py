"""A full topic: so many messages written beforehand, from which everybody may read as often as they like."""

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

from bench.errors import NotReadyError
from bench.model.cell import Cell
from bench.model.message_codec import MessageWriter
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint, Sender
from bench.units import Size

PARTS = 2
ENTROPY = 0.75
_FILL_TIMEOUT_S = 180.0
"""Seconds within which a topic must be full."""
_PAUSE_S = 0.002
_STEP_BYTES, _STEP_MESSAGES = 4_000_000, 4096


@contextmanager
def fill_topic(
    source_name: str, size: int, count: int, env: RunEnvironment, settings: Mapping[str, Any]
) -> Iterator[Endpoint]:
    """Yield a topic with messages 0 to `count` - 1 of producer 0, written to the disk; deleted after the block."""
    if source_name == "memory":
        yield Endpoint("memory", "", parts=PARTS)
        return
    source = registry.make_source(source_name, {source_name: {"partitions": PARTS, **settings}})
    try:
        endpoint = source.open(Cell("python", source_name, size, 0.0), env)
        if source_name == "pulsar":
            _keep(endpoint)
        with closing(registry.open_sender(endpoint)) as sender:
            _fill(sender, size, count)
        os.sync()  # what is still to be written would be written while somebody reads
        yield endpoint
    finally:
        source.close()


def _keep(endpoint: Endpoint) -> None:
    """Open a subscription that never reads.

    Without one Pulsar deletes at once, with a reader's what that one has read.
    """
    import pulsar

    from producers.pulsar.connection import make_client

    client = make_client(endpoint.address, endpoint.client)
    try:
        client.subscribe(endpoint.name, "kept", initial_position=pulsar.InitialPosition.Earliest)
    finally:
        client.shutdown()


def _fill(sender: Sender, size: int, count: int) -> None:
    """Send messages and wait until all are confirmed. Raises NotReadyError when that takes too long or one fails."""
    write = MessageWriter(run=1, producer=0, size=size, cost=0.0, entropy=ENTROPY).write
    deadline, sent, step = time.monotonic() + _FILL_TIMEOUT_S, 0, max(1, min(_STEP_MESSAGES, _STEP_BYTES // size))
    while sent < count:
        waiting = write(sent, np.zeros(min(step, count - sent)), 0.0)
        while waiting:
            taken = sender.send(waiting)
            waiting, sent = waiting[taken:], sent + taken
            _check(deadline)
            if waiting:
                time.sleep(_PAUSE_S)
    while (confirmed := sender.confirmed())[0] < count:
        if confirmed[1]:
            raise NotReadyError(f"{confirmed[1]} messages of {size} B were refused")
        _check(deadline)
        time.sleep(_PAUSE_S)


def parse_size(text: str) -> Size:
    """Return the size of messages, or of a topic, that stands on a benchmark's command line."""
    try:
        return Size.read(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(f"{text!r} is not {problem}") from problem


def _check(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise NotReadyError(f"the topic was not full within {_FILL_TIMEOUT_S:g} s")
