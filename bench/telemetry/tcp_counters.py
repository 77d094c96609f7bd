"""What the TCP sockets of processes have carried, as the kernel counts it (sock_diag(7), tcp_info of Linux 4.1 and later)."""

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
"""Of tcp_info: bytes that the peer has acknowledged, then bytes that were received, eight bytes each."""
_TIMEOUT_S = 1.0
"""Seconds for the kernel to answer."""
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class Carried(NamedTuple):
    """Bytes that one socket has sent (and its peer acknowledged) and received since it was opened."""

    sent: int
    received: int
    outside: bool = False
    """whether its peer is on another host, so that a link has carried it"""


def carried() -> dict[int, Carried] | None:
    """What every TCP socket of this network namespace has carried, by inode; None where the kernel does not tell."""
    try:
        with socket.socket(_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as netlink:
            netlink.settimeout(_TIMEOUT_S)
            return {
                inode: found for family in (socket.AF_INET, socket.AF_INET6) for inode, found in _dump(netlink, family)
            }
    except (OSError, struct.error):
        return None


def sockets_of(pids: Iterable[int]) -> set[int]:
    """The inodes of all sockets that these processes hold; those of processes that are gone or somebody else's are left out."""
    found: set[int] = set()
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
                found.add(int(match[1]))
    return found


def _dump(netlink: socket.socket, family: int) -> Iterator[tuple[int, Carried]]:
    """(inode, what it carried) for each TCP socket of a family."""
    asked = struct.pack("=BBBxI48x", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), _ALL_STATES)
    netlink.send(_HEADER.pack(_HEADER.size + len(asked), _BY_FAMILY, _REQUEST_DUMP, 0, 0) + asked)
    while True:
        answer = netlink.recv(2**18)
        place = 0
        while place + _HEADER.size <= len(answer):
            length, kind, *_ = _HEADER.unpack_from(answer, place)
            if kind == _DONE:
                return
            if kind == _ERROR or length < _HEADER.size:
                raise OSError("the kernel does not tell of sockets")
            message = answer[place + _HEADER.size : place + length]
            info = _attribute(message[_MESSAGE_BYTES:], _INFO)
            if info is not None and len(info) >= _ACKED_AT + 16:
                sent, received = struct.unpack_from("=QQ", info, _ACKED_AT)
                yield (
                    struct.unpack_from("=I", message, _INODE_AT)[0],
                    Carried(sent, received, _is_outside(message, family)),
                )
            place += (length + 3) & ~3


def _is_outside(message: bytes, family: int) -> bool:
    """Whether the two addresses of an inet_diag_msg are of two hosts."""
    length = 4 if family == socket.AF_INET else 16
    own, peer = (message[at : at + length] for at in (_OWN_AT, _PEER_AT))
    mapped = peer[12:] if peer.startswith(_MAPPED) else peer
    return own != peer and peer != _LOOPBACK6 and not (len(mapped) == 4 and mapped[0] == 127)


def _attribute(attributes: bytes, wanted: int) -> bytes | None:
    """The value of one netlink attribute; None where it is missing."""
    place = 0
    while place + 4 <= len(attributes):
        length, kind = struct.unpack_from("=HH", attributes, place)
        if length < 4:
            return None
        if kind == wanted:
            return attributes[place + 4 : place + length]
        place += (length + 3) & ~3
    return None
