"""The ports that a worker gives to its PEs; those of ended PEs are given again."""

import socket

from frameworks.harmonicio.engine.errors import RefusedError


class PortRange:
    """The ports from `first` up to, not including, `end`; (0, 0) stands for any free port."""

    def __init__(self, first: int, end: int, host: str) -> None:
        self._first, self._end, self._host = first, end, host
        self._used: set[int] = set()

    def take(self) -> int:
        """Return a free port; raises RefusedError when there is none."""
        if self._end == 0:
            return self._probe(0) or 0
        for port in range(self._first, self._end):
            if port not in self._used and self._probe(port) is not None:
                self._used.add(port)
                return port
        raise RefusedError(f"no port is free from {self._first} up to {self._end}")

    def give_back(self, port: int) -> None:
        """Return a port to the range."""
        self._used.discard(port)

    def _probe(self, port: int) -> int | None:
        """Return the port if it can be bound; None otherwise."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            with socket.create_server((self._host, port), family=family) as probe:
                return int(probe.getsockname()[1])
        except OSError:
            return None
