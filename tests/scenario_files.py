"""Scenario files, read without looking at the installed plugins."""

from collections.abc import Sequence
from pathlib import Path

from bench.config.scenario import Scenario
from bench.config.validation import apply_changes, parse_scenario
from bench.config.yaml_document import read_document


def read_scenario(path: Path, changes: Sequence[str] = ()) -> Scenario:
    """Return the scenario of a file with `--set` changes such as "search.precision=10 %"."""
    return parse_scenario(apply_changes(read_document(path), changes))
