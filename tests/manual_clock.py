"""A clock for tests: time passes only where a test, or the sleep of the code under test, moves it."""


class ManualClock:
    """A monotonic clock that starts at `now` seconds, and passes `tick` seconds at every reading."""

    def __init__(self, now: float = 1000.0, *, tick: float = 0.0) -> None:
        self.now, self._tick = now, tick

    def __call__(self) -> float:
        """Return the seconds."""
        self.now += self._tick
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let the time pass, a tenth of a millisecond at least: whoever waits comes to an end."""
        self.now += max(seconds, 1e-4)
