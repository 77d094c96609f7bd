"""Stubs of PEs and masters, which send what a test tells them to."""

import socket

from processes import DEADLINE

from frameworks.harmonicio.engine.wire.control_messages import NodeAddress, Welcome
from frameworks.harmonicio.engine.wire.frame import FrameKind, encode_ack, encode_control
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool, FrameReader


class Stub:
    """A listener that sends what the test tells it to, and nothing else."""

    def __init__(self, name):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(DEADLINE)
        self.address = NodeAddress(name, *self.listener.getsockname())

    def welcome(self, messages=100, *, instance="", **more):
        """Accept a connection and answer with a Welcome of so much credit."""
        sock, _ = self.listener.accept()
        sock.settimeout(DEADLINE)
        sock.sendall(encode_control(FrameKind.WELCOME, Welcome(instance or self.address.id, messages, 2**20, **more)))
        return sock


class ReceivedFrames:
    """The frames that a welcomed connection has received, without waiting for more."""

    def __init__(self, sock):
        sock.settimeout(0)
        self.sock, self._reader, self.frames = sock, FrameReader(BufferPool(), 2**30), []

    def look(self):
        """Return all DATA frames so far; what was given to the kernel of this host has arrived."""
        self.frames += [frame for frame in self._reader.read(self.sock) if frame.header.kind is FrameKind.DATA]
        return self.frames

    def acknowledge(self, frame, messages=100):
        """Acknowledge a frame, with so much new credit."""
        header = frame.header
        self.sock.sendall(encode_ack(header.session, header.first, header.count, failed=0, credit=(messages, 2**20)))
