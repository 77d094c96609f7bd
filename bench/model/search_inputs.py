"""The inputs of one cell's search that neither the scenario nor the trials hold."""

from msgspec import Struct


class SearchInputs(Struct, frozen=True):
    """The inputs of a search besides scenario and site; with the cell's trials it gives the result again.

    Rates are messages/s. Whatever else a search comes to depend on belongs here, with a default for older runs.
    """

    cores: int
    """that a framework on the harness's machine has"""
    budget_s: float
    """seconds allotted to the cell's search, in all of its visits"""
    hint_hz: float | None = None
    """an estimate from neighbouring cells, or from the warm-up"""
    generator_hz: float | None = None
    """the generator's limit, as it was known then"""
    fixed_share: float | None = None
    """fixed cost of a batch as a share of the interval, from other cells of the system"""
    noise: tuple[float, ...] = ()
    """probability of each noise of the search's grid, from other cells of the map"""
    cold: bool = False
    """whether the framework needs a while until it is at full speed, as far as is known"""
    warm_ups: tuple[float, ...] = ()
    """probability of each time until full speed of the search's grid, from other cells of the system"""
    ignored: int = 0
    """invalid trials among so many first ones of the journal were not given to the search"""
