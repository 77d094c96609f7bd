"""Inputs of the verbs: arguments that several of them have, scenario and site files, and our own folders."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.cli.output import complain
from bench.errors import UsageError

if TYPE_CHECKING:  # everything else is imported by the verb that needs it: `bench --help` stays fast
    from bench.config.scenario import Scenario
    from bench.config.site import Site

ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="A scenario file, such as scenarios/quick.yaml.")
]
SiteFile = Annotated[
    Path | None, typer.Option("--site", metavar="FILE", help="A site file; this machine when left out.")
]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change one value; may be repeated.")
]
Results = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where run folders are made.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
DEFAULT_RESULTS = Path("results")


def read_inputs(path: Path, site: Path | None, changes: list[str] | None) -> "tuple[Scenario, Site]":
    """Return scenario and site, checked against the installed plugins. Raises UsageError, a line per mistake."""
    from bench.config.validation import apply_changes, parse_scenario
    from bench.config.yaml_document import read_document
    from bench.plugins.scenario_check import check_scenario, scenario_on_site
    from bench.plugins.site_file import read_site_file

    document = apply_changes(read_document(path), changes or [])
    scenario = parse_scenario(document)
    check_scenario(document, scenario)
    where = read_site_file(site)
    return scenario_on_site(scenario, where), where


def warn_of_settings(scenario: "Scenario", site: "Site") -> None:
    """Print the warnings about a scenario's settings on a site.

    Raises UsageError where one must be corrected first.
    """
    from bench.plugins.scenario_check import config_warnings
    from bench.runner.core_sets import framework_cores
    from bench.search.map_budget import total_warning

    if (warning := total_warning(scenario, len(scenario.cells()))) is not None:
        complain(f"warning: {warning}")
    found = config_warnings(scenario, site, framework_cores(scenario))
    for one in found:
        if not one.refused:
            complain(f"warning: {one.text}")
    if refused := [one.text for one in found if one.refused]:
        raise UsageError("\n".join(refused))


def split_names(text: str) -> list[str]:
    """Return the names in a list that is separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def this_command() -> str:
    """Return the command line that repeats this call."""
    return shlex.join(["bench", *sys.argv[1:]])


def cache_folder() -> Path:
    """Return the folder for downloads."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stream-bench"


def children_folder() -> Path:
    """Return the folder with the records of child processes."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "stream-bench" / "children"


def refuse_options(given: Mapping[str, object], why: str) -> None:
    """Raise UsageError for the first of these options that is given, as its value says."""
    for option, value in given.items():
        if value:
            raise UsageError(f"{option}: {why}")
