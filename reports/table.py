"""The table of all cells: cells.csv, with the names of cells.json, and the shorter one that people read."""

import csv
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from bench.measurement import Result
from bench.units import rate_text, seconds_text, size_text
from reports.evidence import Evidence, Known, read_evidence
from reports.wording import MISSING, claim_of, interval_text

PLAIN = (
    "system", "framework", "source", "message_bytes", "cpu_seconds", "status", "reason", "estimate_hz", "low_hz", "high_hz",
    "confirmed_hz", "bound_hz", "bound", "limited_by", "generator_hz", "trials", "seconds", "sent", "processed", "lost",
    "duplicated", "corrupted",
)  # fmt: skip
QUANTILES = ("p50", "p90", "p99", "max")
SIDES = ("estimate_hz", "low_hz", "high_hz", "kept_hz")
"""Of each objective."""
Value = str | int | float | None


class Line(Struct, frozen=True):
    """One cell, as people read it."""

    anchor: str
    system: str
    size: str
    cost: str
    status: str
    rate: str
    interval: str
    confirmed: str
    bound: str
    share: str
    """of the bound"""
    limit: str
    p50: str
    p99: str
    trials: int
    seconds: str
    wrong: str
    """lost / duplicated / corrupted"""


def write(run: Path) -> list[Path]:
    """Write cells.csv: a line for every cell of the scenario, those without a result with the status "not measured"."""
    evidence = read_evidence(run)
    roles, goals = roles_of(evidence), goals_of(evidence)
    path = run / "cells.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, columns_of(roles, goals), lineterminator="\n")
        lines.writeheader()
        lines.writerows(row_of(known, roles, goals) for known in evidence.cells)
    return [path]


def columns_of(roles: tuple[str, ...], goals: tuple[str, ...]) -> tuple[str, ...]:
    """The columns: what cells.json nests has a dot in its name, and bound_share is estimate_hz / bound_hz."""
    nested = [f"latency_s.{q}" for q in QUANTILES] + [f"cpu_share.{role}" for role in roles]
    return (*PLAIN, "bound_share", *nested, *(f"objectives.{goal}.{side}" for goal in goals for side in SIDES))


def goals_of(evidence: Evidence) -> tuple[str, ...]:
    """Every objective that some cell has an answer of its own for."""
    results = [known.result for known in evidence.cells if known.result is not None]
    return tuple(sorted({each.name for result in results for each in result.objectives}))


def roles_of(evidence: Evidence) -> tuple[str, ...]:
    """Every role whose CPU was accounted in some cell."""
    return tuple(sorted({role for known in evidence.cells if known.result is not None for role in known.result.cpu_share}))


def row_of(known: Known, roles: tuple[str, ...], goals: tuple[str, ...]) -> Mapping[str, Value]:
    """One cell by column; None, which is written as nothing, where there is no value."""
    cell, result = known.cell, known.result
    if result is None:
        place = {name: getattr(cell, name) for name in PLAIN[:5]}
        return dict.fromkeys(columns_of(roles, goals)) | place | {"status": MISSING, "trials": len(known.trials)}
    row: dict[str, Value] = {name: getattr(result, name) for name in PLAIN}
    row["bound_share"] = share_of(result)
    row |= {f"latency_s.{q}": getattr(result.latency_s, q) for q in QUANTILES}
    row |= {f"objectives.{each.name}.{side}": getattr(each, side) for each in result.objectives for side in SIDES}
    return row | {f"cpu_share.{role}": result.cpu_share.get(role) for role in roles}


def share_of(result: Result) -> float | None:
    """How much of its theoretical bound a cell reached."""
    return result.estimate_hz / result.bound_hz if result.estimate_hz is not None and result.bound_hz else None


def lines_of(evidence: Evidence) -> list[Line]:
    """The table that people read."""
    return [_line_of(known) for known in evidence.cells]


def _line_of(known: Known) -> Line:
    cell = known.cell
    place = (known.anchor, cell.system, size_text(cell.message_bytes), seconds_text(cell.cpu_seconds))
    result = known.result
    if result is None:
        return Line(*place, MISSING, "", "", "", "", "", "", "", "", len(known.trials), "", "")
    share = share_of(result)
    return Line(
        *place,
        status=result.status,
        rate="" if result.status in ("failed", "unsupported") else claim_of(result),
        interval=interval_text(result.low_hz, result.high_hz),
        confirmed=_rate(result.confirmed_hz),
        bound=_rate(result.bound_hz),
        share="" if share is None else f"{100 * share:.3g} %",
        limit=result.limited_by or "",
        p50=time_text(result.latency_s.p50),
        p99=time_text(result.latency_s.p99),
        trials=result.trials,
        seconds=time_text(result.seconds) if result.trials else "",
        wrong=f"{result.lost} / {result.duplicated} / {result.corrupted}" if result.trials else "",
    )


def _rate(rate: float | None) -> str:
    return "" if rate is None else rate_text(rate)


def time_text(seconds: float | None) -> str:
    """A duration as people read it; empty where there is none."""
    return "" if seconds is None else seconds_text(seconds)
