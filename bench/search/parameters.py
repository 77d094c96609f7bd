"""Every constant of the two-counter search, and the durations that follow from them for one cell.

The values are those of the project's max-rate-search reference, section 3; where one differs, its line says why.
"""

from msgspec import Struct
from msgspec.structs import replace

from bench.model.measurement import PlannedTrial, Purpose
from bench.search.problem import SearchProblem


class SearchParameters(Struct, frozen=True):
    """The constants; times in seconds, `*_batches` in batch intervals, widths and losses as shares."""

    probe: float = 5.0
    probe_batches: float = 6.0
    probe_messages: float = 10.0
    trial: float = 60.0
    trial_batches: float = 15.0
    trial_messages: float = 200.0
    warm_up: float = 25.0
    warm_up_batches: float = 4.0
    settle: float = 1.0
    settle_batches: float = 2.0
    growth: float = 4.0
    first_rate: float = 1.0
    bracket_loss: float = 0.08
    bracket_stop: float = 0.25
    readable: float = 0.75
    """a larger loss is no reading, but says to look lower"""
    warm_up_load: float = 0.8
    hinted_load: float = 0.5
    re_read_load: float = 1.3
    re_read: float = 2.0
    """how many probes long it is"""
    headroom: float = 0.95
    """how much of the generator's ceiling is asked of it"""
    prior_sd: float = 0.35
    hint_sd: float = 0.2
    hasty_sd: float = 0.7
    hasty_trial: float = 12.0
    """in seconds: a budget of fewer than `trials_in_budget` of these is a hasty one (reference: none, budgets are large)"""
    hasty_floor: float = 0.05
    """of a reading's density (otherwise e^-7): a pause of a second in a window of three looks like an overload. With half a minute
    a cell and 1 s batches intervals hold the truth in 97 instead of 88 %, and are 200 instead of 150 % wide (600 seeds)"""
    next_share: float = 0.75
    """0.6 in the reference; a reading says more than a bound: S1 411 -> 381 s, S6 625 -> 554 s at the same errors (400 seeds)"""
    least_trials: int = 3
    least_trials_hinted: int = 1
    """besides the re-read; with `soak_reach` 1.2 S1 271 -> 241, S4 281 -> 257 s, confirmed above truth 7 -> 5 % (200 seeds)"""
    inflation: float = 1.35
    soak_reach: float = 1.2
    """of the log distance from the middle to the interval's lower end, before it is inflated (reference: 1)"""
    restart: float = 30.0
    """what a restart is taken to cost; the harness does not count it in a trial"""
    trials_in_budget: float = 10.0
    """a trial lasts no longer than this part of the budget, so that a small budget gives a wide answer instead of none"""
    most_deaths: int = 2
    most_invalid: int = 3
    most_soaks: int = 6
    surprise: float = 5.0
    """how many standard deviations apart two trials are that cannot both be right"""
    most_surprises: int = 3
    clearly: float = 4.0
    most_torn: int = 3
    """pairs of a rate kept up with and a reading so clearly below it; 400 runs of each scenario have 2 at most, those of two modes
    many (before: in 10 of 1000 such runs a rate was measured that the system has in neither mode)"""
    outvoted: int = 3
    """how many more trials it takes to believe the others when one disagrees"""
    skip_warm_up: bool = False
    """for the kit, which shows that its gates notice"""

    @property
    def hasty(self) -> "SearchParameters":
        """The same for a budget that holds but a few trials: the first overload is believed, however large it is."""
        return replace(self, bracket_stop=self.bracket_loss, readable=0.995)


class Durations(Struct, frozen=True):
    """How long the parts of a search last for one cell."""

    question: SearchProblem
    recipe: SearchParameters

    def probe(self, rate: float, times: float = 1.0) -> PlannedTrial:
        """A short look, for the bracket and for reading it again."""
        recipe, interval = self.recipe, self._interval
        usual = min(times * max(recipe.probe, recipe.probe_batches * interval), self._trial)
        return self._planned(rate, max(usual, min(recipe.probe_messages / rate, self._longest)), "search")

    def trial(self, rate: float, purpose: Purpose = "search") -> PlannedTrial:
        """A whole trial; slow cells get as long as it takes for enough messages."""
        return self._planned(rate, max(self._trial, min(self.recipe.trial_messages / rate, self._longest)), purpose)

    def warm_up(self, rate: float) -> PlannedTrial:
        """Load without a reading."""
        recipe, interval = self.recipe, self._interval
        usual = max(recipe.warm_up, recipe.warm_up_batches * interval)
        least = max(self._settle, 2 * interval)
        return self._planned(rate, max(least, min(usual, self._trial / 2)), "warm-up")

    def longest(self, planned: PlannedTrial) -> float:
        """How long a trial takes if it does not drain and the system has to be started again; a small budget hopes for better."""
        drain = float(self.question.timing.drain) + 2 * self._interval
        return (
            planned.settle + planned.window + min(drain + self.recipe.restart, 0.1 * float(self.question.search.budget))
        )

    @property
    def _interval(self) -> float:
        return self.question.batch_interval

    @property
    def _settle(self) -> float:
        wanted = self.question.timing.settle
        return max(self.recipe.settle, self.recipe.settle_batches * self._interval) if wanted is None else float(wanted)

    @property
    def _trial(self) -> float:
        wanted = self.question.timing.window
        if wanted is not None:
            return max(float(wanted), 4 * self._interval)
        usual = max(self.recipe.trial, self.recipe.trial_batches * self._interval)
        return max(5 * self._interval, min(usual, self._longest))

    @property
    def _longest(self) -> float:
        return float(self.question.search.budget) / self.recipe.trials_in_budget

    def _planned(self, rate: float, window: float, purpose: Purpose) -> PlannedTrial:
        """The number is given by the search."""
        return PlannedTrial(0, float(rate), self._settle, float(window), purpose)
