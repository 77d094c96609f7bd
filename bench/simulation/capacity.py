"""Capacity of a simulated system in messages/s, tick by tick: noise, pauses, warm-up, steps and modes."""

from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

TICK_S = 0.1
HORIZON_S = 40_000.0
Ticks = NDArray[np.float64]
"""One value for each tick."""

CORRELATION = 0.8
"""Correlation of the noise between neighbouring seconds."""
MIN_PAUSE_S, MAX_PAUSE_S = 0.2, 1.0
MIN_CAPACITY = 0.2
"""Least capacity under noise, as a share of the mean."""
LARGEST_LOSS = 3.0
"""Capacity that other work may take, as a multiple of its share of the machine. The verdict has a factor of its own:
the kit shows when that one is smaller."""
COLD_SHARE = 0.6
"""Capacity of a system that has just started, as a share of the mean."""
DRIFT_PERIOD_S = 1200.0
"""Period of a slow drift of the capacity."""
CORES = 2
_BLOCK, _CHUNK = 64, 1024


class Traits(Struct, frozen=True):
    """The parameters of a simulated system; rates in messages/s, times in seconds."""

    mean_capacity: float
    """without pauses, after the warm-up, with a short queue"""
    latency: float = 0.01
    batch_interval: float = 0.0
    reader: Literal["", "pull", "receiver"] = ""
    """how batches are formed: "pull" takes what waits when the batch before has ended, "receiver" cuts a batch each
    interval; "" is a continuous system, which shows its progress once an interval if it has one"""
    fixed_cost: float = 0.0
    """seconds that each batch takes besides its messages"""
    intake: float = float("inf")
    """messages that reach the batches in a second at most, as a share of the capacity: what a receiver can take in"""
    reports_batches: bool = True
    """whether measurements have the batches, or only the counters"""
    noise: float = 0.04
    """standard deviation of the capacity of one second, as a share of the mean"""
    pause_gap: float = 30.0
    """mean seconds between pauses; 0 for none"""
    warm_up: float = 20.0
    collapse_loss: float = 0.0
    """share of the capacity that is lost while more than `collapse_after` seconds of work are queued"""
    collapse_after: float = 5.0
    generator: float = float("inf")
    """the generator's limit"""
    shared: float = 0.0
    """capacity that each message/s of the load costs, since the load generator uses the same cores"""
    other_work: float = 0.0
    """mean share of the machine that other work takes, more or less of it in each second"""
    other_effect: float = 0.0
    """part of the loss that this work explains which it does cause: 0 for a system that waits"""
    drift: float = 0.0
    """amplitude of a slow oscillation of the capacity, as a share of the mean"""
    poisson: bool = False
    """whether arrivals are random"""
    step_at: float = float("inf")
    step_factor: float = 1.0
    mode_dwell: float = 0.0
    """mean seconds between changes of mode; 0 for a single mode"""
    mode_factor: float = 1.0
    quick_messages: float = 0.0
    """the first messages of each trial that are processed faster, as where they use memory that was in use before"""
    quick_factor: float = 1.0
    """capacity for these, relative to that for later ones"""

    @property
    def truth(self) -> float:
        """The true maximum sustainable rate: the mean capacity without pauses and fixed costs, or its intake."""
        mean_pause = (MIN_PAUSE_S + MAX_PAUSE_S) / 2
        pauses = mean_pause / (self.pause_gap + mean_pause) if self.pause_gap else 0.0
        fixed = self.fixed_cost / self.batch_interval if self.fixed_cost else 0.0
        return self.mean_capacity * (1 - pauses) * min((1 - fixed) / (1 + self.shared), self.intake)

    @property
    def growing_truth(self) -> float:
        """The true rate if batches may grow as long as they like, so that fixed costs take no part of it.

        Those of a receiver cannot: one is cut each interval.
        """
        return self.truth if self.reader == "receiver" else replace(self, fixed_cost=0.0).truth


