"""The dashboard: a read-only page of tables, with every text escaped, without scripts or external resources."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

_STYLE = """body{font:15px system-ui;margin:2em auto;max-width:72em;color:#222}
table{border-collapse:collapse;margin:.5em 0 2em}
th,td{padding:.25em .8em;border-bottom:1px solid
#ddd;text-align:left}td.n{text-align:right;font-variant-numeric:tabular-nums} h2{font-size:1.1em}p{color:#666}"""


def render_page(view: Mapping[str, Any]) -> str:
    """Return the HTML page of a master's view (Master.view)."""
    streams = [(row["c_name"], row["wanted"], row["pes"], row["queued"], row["problem"]) for row in view["streams"]]
    pes = [
        (
            row["id"],
            row["c_name"],
            row["worker"],
            row["state"],
            row["stats"].get("processed"),
            row["stats"].get("waiting"),
            row["age"],
        )
        for row in view["pes"]
    ]
    workers = [(row["name"], row["address"], row["pes"], row["cpu"], row["age"]) for row in view["workers"]]
    leases = [(row["c_name"], row["session"], row["seconds_left"]) for row in view["leases"]]
    parts = [
        _render_table("Streams", ("stream", "PEs wanted", "PEs", "queued", "problem"), streams),
        _render_table("PEs", ("PE", "stream", "worker", "state", "processed", "waiting", "last report, s ago"), pes),
        _render_table("Workers", ("worker", "address", "PEs", "CPU", "last report, s ago"), workers),
        _render_table("Leases", ("stream", "session", "seconds left"), leases),
    ]
    name = escape(str(view["name"]))
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>{name}</title><style>{_STYLE}</style>"
    return f"{head}<h1>{name}</h1>{''.join(parts)}"


def _render_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    body = "".join("<tr>" + "".join(map(_render_cell, row)) + "</tr>" for row in rows)
    if not body:
        return f"<h2>{escape(title)}</h2><p>none</p>"
    head = "".join(f"<th>{escape(head)}</th>" for head in heads)
    return f"<h2>{escape(title)}</h2><table><tr>{head}</tr>{body}</table>"


def _render_cell(value: object) -> str:
    if isinstance(value, float):
        value = f"{value:.2f}"
    kind = (
        ' class="n"'
        if isinstance(value, int) or (isinstance(value, str) and value.replace(".", "", 1).isdigit())
        else ""
    )
    return f"<td{kind}>{escape('' if value is None else str(value))}</td>"
