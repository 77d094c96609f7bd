"""A source that no framework reads: opened, with a load generator, while its messages are discarded."""

import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from bench.calibration.worker import Discarding
from bench.config.scenario import Scenario
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint, LoadGenerator, Source
from bench.plugins.split_source import open_endpoint
from bench.system.child import Child
from bench.system.ipc import Failure, Ready

READER_TIMEOUT_S = 60.0
"""For a discarding reader to start."""


@contextmanager
def open_loaded_source(cell: Cell, scenario: Scenario, env: RunEnvironment) -> Iterator[tuple[Source, LoadGenerator]]:
    """Yield the cell's source, and its load generator, open there; nobody keeps the messages."""
    load_generator = registry.load_generator_for(registry.source_plugin(cell.source), scenario)
    with (
        open_source(cell, scenario, env, scenario.load.worker_count) as (source, endpoint),
        closing(load_generator.open(endpoint, env, scenario.load.worker_count)) as load,
        discard_messages(endpoint, env),
    ):
        yield source, load


@contextmanager
def open_source(
    cell: Cell, scenario: Scenario, env: RunEnvironment, senders: int | None = None
) -> Iterator[tuple[Source, Endpoint]]:
    """Yield the cell's source, open and empty, and its endpoint for so many senders; None: one of this machine."""
    source = registry.make_source(cell.source, scenario.settings)
    try:
        endpoint = source.open(cell, env) if senders is None else open_endpoint(source, cell, env, senders)
        yield source, endpoint
    finally:
        source.close()


@contextmanager
def discard_messages(endpoint: Endpoint, env: RunEnvironment) -> Iterator[None]:
    """Read and discard messages during the block, where the source needs it."""
    plugin = registry.source_plugin(endpoint.source)
    if plugin.discard is None:
        yield
    elif plugin.capabilities.in_process:
        over = threading.Event()
        thread = threading.Thread(target=plugin.discard, args=(endpoint, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(timeout=5)
    else:
        child = start_worker(env, name="discarding-reader", replies=Ready | Failure)
        try:
            child.inbox.send(Discarding(endpoint))
            child.wait_reply(Ready, READER_TIMEOUT_S)
            yield
        finally:
            child.stop()


def start_worker(env: RunEnvironment, *, name: str, replies: Any) -> Child:
    """Start a calibration worker.

    Args:
        env: Its supervisor starts the process.
        name: Name of the process, for logs and messages.
        replies: Type of the messages that it may send.
    """
    command = [sys.executable, "-m", "bench.calibration.worker"]
    return env.supervisor.start(command, name=name, role="framework", received=replies)
