"""Metrics of a master that any Prometheus can read."""

from prometheus_client.parser import text_string_to_metric_families

from frameworks.harmonicio.engine.metrics import format_metrics, master_metrics

TOTALS = {"queue_bytes": 5, "connectors": 1, "queued_total": 12_345_678, "delivered_total": 0, "refused_total": 2}
PE = {"id": "p", "c_name": 'a "quoted"\nstream', "stats": {"processed": 123_456_789}}
VIEW = {"streams": [{"c_name": "s", "queued": 3}], "totals": TOTALS, "pes": [PE], "workers": ["w"], "leases": []}


def read_samples() -> dict[str, tuple[dict[str, str], float]]:
    """Return labels and value by the name of the metric."""
    families = text_string_to_metric_families(format_metrics(master_metrics(VIEW)).decode())
    return {sample.name: (sample.labels, sample.value) for family in families for sample in family.samples}


def test_counters_keep_every_digit() -> None:
    """A counter beyond a million still grows by one."""
    samples = read_samples()
    assert samples["harmonicio_queued_total"] == ({}, 12_345_678)
    assert samples["harmonicio_processed_total"] == ({"pe": "p", "stream": PE["c_name"]}, 123_456_789)


def test_every_part_of_a_view_has_its_metric() -> None:
    """A value that a PE did not report is 0."""
    values = {name: value for name, (_, value) in read_samples().items()}
    assert values["harmonicio_queue_messages"] == 3
    assert values["harmonicio_workers"] == values["harmonicio_connectors"] == values["harmonicio_pes"] == 1
    assert (values["harmonicio_leases"], values["harmonicio_pe_waiting"]) == (0, 0)
