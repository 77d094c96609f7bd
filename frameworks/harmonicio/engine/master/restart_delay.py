"""The delay before PEs are started again that end soon after their start; pure, times are monotonic seconds."""

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass

SHORT_LIFE_S = 10.0
"""Time after its start within which a PE that ends has failed."""
MAX_DELAY_S = 30.0
_MAX_STARTED = 16384
"""PEs that are remembered."""


@dataclass(slots=True)
class _Failures:
    """The failures of a stream in a row, and the time until which no PE of it is started."""

    count: int = 0
    until: float = 0.0


class RestartDelay:
    """Remembers the PEs that were started: after each failure in a row the next start waits for 1, 2, 4 ... 30 s."""

    def __init__(self) -> None:
        self._started: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._failures: dict[str, _Failures] = {}

    def record_start(self, pe_id: str, c_name: str, now: float) -> None:
        """Record that a PE was started."""
        self._started[pe_id] = (c_name, now)
        while len(self._started) > _MAX_STARTED:
            self._started.popitem(last=False)

    def record_stop(self, pe_id: str) -> None:
        """Record that a PE was told to end: its end is no failure."""
        self._started.pop(pe_id, None)

    def stream_of(self, pe_id: str) -> str:
        """Return the stream for which a PE was started; an empty text for a PE of others, or one told to end."""
        return self._started.get(pe_id, ("", 0.0))[0]

    def record_ends(self, ended: Collection[str], now: float) -> list[str]:
        """Record which PEs have ended, also earlier; return the streams in which one has failed.

        Ends during the delay of a stream are no further failures.
        """
        failed = []
        for pe_id in [one for one in self._started if one in ended]:
            c_name, since = self._started.pop(pe_id)
            if now <= since + SHORT_LIFE_S and self.may_start(c_name, now):
                failures = self._failures.setdefault(c_name, _Failures())
                failures.until = now + min(MAX_DELAY_S, 2.0**failures.count)
                failures.count += 1
                failed.append(c_name)
        return failed

    def record_running(self, running: Collection[str], now: float) -> None:
        """Record which PEs run: one that was started after a failure, and lives, ends the row."""
        if not self._failures:
            return
        for pe_id in running:
            c_name, since = self._started.get(pe_id, ("", now))
            if now > since + SHORT_LIFE_S and since >= self._failures.get(c_name, _Failures()).until:
                self.forget(c_name)

    def forget(self, c_name: str) -> None:
        """Forget the failures of a stream."""
        self._failures.pop(c_name, None)

    def may_start(self, c_name: str, now: float) -> bool:
        """Return whether a PE of a stream may be started now."""
        return now >= self._failures.get(c_name, _Failures()).until

    def problem(self, c_name: str, now: float) -> str:
        """Return what an operator should know of a stream; an empty text without failures."""
        failures = self._failures.get(c_name, _Failures())
        if not failures.count:
            return ""
        wait = max(0.0, failures.until - now)
        return f"its PEs end soon after their start, {failures.count} in a row; the next starts in {wait:.0f} s"
