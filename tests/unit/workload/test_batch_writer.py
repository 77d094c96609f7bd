"""A batch writer offers each message once, in the format that suits its client, until it is taken."""

import numpy as np
import pytest

from bench.model.message_codec import read, read_mixed
from bench.model.message_filler import make_filler
from bench.model.message_keys import Keys, KeySequence, encode_keys
from bench.model.message_sizes import Sizes, SizeSequence
from bench.workload.batch_writer import BatchWriter
from bench.workload.load_spec import LoadSpec

MIXED = SizeSequence(Sizes(choice=((100, 0.5), (9000, 0.5))), 3)


class TakingClient:
    """A client that takes at most so many messages at a time."""

    def __init__(self, limit=10**9):
        self.limit, self.messages, self.keys = limit, [], []

    def send(self, messages):
        self.messages += messages[: self.limit]
        return min(self.limit, len(messages))

    def confirmed(self):
        return len(self.messages), 0


class Gathering(TakingClient):
    """A client that takes messages in two pieces, from 1 kB on."""

    gathers_from = 1000

    def send_pieces(self, heads, fillers):
        return self.send([head + rest for head, rest in zip(heads, fillers, strict=True)])


class Keyed(TakingClient):
    """A client that takes messages with keys."""

    def send_keyed(self, messages, keys):
        self.keys += keys[: self.limit]
        return self.send(messages)


def spec(**more):
    return LoadSpec(1, 1000.0, 0.0, 1.0, **{"message_bytes": 4550, "cpu_seconds": 0.0, "entropy": 0.5, **more})


def send(client, count=50, **more):
    """Write so many messages, offer them until the client has taken all, and return the client."""
    writer = BatchWriter(spec(**more), client)
    writer.write(0, np.zeros(count), 0.0)
    while writer.pending:
        writer.offer()
    return client


@pytest.mark.parametrize("client", [TakingClient, Gathering])
@pytest.mark.parametrize("limit", [10**9, 7], ids=["all at once", "seven at a time"])
def test_messages_of_one_size_arrive_whole(client, limit):
    """In one piece or in two, all at once or in small parts."""
    headers = read(send(client(limit)).messages, 4550, make_filler(4550, 0.5))
    assert (headers.seq.tolist(), headers.corrupted) == (list(range(50)), 0)


@pytest.mark.parametrize("client", [TakingClient, Gathering])
@pytest.mark.parametrize("limit", [10**9, 7], ids=["all at once", "seven at a time"])
def test_messages_of_mixed_sizes_arrive_whole(client, limit):
    """Each message has its own size."""
    headers = read_mixed(send(client(limit), sizes=MIXED).messages, make_filler(9000, 0.5), MIXED.lookup)
    assert (headers.seq.tolist(), headers.corrupted) == (list(range(50)), 0)


@pytest.mark.parametrize("limit", [10**9, 7], ids=["all at once", "seven at a time"])
def test_each_message_keeps_its_key(limit):
    """Also if the client takes some of them later."""
    keys = KeySequence(Keys(5), 2)
    numbers = keys.lookup(np.zeros(50, dtype=np.int64), np.arange(50, dtype=np.uint64)).tolist()
    assert send(Keyed(limit), keys=keys).keys == [encode_keys(keys.keys)[number] for number in numbers]


def test_messages_without_headers_of_their_own_are_the_same_every_time():
    """Calibration measures the cost of headers by comparison with them."""
    client = TakingClient()
    writer = BatchWriter(spec(stamped=False), client)
    for first in (0, 10):
        writer.write(first, np.full(10, float(first)), float(first))
        writer.offer()
    assert client.messages[:10] == client.messages[10:]
