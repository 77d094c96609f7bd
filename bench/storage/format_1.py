"""Upgrade of files of format 1 (up to November 2026) to format 2.

Each function takes the decoded JSON of a file, or of a line of the journal, and returns it as format 2 has it. Names of
systems and plugins are values, not part of the format: they stay as they were written.
"""

from collections.abc import Mapping
from typing import Any

_MEASUREMENT_FIELDS = {"asked": "cpu_requested_s", "burnt": "cpu_used_s", "disordered": "out_of_order"}
_CLOCK_FIELDS = {"most": "max_latency_error"}
_SITE_FIELDS = ("name", "load", "cores", "bandwidth", "disk", "shared_machine", "hosts")
_RESULT_FIELDS = {"roofs": "soft_bounds"}


def upgrade_run(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run.json of format 1 in format 2: sections of plugins stand below `sections` in the site."""
    own = {name: value for name, value in run["site"].items() if name in _SITE_FIELDS}
    sections = {name: value for name, value in run["site"].items() if name not in _SITE_FIELDS and value is not None}
    return {**run, "format": 2, "site": {**own, "sections": sections}}


def upgrade_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of a trials.jsonl of format 1 in format 2."""
    measurement = _rename(entry["measurement"], _MEASUREMENT_FIELDS)
    if measurement.get("clocks") is not None:
        measurement["clocks"] = _rename(measurement["clocks"], _CLOCK_FIELDS)
    return {**entry, "format": 2, "measurement": measurement}


def upgrade_results(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cells.json of format 1 in format 2."""
    return {**results, "format": 2, "cells": [_rename(cell, _RESULT_FIELDS) for cell in results["cells"]]}


def _rename(fields: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in fields.items()}