class Capacity:
    """The random capacity of one run of a system, determined by its seed; drawn as far as it is needed."""

    def __init__(self, traits: Traits, seed: int) -> None:
        self._traits = traits
        randoms = np.random.default_rng(seed).spawn(4)
        self._noise_random, self._pause_random, self._mode_random, self._other_random = randoms
        self._other_work = np.empty(0)
        self._phase = float(np.random.default_rng([seed, 2]).uniform())
        self._noise = np.empty(0)
        self._last_noise: float | None = None
        self._pauses = [np.zeros(1), np.zeros(1)]
        self._modes: NDArray[np.float64] = np.zeros(1)

    def rates(self, first: int, count: int, started: int) -> Ticks:
        """Return the messages/s in `count` ticks from tick `first` on, of a system started at tick `started`."""
        traits, ticks = self._traits, np.arange(first, first + count)
        rates = traits.mean_capacity * self._noise_at(ticks)
        if traits.pause_gap:
            rates *= 1 - self._pause_shares(first, count)
        if traits.warm_up and (first - started) * TICK_S < traits.warm_up:
            age = np.minimum((ticks - started) * TICK_S / traits.warm_up, 1.0)
            rates *= COLD_SHARE + (1 - COLD_SHARE) * age
        if traits.drift:
            rates *= 1 + traits.drift * np.sin(2 * np.pi * (ticks * TICK_S / DRIFT_PERIOD_S + self._phase))
        if traits.other_work:
            lost = traits.other_effect * LARGEST_LOSS * self._other_work_at(ticks)
            rates *= np.maximum(1 - lost, MIN_CAPACITY)
        if traits.step_at < HORIZON_S:
            rates[ticks * TICK_S >= traits.step_at] *= traits.step_factor
        if traits.mode_dwell:
            rates[self._modes_at(ticks) == 1] *= traits.mode_factor
        return rates

    def cpu_beside(self, first: int, count: int) -> dict[str, float]:
        """Return the CPU account of `count` ticks from tick `first` on for `Measurement.cpu`; empty without any."""
        if not self._traits.other_work:
            return {}
        seconds, share = count * TICK_S, float(self._other_work_at(np.arange(first, first + count)).mean())
        account = dict.fromkeys(("framework", "source", "load", "harness", "steal"), 0.0)
        return {**account, "seconds": seconds, "available": CORES * seconds, "busy": CORES * seconds * share}

    def _other_work_at(self, ticks: NDArray[np.int_]) -> Ticks:
        """Return the share of the machine that other work takes, with one value a second: bursts of random strength."""
        seconds = ticks // round(1 / TICK_S)
        while len(self._other_work) <= seconds[-1]:
            drawn = self._other_random.exponential(self._traits.other_work, _CHUNK)
            self._other_work = np.concatenate([self._other_work, np.minimum(drawn, 1.0)])
        return np.asarray(self._other_work[seconds])

    def _noise_at(self, ticks: NDArray[np.int_]) -> Ticks:
        """Return 1 + a first-order autoregressive process, with one value a second."""
        seconds = ticks // round(1 / TICK_S)
        while len(self._noise) <= seconds[-1]:
            self._noise = np.concatenate([self._noise, self._next_noise()])
        return np.asarray(self._noise[seconds])

    def _next_noise(self) -> Ticks:
        sd = self._traits.noise
        shocks = self._noise_random.normal(0.0, sd * np.sqrt(1 - CORRELATION**2), (_CHUNK // _BLOCK, _BLOCK))
        last = self._noise_random.normal(0.0, sd) if self._last_noise is None else self._last_noise
        blocks = shocks @ _RESPONSE.T
        for index in range(len(blocks)):
            blocks[index] += last * _DECAY
            last = float(blocks[index, -1])
        self._last_noise = last
        return np.asarray(np.maximum(1 + blocks.ravel(), MIN_CAPACITY))

    def _pause_shares(self, first: int, count: int) -> Ticks:
        """Return the share of each tick that is a pause."""
        edges = np.arange(first, first + count + 1) * TICK_S
        while self._pauses[0][-1] < edges[-1]:
            self._draw_pauses()
        return np.asarray(np.diff(np.interp(edges, self._pauses[0], self._pauses[1])) / TICK_S)

    def _draw_pauses(self) -> None:
        """Extend the piecewise linear function from time to the total paused time."""
        gaps = self._pause_random.exponential(self._traits.pause_gap, _BLOCK)
        lengths = self._pause_random.uniform(MIN_PAUSE_S, MAX_PAUSE_S, _BLOCK)
        steps, paused = np.empty(2 * _BLOCK), np.zeros(2 * _BLOCK)
        steps[0::2], steps[1::2], paused[1::2] = gaps, lengths, lengths
        for index, new in enumerate((steps, paused)):
            self._pauses[index] = np.concatenate([self._pauses[index], self._pauses[index][-1] + np.cumsum(new)])

    def _modes_at(self, ticks: NDArray[np.int_]) -> NDArray[np.int_]:
        """Return the mode, 0 or 1 in turn, of each tick."""
        while self._modes[-1] < ticks[-1] * TICK_S:
            dwells = self._mode_random.uniform(0.5, 1.5, _BLOCK) * self._traits.mode_dwell
            self._modes = np.concatenate([self._modes, self._modes[-1] + np.cumsum(dwells)])
        return np.asarray(np.searchsorted(self._modes, ticks * TICK_S, side="right") % 2)


_POWERS = np.subtract.outer(np.arange(_BLOCK), np.arange(_BLOCK))
_RESPONSE = np.where(_POWERS >= 0, CORRELATION ** np.maximum(_POWERS, 0).astype(float), 0.0)
_DECAY = CORRELATION ** np.arange(1, _BLOCK + 1)
