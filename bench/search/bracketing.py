"""Bracketing: probes at rates that grow fourfold until one is overloaded, or shrink until one is sustained."""

import math

from msgspec import Struct
from msgspec.structs import replace

from bench.search.parameters import SearchParameters

MIN_FAILED_RATIO = 1.1
"""A rate that failed cold is believed only if it lies above a rate sustained since by more than this factor."""
MIN_ESTIMATE_RATIO = 0.8
"""A capacity estimate below this share of a sustained rate is repeated before it is believed."""


class Bracketing(Struct, frozen=True):
    """The state of bracketing: the next probe is at `rate`, until `centre`, an estimate of the capacity, is known.

    All rates are in messages/s. `sustained` is the highest sustained rate (0 for none), `failed` the lowest
    overloaded one. `repeating`: the next probe repeats an overloaded one, which is not believed before. A clear
    overload needs no repetition, unless its estimate lies below a sustained rate. The loss of an aborted probe must
    be twice as large to be clear, since one pause can abort a probe.
    """

    rate: float
    lowest: float
    highest: float
    sustained: float = 0.0
    failed: float = math.inf
    repeating: bool = False
    centre: float | None = None

    def add_probe(self, loss: float | None, parameters: SearchParameters, *, aborted: bool) -> "Bracketing":
        """Return the state after the probe at `rate`.

        Args: loss: Share of the offered rate that was not processed; None if the probe was overloaded without a
            capacity estimate. parameters: The constants of the search. aborted: True if the probe was given up before
            its end.
        """
        if loss is not None and loss <= parameters.bracket_loss:
            return self._raise_rate(parameters)
        estimate = self.rate * (1 - loss) if loss is not None else None
        stop = parameters.bracket_stop * (2 if aborted else 1)
        clear = (
            loss is not None and estimate is not None and loss > stop and estimate > MIN_ESTIMATE_RATIO * self.sustained
        )
        if not clear and not self.repeating:
            return replace(self, repeating=True)
        failed = replace(self, failed=min(self.failed, self.rate), repeating=False)
        estimable = loss is not None and loss < parameters.max_estimate_loss
        if self.sustained == 0 and not estimable and self.rate > self.lowest:
            return replace(failed, rate=max(self.lowest, self.rate / parameters.growth))
        return failed.finish(estimate)

    def restart_above(self, rate: float, parameters: SearchParameters) -> "Bracketing":
        """Return the state after `rate`, above the centre, was sustained by a warm system.

        The centre moves between `rate` and a failed rate above it. If there is none, bracketing goes on: the failure
        below `rate` was that of a cold system.
        """
        if rate * MIN_FAILED_RATIO < self.failed <= parameters.growth * rate:
            return replace(self, sustained=rate, centre=math.sqrt(rate * self.failed))
        return replace(
            self, sustained=rate, failed=math.inf, centre=None, rate=min(self.highest, parameters.growth * rate)
        )

    def limit_to(self, highest: float) -> "Bracketing":
        """Return the state with a lower highest rate."""
        return replace(self, highest=highest, rate=min(self.rate, highest))

    def _raise_rate(self, parameters: SearchParameters) -> "Bracketing":
        sustained = replace(self, sustained=self.rate, repeating=False)
        higher = min(parameters.growth * self.rate, self.highest)
        if higher >= self.failed:
            return sustained.finish(None)
        return replace(sustained, centre=self.rate) if higher <= self.rate else replace(sustained, rate=higher)

    def finish(self, estimate: float | None) -> "Bracketing":
        """Return the state with the centre at the estimate, or else between the sustained and the failed rate."""
        if estimate is None:
            estimate = math.sqrt(self.sustained * self.failed) if self.sustained else self.rate
        return replace(self, centre=max(self.lowest, self.sustained, estimate))
