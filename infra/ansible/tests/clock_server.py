"""NTP server (RFC 5905, section 7.3) that serves this machine's time, as the time source of a test host."""

import socket
import struct
import sys
import time

SECONDS_1900_TO_1970 = 2_208_988_800
HEADER = struct.Struct("!BBbb II4s QQQQ")
CLIENT_MODE = 3
SERVER_MODE = 4
STRATUM = 9


def main() -> None:
    """Answer every request at the address on the command line, such as 127.0.0.1:22124; never return."""
    host, port = sys.argv[1].split(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((host, int(port)))
        while True:
            request, client = server.recvfrom(512)
            if len(request) >= HEADER.size and request[0] & 7 == CLIENT_MODE:
                server.sendto(build_response(request, ntp_now()), client)


def build_response(request: bytes, received: int) -> bytes:
    """Return the response to a request: the client's sending time, the time of arrival, and the current time."""
    version, sent = request[0] & 0x38, HEADER.unpack(request[: HEADER.size])[-1]
    poll = request[2] % 128
    return HEADER.pack(version | SERVER_MODE, STRATUM, poll, -20, 0, 0, b"LOCL", received, sent, received, ntp_now())


def ntp_now() -> int:
    """Return the current time as an NTP timestamp: seconds since 1900 in the upper 32 bits, the fraction below."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return (seconds + SECONDS_1900_TO_1970) << 32 | (nanoseconds << 32) // 1_000_000_000


if __name__ == "__main__":
    main()
