"""A million messages pass through memory, and every one is counted."""

import threading
import time

from bench.system.pipe import Pipe
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.load_spec import LoadSpec
from bench.workload.open_loop import OpenLoopSender, run_load
from bench.workload.processing import MessageProcessor
from producers.memory.source import Sender


def pass_messages(count, size=100):
    """Send so many messages as fast as possible from one thread to another; return (progress, counts)."""
    name, counts, over = f"volume-{count}", DeliveryCounts(), threading.Event()
    client, pipe = Sender(), Pipe.named(name)
    client._pipe = pipe

    def consume():
        processor = MessageProcessor(size, 0.5)
        while True:
            batch = pipe.take(10_000, 0.2)
            for report in processor.process(batch) if batch else ():
                counts.add(report)
            if not batch and over.is_set():
                return

    reader = threading.Thread(target=consume)
    reader.start()
    reported = []
    spec = LoadSpec(1, 1e9, time.monotonic(), count / 1e9, message_bytes=size, cpu_seconds=0.0, entropy=0.5)
    run_load(OpenLoopSender(spec, client), reported.append, lambda: False)
    over.set()
    reader.join(timeout=60)
    Pipe.forget(name)
    return reported[-1], counts


def test_a_million_messages_pass_exactly():
    """Nothing is lost, duplicated, out of order or corrupted."""
    progress, counts = pass_messages(1_000_000)
    assert progress.confirmed == counts.count == 1_000_000
    assert counts.reconcile(progress.by_producer()) == (0, 0)
    assert (counts.corrupted, counts.out_of_order) == (0, 0)
