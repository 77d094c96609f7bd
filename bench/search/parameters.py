"""All constants of the two-counter search; what they were chosen by is in docs/decisions/0028."""

from msgspec import Struct


class SearchParameters(Struct, frozen=True):
    """The constants of the two-counter search.

    Times are in seconds, `*_batches` in batch intervals, `*_messages` in messages, widths and losses are shares.
    """

    growth: float = 4.0
    """factor from one sustained probe to the next"""
    hinted_growth: float = 1.4
    """the same from a neighbour's estimate on"""
    max_jump: float = 10.0
    """largest factor from one trial to the next where the time that batches take shows how far the capacity is"""
    min_jump: float = 1.2
    full_batches: float = 0.9
    """load aimed at in such a step, as a share of the rate at which batches take the whole interval"""
    shorter_batches: float = 0.7
    """factor on the rate after a trial in which too few batches were completed to judge it"""
    below_disturbed: float = 0.9
    """the same below all trials that other work made invalid, or below the last one where that was sustained: sustained
    trials count whatever else runs"""
    far_below_disturbed: float = 0.5
    """the same after two such trials at one rate while nothing is known"""
    beyond_disturbed: float = 1.3
    """factor on the rate from which on other work does not explain an overload"""
    max_explained: float = 0.85
    """largest loss that other work explains at which such a rate is tried"""
    step_down: float = 8.0
    """divisor of the rate after a trial that was too far beyond the capacity to show it"""
    hint_sd: float = 0.5
    """standard deviation of ln(capacity) around a neighbour's estimate"""
    reading_sd: float = 0.7
    """the same around the first reading of the capacity, without a neighbour's estimate"""
    cold_reading_sd: float = 1.0
    """the same of a system that was started cold, around what the reading shows when it is warm"""
    inflation: float = 1.1
    """factor on the half-widths of ln(interval), calibrated on simulated systems"""
    next_share: float = 0.85
    """quantile of the posterior at which the next trial is made: an overloaded trial is a reading of the capacity, a
    sustained one only a bound"""
    next_batch_share: float = 0.45
    """the same where sustained batches are readings too"""
    first_load: float = 0.93
    """rate of the first trial that is to be sustained, as a share of the median"""
    settle: float = 0.5
    window: float = 1.5
    """shortest window"""
    settle_batches: float = 1.0
    settle_bytes: float = 1.5e9
    """of messages before a window begins: memory that trials before have left is used up"""
    settle_byte_rate: float = 2e8
    """bytes/s from which on new memory is a large part of the cost of messages, so that this is waited for"""
    quick_factor: float = 1.5
    """factor by which a trial may show too much where this was not waited for"""
    near_quick: float = 0.85
    """share of the lowest overloaded rate: where it is sustained, and such trials alone have shown a capacity, they may
    have shown too little (see docs/decisions/0230)"""
    beyond_shown: float = 1.2
    """factor from a sustained rate to the next trial where no higher rate was overloaded by a settled trial"""
    max_beyond: float = 2.0
    """an interval that ends farther above the lowest overloaded rate, without a trial that shows the capacity, has no
    upper end"""
    window_batches: float = 6.2
    """six batches are completed within it"""
    longest: float = 60.0
    """longest window"""
    longest_batches: float = 15.0
    first_share: float = 0.12
    """length of the first trial at a neighbour's estimate, as a share of the time left"""
    trial_share: float = 0.5
    """length of a trial near the capacity, as a share of the time left"""
    trial_messages: float = 60.0
    trial_bytes: float = 4e9
    """of a window, where the shortest one allows it: what a source keeps of a trial lies in memory until its end"""
    generator_share: float = 0.95
    """highest planned rate, as a share of the generator's limit"""
    highest_share: float = 0.25
    """the highest rate must be sustained for this share of the budget, but not more than `longest`: a single short
    trial is also sustained a few per cent above the capacity"""
    highest_factor: float = 10.0
    """and for this multiple of the time in which trials showed a capacity: a cold system may be overloaded at first"""
    min_readings: int = 2
    confirmation_budget: float = 120.0
    """budget from which on a trial at the lower end of the interval confirms it"""
    longest_confirmation: float = 40.0
    """longest window of that trial"""
    confirmed_share: float = 0.1
    """quantile of the posterior up to which a sustained rate is called confirmed"""
    max_share_sd: float = 0.15
    """standard deviation of the fixed share of a batch's time, above which it is called unknown"""
    max_deaths: int = 2
    max_invalid: int = 3
    """consecutive invalid trials that end the search"""
    max_lowest_failures: int = 2
    contradiction_sds: float = 4.0
    """standard deviations by which a trial must differ from the posterior's median to contradict it"""
    contrary_sds: float = 3.0
    """standard deviations of their difference by which a sustained and an overloaded trial contradict each other"""
    max_contrary_excess: float = 0.3
    """largest ln(offered / processed rate) of an overloaded trial that can contradict a sustained one: farther beyond
    its capacity a system may collapse"""
    max_contradictions: int = 2
    """more contradicting trials than this, and more than a third of all, end the search as unstable"""
    long_trial: float = 20.0
    min_long_trials: int = 6
    """so many readings of at least `long_trial` seconds tell a capacity that changes from noise that lasts seconds"""
    max_noise: float = 0.6
    max_noise_ratio: float = 3.5
    """noise between such trials, and the same as a multiple of the noise within them, above which they disagree"""
    typical_noise: float = 0.16
    """relative noise of the mean rate over one second, for the lower end of a bound and for contradictions"""
