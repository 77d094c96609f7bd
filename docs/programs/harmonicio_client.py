"""Send lines to a stream of HarmonicIO, with nothing of this project: frameworks/harmonicio/PROTOCOL.md in Python.

Usage: harmonicio_client.py HOST:DATA_PORT STREAM < lines

Each line is a message. The program ends once every message is acknowledged by a PE or by the master's queue.
"""

import json
import secrets
import socket
import struct
import sys
import time
from contextlib import suppress
from select import select

HEADER = struct.Struct("<4sBBHIQQQII")
HELLO, WELCOME, DATA, ACK, LEASES, RENEW, BYE = range(1, 8)
EQUAL = 1
SESSION = secrets.randbits(62)  # a new one for each process: PEs know which numbers of a session they have processed
DEADLINE_S = 60.0


def crc_of_byte(value):
    """Return the entry of the table of CRC-32C."""
    for _ in range(8):
        value = value >> 1 ^ 0x82F63B78 * (value & 1)
    return value


TABLE = [crc_of_byte(value) for value in range(256)]


def crc32c(data):
    """Return the checksum of bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def control_frame(kind, fields=None):
    """Return a HELLO or RENEW."""
    body = json.dumps(fields).encode() if fields else b""
    return with_header(body, kind, 0, 0, 0, 0, 0)


def data_frame(number, low_watermark, message):
    """Return a DATA frame of one message."""
    return with_header(message, DATA, EQUAL, 1, SESSION, number, low_watermark)


def with_header(body, *fields):
    """Return a frame; `fields` are kind, flags, count, session, first, low watermark."""
    head = HEADER.pack(b"HIO4", 1, *fields, len(body), crc32c(body))
    return head + struct.pack("<I", crc32c(head)) + body


class Peer:
    """A connection to the master or to a PE, and the messages by number that it has not acknowledged."""

    def __init__(self, host, port, stream):
        self.sock = socket.create_connection((host, port), timeout=DEADLINE_S)
        self.sock.sendall(control_frame(HELLO, {"role": "connector", "c_name": stream, "session": SESSION}))
        self.received, self.unacked, self.credit, self.draining = b"", {}, (0, 0), False

    def takes(self, message):
        """Return whether there is credit; a message that is longer goes where nothing is unacknowledged."""
        (messages, size), waiting = self.credit, self.unacked.values()
        if self.draining or messages == 0:
            return False
        return not waiting or (len(waiting) < messages and sum(map(len, waiting)) + len(message) <= size)

    def send(self, number, message, low_watermark):
        """Send a message for which there is credit; `read` finds out where the connection has ended."""
        self.unacked[number] = message
        with suppress(OSError):
            self.sock.sendall(data_frame(number, low_watermark, message))

    def read(self):
        """Receive; return (kind, fields) of control frames, and (ACK, messages that failed)."""
        chunk = self.sock.recv(2**16)
        if not chunk:
            raise ConnectionResetError("the connection has ended")
        self.received += chunk
        while len(self.received) >= 48:
            _, _, kind, _, count, session, first, _, size, crc = HEADER.unpack(self.received[:44])
            if crc32c(self.received[:44]) != int.from_bytes(self.received[44:48], "little"):
                raise ConnectionError("a damaged header")
            if len(self.received) < 48 + size:
                return
            body, self.received = self.received[48 : 48 + size], self.received[48 + size :]
            if crc32c(body) != crc:
                raise ConnectionError("a damaged body")
            yield kind, json.loads(body) if kind != ACK else self.acknowledge(session, first, count, body)

    def acknowledge(self, session, first, count, body):
        """Settle messages, take the new credit, and return how many failed; a count of 0 is credit alone."""
        failed, *self.credit = struct.unpack("<IIQ", body)
        for number in range(first, first + count) if session == SESSION else ():
            self.unacked.pop(number, None)
        return failed


class Client:
    """Sends messages to the PEs of one stream, and to the master's queue while there is none."""

    def __init__(self, host, port, stream, messages):
        self.stream, self.master = stream, Peer(host, port, stream)
        self.pes, self.leased, self.failed = {}, None, 0  # leases follow the WELCOME
        self.to_send = dict(enumerate(messages))

    def run(self):
        """Send everything; return once all of it is acknowledged."""
        renewed = progress = time.monotonic()
        left = len(self.to_send)
        while left:
            if time.monotonic() > renewed + 1:
                self.master.sock.sendall(control_frame(RENEW))
                renewed = time.monotonic()
            peers = {peer.sock: peer for peer in self.peers()}
            for sock in select(list(peers), [], [], 0.05)[0]:
                self.read(peers[sock])
            self.connect()
            self.send()
            before, left = left, len(self.to_send) + sum(len(peer.unacked) for peer in self.peers())
            progress = time.monotonic() if left < before else progress
            if time.monotonic() > progress + DEADLINE_S:
                sys.exit(f"{left} messages are not acknowledged, none of them within {DEADLINE_S:g} s")

    def peers(self):
        """Return all connections."""
        return [self.master, *self.pes.values()]

    def read(self, peer):
        """Receive from a peer; of a PE that is lost, send everything again, with the same numbers."""
        try:
            for kind, said in peer.read():
                if kind == WELCOME:
                    peer.credit = said["credit_messages"], said["credit_bytes"]
                elif kind == LEASES:
                    self.leased = {place["id"]: (place["host"], place["port"]) for place in said["places"]}
                elif kind == ACK:
                    self.failed += said
                elif kind == BYE and said["reason"].startswith("refused"):
                    sys.exit(said["reason"])
                elif kind == BYE:
                    peer.draining = True  # it acknowledges what it has, and closes the connection
        except OSError:
            if peer is self.master:
                raise
            self.pes = {name: one for name, one in self.pes.items() if one is not peer}
            self.to_send = peer.unacked | self.to_send

    def connect(self):
        """Connect to PEs that have been leased."""
        for name in (self.leased or {}).keys() - self.pes.keys():
            try:
                self.pes[name] = Peer(*self.leased[name], self.stream)
            except OSError:
                continue  # it has ended; other leases will come

    def send(self):
        """Send while there is credit, each to the PE that has least to do."""
        for number, message in sorted(self.to_send.items()):
            peers = [peer for name, peer in self.pes.items() if name in self.leased and peer.takes(message)]
            if self.leased == {} and self.master.takes(message):
                peers = [self.master]
            if not peers:
                return
            low_watermark = min([number, *(low for peer in self.peers() for low in peer.unacked)])
            min(peers, key=lambda peer: len(peer.unacked)).send(number, self.to_send.pop(number), low_watermark)


if __name__ == "__main__":
    address, stream = sys.argv[1:]
    host, _, port = address.rpartition(":")
    client = Client(host, int(port), stream, [line.rstrip(b"\n") for line in sys.stdin.buffer])
    client.run()
    print(f"all acknowledged, {client.failed} failed")  # noqa: T201
