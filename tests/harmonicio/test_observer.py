"""A connector and a PE tell their observers of the same frames, and a PE of its waits."""

import itertools
import socket
import threading
from contextlib import closing

import pytest
from processes import wait_until
from stubs import Stub

from frameworks.harmonicio.engine.connector import Feeder, Options
from frameworks.harmonicio.engine.observer import lease_transfer
from frameworks.harmonicio.engine.pe.engine import Engine, EngineOptions
from frameworks.harmonicio.engine.pe.function import UserFunction
from frameworks.harmonicio.engine.wire.control_messages import Leases, NodeAddress
from frameworks.harmonicio.engine.wire.frame import FrameKind, encode_control

LEASES = 5
"""Number of the leases that the stub of a master grants."""


class Notes:
    """An observer that keeps what it is told."""

    def __init__(self):
        self.waits, self.passed = [], {"sent": [], "received": []}

    def waited(self, began, ended):
        self.waits.append((began, ended))

    def sent(self, transfer, at):
        self.passed["sent"].append((transfer, at))

    def received(self, transfer, at):
        self.passed["received"].append((transfer, at))

    def transfers(self, way, kind):
        return [transfer for transfer, _ in self.passed[way] if transfer.kind == kind]


@pytest.fixture
def engine():
    """A PE whose function has an observer."""
    function = UserFunction("pe_functions:plain", {})
    function.observer = Notes()
    engine = Engine(
        socket.create_server(("127.0.0.1", 0)), function, EngineOptions(c_name="s", max_message_bytes=2**20)
    )
    thread = threading.Thread(target=engine.run, daemon=True)
    thread.start()
    yield engine
    engine.stop()
    thread.join(10)


@pytest.fixture
def feeder(engine):
    """A connector with an observer, to which a stub of a master has leased that PE."""
    stub = Stub("master")
    with closing(stub.listener), closing(Feeder(Options(c_name="s", port=stub.address.port))) as feeder:
        feeder.observer = Notes()
        feeder.step()
        master = stub.welcome()
        pe = NodeAddress("pe", *engine._listener.getsockname())  # the port that it was given
        master.sendall(encode_control(FrameKind.LEASES, Leases(10.0, [pe], LEASES)))
        wait_until(lambda: (feeder.step(), feeder.pes)[1], "the PE")
        yield feeder
        master.close()


def send(feeder, count):
    """Send single messages one after the other, each once the one before is acknowledged."""
    for _ in range(count):
        assert feeder.offer([b"message"]) == 1
        wait_until(lambda: (feeder.step(), feeder.unacked == 0)[1], "the acknowledgement")


def test_both_ends_of_a_frame_have_the_same_channel_and_number(feeder, engine):
    """Of messages, and of their acknowledgements."""
    send(feeder, 3)
    connector, pe = feeder.observer, engine.function.observer
    sent, received = connector.transfers("sent", "data"), pe.transfers("received", "data")
    assert sent == received
    assert len({(one.channel, one.number) for one in sent}) == 3
    leases, *acks = connector.transfers("received", "control")
    assert leases == lease_transfer(feeder._state.session, LEASES)
    assert acks == pe.transfers("sent", "control")


def test_a_frame_that_ends_a_wait_is_received_at_its_end(feeder, engine):
    """So that a path enters the PE there. On a busy machine a frame may come before the PE waits again."""
    send(feeder, 3)
    pe = engine.function.observer
    times = [0.0, *(at for _, at in pe.passed["received"])]
    ended_waits = [[end for _, end in pe.waits if before < end <= at] for before, at in itertools.pairwise(times)]
    assert ended_waits[0]
    assert all(not ends or ends[-1] == at for ends, at in zip(ended_waits, times[1:], strict=True))
    assert all(began <= ended for began, ended in pe.waits)


def test_an_acknowledgement_is_received_when_the_connector_looked(feeder):
    """That is the time that it gave to its step."""
    assert feeder.offer([b"message"]) == 1
    wait_until(lambda: (feeder.step(12345.0), feeder.unacked == 0)[1], "the acknowledgement")
    (_, (acked, at)) = feeder.observer.passed["received"]
    assert (acked.channel.endswith("direct ack"), at) == (True, 12345.0)
