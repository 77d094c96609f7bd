"""Bytes carried by TCP sockets, as the kernel counts them (sock_diag(7), tcp_info of Linux 4.1 and later).

pyroute2 does the same at fourteen times the cost (docs/decisions/0105-tcp-counters-over-netlink.md).
"""

import os
import re
import socket
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_NETLINK, _SOCK_DIAG, _BY_FAMILY = 16, 4, 20
_REQUEST_DUMP = 0x301
_ERROR, _DONE = 2, 3
_HEADER, _MESSAGE_BYTES, _INODE_AT = struct.Struct("=IHHII"), 72, 68
_OWN_AT, _PEER_AT, _MAPPED, _LOOPBACK6 = 8, 24, bytes(10) + b"\xff\xff", bytes(15) + b"\x01"
_INFO, _ALL_STATES = 2, 0xFFF
_ACKED_AT = 120
"""Offset in tcp_info of the bytes that the peer has acknowledged and the bytes received, eight bytes each."""
_TIMEOUT_S = 1.0
"""Of the kernel's reply."""
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class TcpBytes(NamedTuple):
    """Bytes that one socket has sent (and its peer acknowledged) and received since it was opened."""

    sent: int
    received: int
    outside: bool = False
    """true if its peer is on another host, so that a link carried the bytes"""


def read_tcp_bytes() -> dict[int, TcpBytes] | None:
    """Return the bytes of every TCP socket of this network namespace by inode; None if the kernel has no counters."""
    try:
        with socket.socket(_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as netlink:
            netlink.settimeout(_TIMEOUT_S)
            return {inode: tcp for family in (socket.AF_INET, socket.AF_INET6) for inode, tcp in _dump(netlink, family)}
    except (OSError, struct.error):
        return None


def socket_inodes(pids: Iterable[int]) -> set[int]:
    """Return the inodes of all sockets of these processes; skip processes that are gone or belong to another user."""
    inodes: set[int] = set()
    for pid in pids:
        folder = Path(f"/proc/{pid}/fd")
        try:
            names = os.listdir(folder)  # noqa: PTH208  a Path for each of hundreds would be most of the work
        except OSError:
            continue
        for name in names:
            try:
                match = _SOCKET.fullmatch(os.readlink(f"{folder}/{name}"))  # noqa: PTH115  as above
            except OSError:
                continue
            if match:
                inodes.add(int(match[1]))
    return inodes


def _dump(netlink: socket.socket, family: int) -> Iterator[tuple[int, TcpBytes]]:
    """Yield (inode, bytes) for each TCP socket of a family."""
    request = struct.pack("=BBBxI48x", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), _ALL_STATES)
    netlink.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _REQUEST_DUMP, 0, 0) + request)
    while True:
        reply = netlink.recv(2**18)
        position = 0
        while position + _HEADER.size <= len(reply):
            length, kind, *_ = _HEADER.unpack_from(reply, position)
            if kind == _DONE:
                return
            if kind == _ERROR or length < _HEADER.size:
                raise OSError("the kernel does not provide socket counters")
            message = reply[position + _HEADER.size : position + length]
            info = _attribute(message[_MESSAGE_BYTES:], _INFO)
            if info is not None and len(info) >= _ACKED_AT + 16:
                sent, received = struct.unpack_from("=QQ", info, _ACKED_AT)
                (inode,) = struct.unpack_from("=I", message, _INODE_AT)
                yield inode, TcpBytes(sent, received, _is_outside(message, family))
            position += (length + 3) & ~3


def _is_outside(message: bytes, family: int) -> bool:
    """Return True if the two addresses of an inet_diag_msg belong to two hosts."""
    length = 4 if family == socket.AF_INET else 16
    own, peer = (message[at : at + length] for at in (_OWN_AT, _PEER_AT))
    mapped = peer[12:] if peer.startswith(_MAPPED) else peer
    return own != peer and peer != _LOOPBACK6 and not (len(mapped) == 4 and mapped[0] == 127)


def _attribute(attributes: bytes, wanted: int) -> bytes | None:
    """Return the value of one netlink attribute; None if it is missing."""
    position = 0
    while position + 4 <= len(attributes):
        length, kind = struct.unpack_from("=HH", attributes, position)
        if length < 4:
            return None
        if kind == wanted:
            return attributes[position + 4 : position + length]
        position += (length + 3) & ~3
    return None
