"""How many messages a second a simulated system can process, tick by tick: noise, pauses, warm-up, steps and modes."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

TICK = 0.1
"""Seconds."""
HORIZON = 40_000.0
Ticks = NDArray[np.float64]

CORRELATION = 0.8
PAUSE_SHORTEST, PAUSE_LONGEST = 0.2, 1.0
MIN_CAPACITY = 0.2
COLD_SHARE = 0.6
_BLOCK, _CHUNK = 64, 1024


class Traits(Struct, frozen=True):
    """A simulated system; rates in messages/s, times in seconds. `ceiling` is the mean capacity without pauses, warm and calm."""

    ceiling: float
    latency: float = 0.01
    batch_interval: float = 0.0
    noise: float = 0.04
    pause_gap: float = 30.0
    warm_up: float = 20.0
    collapse_loss: float = 0.0
    """share of the capacity that is lost while more than `collapse_after` seconds of work are queued"""
    collapse_after: float = 5.0
    generator: float = float("inf")
    step_at: float = float("inf")
    step_factor: float = 1.0
    mode_dwell: float = 0.0
    """mean seconds between changes of mode; 0 for a single mode"""
    mode_factor: float = 1.0

    @property
    def truth(self) -> float:
        """The highest rate that is sustained in the long run."""
        mean_pause = (PAUSE_SHORTEST + PAUSE_LONGEST) / 2
        return self.ceiling * (1 - mean_pause / (self.pause_gap + mean_pause)) if self.pause_gap else self.ceiling


class Capacity:
    """The capacity of one run of a system, fixed by its seed; drawn as far as it is asked for."""

    def __init__(self, traits: Traits, seed: int) -> None:
        self._traits = traits
        self._noise_chance, self._pause_chance, self._mode_chance = np.random.default_rng(seed).spawn(3)
        self._noise = np.empty(0)
        self._last_noise: float | None = None
        self._pauses = [np.zeros(1), np.zeros(1)]
        self._modes: NDArray[np.float64] = np.zeros(1)

    def over(self, first: int, count: int, born: int) -> Ticks:
        """Messages/s in each of `count` ticks from tick `first`; the job was started at tick `born`."""
        traits, ticks = self._traits, np.arange(first, first + count)
        rates = traits.ceiling * self._noise_at(ticks)
        if traits.pause_gap:
            rates *= 1 - self._paused(first, count)
        if traits.warm_up and (first - born) * TICK < traits.warm_up:
            age = np.minimum((ticks - born) * TICK / traits.warm_up, 1.0)
            rates *= COLD_SHARE + (1 - COLD_SHARE) * age
        if traits.step_at < HORIZON:
            rates[ticks * TICK >= traits.step_at] *= traits.step_factor
        if traits.mode_dwell:
            rates[self._mode(ticks) == 1] *= traits.mode_factor
        return rates

    def _noise_at(self, ticks: NDArray[np.int_]) -> Ticks:
        """One value a second: 1 + a first-order autoregressive process."""
        seconds = ticks // round(1 / TICK)
        while len(self._noise) <= seconds[-1]:
            self._noise = np.concatenate([self._noise, self._next_noise()])
        return np.asarray(self._noise[seconds])

    def _next_noise(self) -> Ticks:
        sd = self._traits.noise
        shocks = self._noise_chance.normal(0.0, sd * np.sqrt(1 - CORRELATION**2), (_CHUNK // _BLOCK, _BLOCK))
        last = self._noise_chance.normal(0.0, sd) if self._last_noise is None else self._last_noise
        blocks = shocks @ _RESPONSE.T
        for place in range(len(blocks)):
            blocks[place] += last * _DECAY
            last = float(blocks[place, -1])
        self._last_noise = last
        return np.asarray(np.maximum(1 + blocks.ravel(), MIN_CAPACITY))

    def _paused(self, first: int, count: int) -> Ticks:
        """The share of each tick that is a pause."""
        edges = np.arange(first, first + count + 1) * TICK
        while self._pauses[0][-1] < edges[-1]:
            self._draw_pauses()
        return np.asarray(np.diff(np.interp(edges, self._pauses[0], self._pauses[1])) / TICK)

    def _draw_pauses(self) -> None:
        """Corners of the time paused so far over time."""
        gaps = self._pause_chance.exponential(self._traits.pause_gap, _BLOCK)
        lengths = self._pause_chance.uniform(PAUSE_SHORTEST, PAUSE_LONGEST, _BLOCK)
        steps, paused = np.empty(2 * _BLOCK), np.zeros(2 * _BLOCK)
        steps[0::2], steps[1::2], paused[1::2] = gaps, lengths, lengths
        for place, new in enumerate((steps, paused)):
            self._pauses[place] = np.concatenate([self._pauses[place], self._pauses[place][-1] + np.cumsum(new)])

    def _mode(self, ticks: NDArray[np.int_]) -> NDArray[np.int_]:
        """0 or 1, in turns."""
        while self._modes[-1] < ticks[-1] * TICK:
            dwells = self._mode_chance.uniform(0.5, 1.5, _BLOCK) * self._traits.mode_dwell
            self._modes = np.concatenate([self._modes, self._modes[-1] + np.cumsum(dwells)])
        return np.asarray(np.searchsorted(self._modes, ticks * TICK, side="right") % 2)


_POWERS = np.subtract.outer(np.arange(_BLOCK), np.arange(_BLOCK))
_RESPONSE = np.where(_POWERS >= 0, CORRELATION ** np.maximum(_POWERS, 0).astype(float), 0.0)
_DECAY = CORRELATION ** np.arange(1, _BLOCK + 1)
