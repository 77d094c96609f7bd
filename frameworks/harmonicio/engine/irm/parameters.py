"""The two published parameter sets; a run records which one it used."""

from msgspec import Struct

from frameworks.harmonicio.engine.errors import ConfigError


class Parameters(Struct, frozen=True, kw_only=True):
    """The parameters of the IRM; times in seconds, rates in messages/s. Contradictions raise ConfigError."""

    packing_interval: float
    default_cpu_share: float
    profiling_interval: float
    predictor_interval: float
    lower_rate_limit: float
    upper_rate_limit: float
    slowdown_rate: float
    queue_size_limit: int
    scaleup_waiting_time: float
    large_scaleup_amount: int
    small_scaleup_amount: int
    container_request_ttl: int
    minimum_cpu_size: float = 0.02

    def __post_init__(self) -> None:
        """Raise ConfigError for values that the original refuses."""
        at_least_one = ("packing_interval", "profiling_interval", "predictor_interval", "lower_rate_limit",
        "upper_rate_limit",
                        "queue_size_limit", "scaleup_waiting_time", "container_request_ttl")  # fmt: skip
        for name in at_least_one:
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is at least 1, not {getattr(self, name):g}")
        if not self.upper_rate_limit > self.lower_rate_limit:
            raise ConfigError(
                f"upper_rate_limit {self.upper_rate_limit:g} is not above lower_rate_limit {self.lower_rate_limit:g}"
            )
        if not self.slowdown_rate < 0:
            raise ConfigError(f"slowdown_rate is negative, not {self.slowdown_rate:g}")
        if not self.large_scaleup_amount > self.small_scaleup_amount:
            raise ConfigError("large_scaleup_amount is not above small_scaleup_amount")
        if not 0 < self.minimum_cpu_size <= 1 or not 0 < self.default_cpu_share <= 1:
            raise ConfigError("minimum_cpu_size and default_cpu_share are shares above 0, at most 1")


PAPER = Parameters(
    packing_interval=1, default_cpu_share=0.125, profiling_interval=4, predictor_interval=1, lower_rate_limit=2,
    upper_rate_limit=5, slowdown_rate=-2, queue_size_limit=10, scaleup_waiting_time=10, large_scaleup_amount=2,
    small_scaleup_amount=1, container_request_ttl=1,
)  # fmt: skip
SHIPPED = Parameters(
    packing_interval=1, default_cpu_share=0.5, profiling_interval=5, predictor_interval=2, lower_rate_limit=5,
    upper_rate_limit=10, slowdown_rate=-10, queue_size_limit=100, scaleup_waiting_time=5, large_scaleup_amount=4,
    small_scaleup_amount=1, container_request_ttl=50,
)  # fmt: skip
PROFILES = {"paper": PAPER, "shipped": SHIPPED}
