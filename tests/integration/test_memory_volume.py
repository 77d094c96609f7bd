"""Millions of messages pass through memory, and every one is accounted for."""

import threading
import time

from bench.plugins.protocols import Endpoint
from bench.system.pipe import Pipe
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.load_spec import LoadSpec
from bench.workload.open_loop import OpenLoopSender, run_load
from bench.workload.processing import MessageProcessor
from producers.memory.sender import MemorySender


def passed(count, size=100):
    """(sent, counts) of so many messages that one thread sends as fast as it can and another one works on."""
    name, counts, over = f"volume-{count}", DeliveryCounts(), threading.Event()
    sender, pipe = MemorySender(Endpoint("memory", name)), Pipe.named(name)

    def consume():
        work = MessageProcessor(size, 0.5)
        while True:
            batch = pipe.take(10_000, 0.2)
            for report in work.process(batch) if batch else ():
                counts.add(report)
            if not batch and over.is_set():
                return

    reader = threading.Thread(target=consume)
    reader.start()
    told = []
    spec = LoadSpec(1, 1e9, time.monotonic(), count / 1e9, message_bytes=size, cpu_seconds=0.0, entropy=0.5)
    run_load(OpenLoopSender(spec, sender), told.append, lambda: False)
    over.set()
    reader.join(timeout=60)
    Pipe.forget(name)
    return told[-1], counts


def test_a_million_messages_pass_exactly():
    """Nothing lost, duplicated, out of order or corrupted."""
    sent, counts = passed(1_000_000)
    assert sent.confirmed == counts.count == 1_000_000
    assert counts.reconcile(sent.by_producer()) == (0, 0)
    assert (counts.corrupted, counts.out_of_order) == (0, 0)
