"""The ports that a worker gives to its PEs; those of ended PEs are given again."""

import socket

from frameworks.harmonicio.engine.errors import Refused


class Ports:
    """A range, its end exclusive; (0, 0) stands for any port that is free."""

    def __init__(self, first: int, end: int, host: str) -> None:
        self._first, self._end, self._host = first, end, host
        self._used: set[int] = set()

    def take(self) -> int:
        """One that nobody has; raises Refused when there is none."""
        if self._end == 0:
            return self._bound(0) or 0
        for port in range(self._first, self._end):
            if port not in self._used and self._bound(port) is not None:
                self._used.add(port)
                return port
        raise Refused(f"no port is free from {self._first} up to {self._end}")

    def give_back(self, port: int) -> None:
        """It may be given again."""
        self._used.discard(port)

    def _bound(self, port: int) -> int | None:
        """The port, if it can be had."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            with socket.create_server((self._host, port), family=family) as probe:
                return int(probe.getsockname()[1])
        except OSError:
            return None
