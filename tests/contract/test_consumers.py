"""One suite for every installed consumer: it reads its source's messages once, in the order of each part, and closes
at any time.
"""

import contextlib
import time

import numpy as np
import pytest

from bench.errors import HarnessError
from bench.model.cell import Cell
from bench.model.message_codec import MessageWriter, read
from bench.model.message_filler import make_filler
from bench.plugins import registry
from bench.plugins.plugin import SourcePlugin

SIZE, ENTROPY = 100, 0.5
DEADLINE = 100.0


def needs_server(name):
    """Return whether opening the source starts a server."""
    return registry.source_plugin(name).preflight is not SourcePlugin.preflight


CONSUMERS = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.real] if needs_server(name) else [])
        for name in registry.names("consumers")
    ],
)


class Stream:
    """A source with its sender, and consumers of it."""

    def __init__(self, name, env):
        self.name, self._sent, self.consumers = name, 0, []
        self.source = registry.make_source(name, {})
        self.endpoint = self.source.open(Cell("python", name, SIZE, 0.0), env)
        self.sender = registry.open_sender(self.endpoint)

    def read_by(self, members):
        """Open that many consumers."""
        for member in range(members):
            self.consumers.append(registry.open_consumer(self.endpoint, member, members))

    def send(self, count):
        """Send the next messages of one producer; a source that is full has consumers that read meanwhile."""
        messages = MessageWriter(run=1, producer=0, size=SIZE, cost=0.0, entropy=ENTROPY).write(
            self._sent, np.zeros(count), 0.0
        )
        self._sent += count
        deadline = time.monotonic() + DEADLINE
        while messages := messages[self.sender.send(messages) :]:
            assert time.monotonic() < deadline, "the source takes no more"
            self.sender.confirmed()
            time.sleep(0.005)

    def take(self, count, most=10_000):
        """Return the batches that the consumers take until there are that many messages, and none more come."""
        batches, deadline = [], time.monotonic() + DEADLINE
        while sum(map(len, batches)) < count:
            assert time.monotonic() < deadline, f"{sum(map(len, batches))} of {count} messages came"
            batches += [list(batch) for consumer in self.consumers if (batch := consumer.take(most, 0.05))]
            self.sender.confirmed()
        return batches + [list(batch) for consumer in self.consumers if (batch := consumer.take(most, 0.1))]

    def close(self):
        for plugin in (*self.consumers, self.sender, self.source):
            plugin.close()


@pytest.fixture
def stream(env):
    """Opens streams; they are closed afterwards."""
    opened = []

    def open_stream(name):
        opened.append(Stream(name, env))
        return opened[-1]

    yield open_stream
    for one in opened:
        one.close()


def numbers(batch):
    """Return the sequence numbers of intact messages."""
    heads = read(batch, SIZE, make_filler(SIZE, ENTROPY))
    assert heads.corrupted == 0
    return heads.seq.tolist()


def test_every_consumer_has_a_source_of_its_name():
    """It could read nothing otherwise."""
    assert set(registry.names("consumers")) <= set(registry.names("sources"))


@CONSUMERS
@pytest.mark.parametrize("members", [1, 2])
def test_members_share_the_messages(stream, name, members):
    """Together they get every message once, whole."""
    reading = stream(name)
    reading.read_by(members)
    reading.send(500)
    assert sorted(number for batch in reading.take(500) for number in numbers(batch)) == list(range(500))


@CONSUMERS
def test_a_batch_is_no_larger_than_what_was_asked_for(stream, name):
    """The rest comes with the next batches; a batch is in order if the endpoint promises order."""
    reading = stream(name)
    reading.read_by(1)
    reading.send(100)
    batches = [numbers(batch) for batch in reading.take(100, most=7)]
    assert max(map(len, batches)) <= 7
    assert sorted(number for batch in batches for number in batch) == list(range(100))
    if reading.endpoint.ordered:
        assert all(batch == sorted(batch) for batch in batches)


@CONSUMERS
def test_nothing_comes_where_nothing_was_sent(stream, name):
    """Taking ends after the time that was given, not much later."""
    reading = stream(name)
    reading.read_by(1)
    begun = time.monotonic()
    assert not reading.consumers[0].take(10, 0.2)
    assert time.monotonic() < begun + DEADLINE


@CONSUMERS
def test_what_was_sent_after_opening_is_not_missed(stream, name):
    """A message that is sent at once arrives, too."""
    reading = stream(name)
    reading.read_by(1)
    reading.send(1)
    assert [numbers(batch) for batch in reading.take(1)] == [[0]]


@CONSUMERS
def test_closing_twice_does_no_harm(stream, name):
    """Whoever opens a consumer closes it however it went."""
    reading = stream(name)
    reading.read_by(1)
    assert [reading.consumers[0].close(), reading.consumers[0].close()] == [None, None]


@CONSUMERS
def test_a_source_that_is_gone_raises_at_most_an_error_of_the_harness(stream, name):
    """The consumer can be closed, no matter if it notices when it is opened, when it reads, or not at all."""
    gone = stream(name)
    gone.close()
    taken = []
    with contextlib.suppress(HarnessError), contextlib.closing(registry.open_consumer(gone.endpoint)) as consumer:
        taken += consumer.take(1, 0.1)
    assert taken == []
