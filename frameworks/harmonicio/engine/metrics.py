"""Metrics in the Prometheus text format."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_TOTALS: tuple[tuple[type[GaugeMetricFamily | CounterMetricFamily], str, str], ...] = (
    (GaugeMetricFamily, "queue_bytes", "bytes in the queue"),
    (GaugeMetricFamily, "connectors", "connections to the data port"),
    (CounterMetricFamily, "queued_total", "messages that were put into the queue"),
    (CounterMetricFamily, "delivered_total", "messages of the queue that PEs acknowledged"),
    (CounterMetricFamily, "refused_total", "connections that were closed because of invalid data"),
)
_COUNTS = {
    "pes": "PEs that sent a heartbeat lately",
    "workers": "workers that reported lately",
    "leases": "connectors that hold leases",
}
_PES: tuple[tuple[type[GaugeMetricFamily | CounterMetricFamily], str, str, str], ...] = (
    (CounterMetricFamily, "processed_total", "processed", "messages that a PE has processed"),
    (CounterMetricFamily, "failed_total", "failed", "messages for which the function raised an exception"),
    (GaugeMetricFamily, "pe_waiting", "waiting", "messages that a PE has received and not processed yet"),
)


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def format_metrics(families: Iterable[Metric]) -> bytes:
    """Return metric families in the text format."""
    return generate_latest(_Families(families))


def master_metrics(view: Mapping[str, Any]) -> Iterator[Metric]:
    """Yield all metrics of a master's view (Master.view)."""
    queue = GaugeMetricFamily("harmonicio_queue_messages", "messages in the queue", labels=["stream"])
    for stream in view["streams"]:
        queue.add_metric([stream["c_name"]], stream["queued"])
    yield queue
    for kind, name, text in _TOTALS:
        yield kind(f"harmonicio_{name}", text, value=view["totals"][name])
    for name, text in _COUNTS.items():
        yield GaugeMetricFamily(f"harmonicio_{name}", text, value=len(view[name]))
    for kind, name, key, text in _PES:
        family = kind(f"harmonicio_{name}", text, labels=["pe", "stream"])
        for pe in view["pes"]:
            family.add_metric([pe["id"], pe["c_name"]], pe["stats"].get(key, 0))
        yield family
