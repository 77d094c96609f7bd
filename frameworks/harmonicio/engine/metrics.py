"""The master's metrics in the Prometheus text format."""

from collections.abc import Mapping, Sequence
from typing import Any

_HELP = {
    "queue_messages": ("gauge", "messages in the queue"),
    "queue_bytes": ("gauge", "bytes in the queue"),
    "pes": ("gauge", "PEs that sent a heartbeat lately"),
    "workers": ("gauge", "workers that reported lately"),
    "leases": ("gauge", "connectors that hold leases"),
    "connectors": ("gauge", "connections to the data port"),
    "queued_total": ("counter", "messages that were put into the queue"),
    "delivered_total": ("counter", "messages of the queue that PEs acknowledged"),
    "refused_total": ("counter", "connections that were closed because of invalid data"),
    "processed_total": ("counter", "messages that a PE has processed"),
    "failed_total": ("counter", "messages for which the function raised an exception"),
    "pe_waiting": ("gauge", "messages that a PE has received and not processed yet"),
}


def format_metrics(view: Mapping[str, Any]) -> str:
    """Return all metrics of a master's view (Master.view) as text."""
    rows: dict[str, list[tuple[dict[str, str], float]]] = {name: [] for name in _HELP}
    for stream in view["streams"]:
        rows["queue_messages"].append(({"stream": stream["c_name"]}, stream["queued"]))
    for name in ("queue_bytes", "connectors", "queued_total", "delivered_total", "refused_total"):
        rows[name].append(({}, view["totals"][name]))
    for name in ("pes", "workers", "leases"):
        rows[name].append(({}, len(view[name])))
    for pe in view["pes"]:
        labels = {"pe": pe["id"], "stream": pe["c_name"]}
        for name, key in (("processed_total", "processed"), ("failed_total", "failed"), ("pe_waiting", "waiting")):
            rows[name].append((labels, pe["stats"].get(key, 0)))
    return "".join(_format_family(name, values) for name, values in rows.items())


def _format_family(name: str, rows: Sequence[tuple[dict[str, str], float]]) -> str:
    kind, description = _HELP[name]
    lines = [f"# HELP harmonicio_{name} {description}", f"# TYPE harmonicio_{name} {kind}"]
    for labels, value in rows:
        lines.append(f"harmonicio_{name}{format_labels(labels)} {value:g}")
    return "\n".join(lines) + "\n"


def format_labels(labels: Mapping[str, str]) -> str:
    """Return labels in the form that follows a metric's name."""
    inside = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
    return f"{{{inside}}}" if inside else ""


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
