"""Search strategies for tests of a run: `search.strategy=search_strategies:HalvingSearch`."""

import math
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.verdict import Verdict
from bench.model.measurement import Measurement, PlannedTrial, Result
from bench.search.problem import SearchProblem, Step
from bench.search.trial_summary import result_without_rate

CAPACITY_HZ = 500.0


class HalvingSearch(Struct, frozen=True):
    """A search whose interval halves with every trial, whatever the trial saw; six trials are enough for it.

    Three consecutive invalid trials end it without a rate: they are taken to be other work's.
    """

    problem: SearchProblem
    steps: tuple[Step, ...] = ()
    enough: ClassVar[int] = 6

    def after(self, measurement: Measurement, verdict: Verdict) -> "HalvingSearch":
        """Return the search with one more judged trial."""
        return replace(self, steps=(*self.steps, Step(measurement, verdict)))

    def next_trial(self) -> PlannedTrial | None:
        """Return the next trial that the budget allows."""
        spent = sum(step.measurement.seconds for step in self.steps)
        planned = PlannedTrial(len(self.steps), 200.0, 0.1, 0.7, "search")
        fits = spent + planned.settle + planned.window <= self.problem.search.budget
        return planned if fits and len(self._valid) < self.enough and not self._disturbed else None

    def result(self) -> Result:
        """Return an interval around the capacity; messages of other sizes have wider ones."""
        result = result_without_rate(self.problem, self.steps, None)
        if self._disturbed:
            return replace(result, status="not-measured", reason="other work took 30 % of this machine")
        if not self._valid:
            return replace(result, reason="no trial within the budget")
        width = self.problem.cell.message_bytes / 1000 / 2 ** len(self._valid)
        return replace(
            result,
            status="measured",
            estimate_hz=CAPACITY_HZ,
            low_hz=CAPACITY_HZ * math.exp(-width),
            high_hz=CAPACITY_HZ * math.exp(width),
            precision_reached=len(self._valid) >= self.enough,
        )

    @property
    def _valid(self) -> list[Step]:
        return [step for step in self.steps if step.verdict.word != "invalid"]

    @property
    def _disturbed(self) -> bool:
        last = self.steps[-3:]
        return len(last) == 3 and all(step.verdict.word == "invalid" for step in last)
