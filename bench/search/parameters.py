"""All constants of the two-counter search.

Their values are those of the project's max-rate-search reference, section 3. Where a value differs, its docstring
gives the figures.
"""

from msgspec import Struct
from msgspec.structs import replace


class SearchParameters(Struct, frozen=True):
    """The constants of the two-counter search.

    Times are in seconds, `*_batches` in batch intervals, `*_messages` in messages, widths and losses are shares.
    """

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
    """factor from one bracketing probe to the next"""
    first_rate: float = 1.0
    """rate of the first bracketing probe, in messages/s"""
    bracket_loss: float = 0.08
    """a bracketing probe with at most this loss is sustained"""
    bracket_stop: float = 0.25
    """a bracketing probe with a larger loss is believed without a repetition"""
    max_estimate_loss: float = 0.75
    """above this loss a probe gives no capacity estimate; bracketing only goes lower"""
    warm_up_load: float = 0.8
    """rate of a warm-up, as a share of the capacity estimate"""
    hinted_load: float = 0.5
    """the same, as a share of a neighbour's estimate"""
    check_load: float = 1.3
    """rate of the probe that checks the capacity estimate, as a share of it"""
    check_probes: float = 2.0
    """its length, in probe lengths"""
    generator_share: float = 0.95
    """highest planned rate, as a share of the generator's ceiling"""
    prior_sd: float = 0.35
    """standard deviation of ln(capacity) around the bracket's centre"""
    hint_sd: float = 0.2
    """the same around a neighbour's estimate"""
    low_budget_sd: float = 0.7
    """the same around the centre of a low-budget search, which is not checked"""
    low_budget_trial: float = 12.0
    """seconds; a budget of fewer than `trials_in_budget` such trials is a low one (reference: none, budgets are
    large)"""
    low_budget_outlier_density: float = 0.05
    """floor of an estimate's likelihood (otherwise e^-7): in a window of three seconds a pause of one looks like an
    overload. With half a minute a cell and 1 s batches, intervals contain the truth in 97 instead of 88 %, and are 200
    instead of 150 % wide (600 seeds)"""
    next_share: float = 0.75
    """quantile of the posterior at which the next trial is made. 0.6 in the reference; an estimate tells more than a
    bound: S1 411 -> 381 s, S6 625 -> 554 s at the same errors (400 seeds)"""
    min_trials: int = 3
    min_trials_hinted: int = 1
    """besides the check; with `confirmation_reach` 1.2: S1 271 -> 241, S4 281 -> 257 s, confirmed above truth 7 -> 5 %
    (200 seeds)"""
    inflation: float = 1.35
    """factor on the half-widths of ln(interval), calibrated on simulated systems (max-rate-search reference, sections 3
    and 8)"""
    confirmation_reach: float = 1.2
    """distance of the confirmation trial below the median, as a multiple of that of the 2.5 % quantile in ln(rate)
    (reference: 1)"""
    restart: float = 30.0
    """seconds counted for a restart; the harness does not count it in a trial"""
    trials_in_budget: float = 10.0
    """a trial takes at most this fraction of the budget, so that a small budget gives a wide interval instead of
    none"""
    max_deaths: int = 2
    max_invalid: int = 3
    """consecutive invalid trials that end the search"""
    max_confirmations: int = 6
    """overloaded confirmation trials that end the search as unstable"""
    outlier_sds: float = 5.0
    """standard deviations from the capacity, beyond which a trial contradicts it"""
    max_outliers: int = 3
    contradiction_sds: float = 4.0
    """standard deviations by which an estimate must lie below a sustained rate for the two trials to contradict each
    other"""
    max_contradictions: int = 3
    """contradicting pairs that end the search as unstable. 400 runs of each scenario have 2 at most, systems with two
    modes have many (before: in 10 of 1000 such runs the measured rate was one that the system has in neither mode)"""
    trials_per_outlier: int = 3
    """additional trials that are required for each outlier"""
    skip_warm_up: bool = False
    """for the simulation's mutations, which must fail the acceptance criteria"""

    @property
    def for_low_budget(self) -> "SearchParameters":
        """These parameters for a budget of only a few trials: the first overload is believed."""
        return replace(self, bracket_stop=self.bracket_loss, max_estimate_loss=0.995)
