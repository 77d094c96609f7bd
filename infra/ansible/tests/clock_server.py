"""Serves this machine's own time by NTP (RFC 5905, section 7.3) until it is ended, so that a test host has a clock to follow."""

import socket
import struct
import sys
import time

SINCE_1900 = 2_208_988_800
HEADER = struct.Struct("!BBbb II4s QQQQ")


def main() -> None:
    """Answer every question at the address that the command line names, such as 127.0.0.1:22124."""
    host, port = sys.argv[1].split(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind((host, int(port)))
        while True:
            question, asker = here.recvfrom(512)
            if len(question) >= HEADER.size and question[0] & 7 == 3:
                here.sendto(answer(question, now()), asker)


def answer(question: bytes, received: int) -> bytes:
    """What a server of stratum 9 says: when the question was sent, as it says itself, when it came, and what time it is."""
    version, sent = question[0] & 0x38, HEADER.unpack(question[: HEADER.size])[-1]
    return HEADER.pack(version | 4, 9, question[2] % 128, -20, 0, 0, b"LOCL", received, sent, received, now())


def now() -> int:
    """The time as NTP writes it: seconds since 1900 in the upper half, parts of a second in the lower."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return (seconds + SINCE_1900) << 32 | (nanoseconds << 32) // 1_000_000_000


if __name__ == "__main__":
    main()
