"""An outlet offers each message once, in the form that its client likes best, until it is taken."""

import numpy as np
import pytest

from bench.model.message_codec import make_filler, read, read_mixed
from bench.model.message_keys import Keys, KeySequence, encode_keys
from bench.model.message_sizes import Sizes, SizeSequence
from bench.workload.batch_writer import BatchWriter
from bench.workload.load_spec import LoadSpec

MIXED = SizeSequence(Sizes(choice=((100, 0.5), (9000, 0.5))), 3)


class Taking:
    """Takes at most so many messages at a time."""

    def __init__(self, most=10**9):
        self.most, self.messages, self.keys = most, [], []

    def send(self, messages):
        self.messages += messages[: self.most]
        return min(self.most, len(messages))

    def confirmed(self):
        return len(self.messages), 0


class Gathering(Taking):
    """The same in pieces, from 1 kB on."""

    gathers_from = 1000

    def send_pieces(self, heads, fillers):
        return self.send([head + rest for head, rest in zip(heads, fillers, strict=True)])


class Keyed(Taking):
    """The same with keys."""

    def send_keyed(self, messages, keys):
        self.keys += keys[: self.most]
        return self.send(messages)


def spec(**more):
    return LoadSpec(1, 1000.0, 0.0, 1.0, **{"message_bytes": 4550, "cpu_seconds": 0.0, "entropy": 0.5, **more})


def sent(client, count=50, **more):
    """The client after so many messages were written and offered until all were taken."""
    outlet = BatchWriter(spec(**more), client)
    outlet.write(0, np.zeros(count), 0.0)
    while outlet.waiting:
        outlet.offer()
    return client


@pytest.mark.parametrize("client", [Taking, Gathering])
@pytest.mark.parametrize("most", [10**9, 7], ids=["all at once", "seven at a time"])
def test_messages_of_one_size_arrive_whole(client, most):
    """In one piece or in two, all at once or little by little."""
    found = read(sent(client(most)).messages, 4550, make_filler(4550, 0.5))
    assert (found.seq.tolist(), found.corrupted) == (list(range(50)), 0)


@pytest.mark.parametrize("client", [Taking, Gathering])
@pytest.mark.parametrize("most", [10**9, 7], ids=["all at once", "seven at a time"])
def test_messages_of_mixed_sizes_arrive_whole(client, most):
    """Each with its own size."""
    found = read_mixed(sent(client(most), sizes=MIXED).messages, make_filler(9000, 0.5), MIXED.lookup)
    assert (found.seq.tolist(), found.corrupted) == (list(range(50)), 0)


@pytest.mark.parametrize("most", [10**9, 7], ids=["all at once", "seven at a time"])
def test_each_message_keeps_its_key(most):
    """Also when the client takes some of them later."""
    keys = KeySequence(Keys(5), 2)
    numbers = keys.lookup(np.zeros(50, dtype=np.int64), np.arange(50, dtype=np.uint64)).tolist()
    assert sent(Keyed(most), keys=keys).keys == [encode_keys(keys.keys)[number] for number in numbers]


def test_without_headers_of_their_own_messages_are_the_same_every_time():
    """What a calibration holds the load against."""
    client = Taking()
    outlet = BatchWriter(spec(stamped=False), client)
    for first in (0, 10):
        outlet.write(first, np.full(10, float(first)), float(first))
        outlet.offer()
    assert client.messages[:10] == client.messages[10:]
