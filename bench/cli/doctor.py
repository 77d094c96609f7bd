"""`bench doctor`."""

import typer

from bench.cli.inputs import DEFAULT_RESULTS, Results, SiteFile, cache_folder, children_folder
from bench.cli.output import say
from bench.errors import SiteError


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command(epilog="Example:  bench doctor --site site.yaml")(doctor)


def doctor(*, site: SiteFile = None, out: Results = DEFAULT_RESULTS) -> None:
    """Check whether this machine and the site have what a run needs."""
    from bench.cli.diagnosis import findings
    from bench.plugins.site_file import read_site_file

    wrong = 0
    for finding in findings(read_site_file(site), out, cache_folder(), children_folder()):
        wrong += not finding.good
        say(f"{'ok  ' if finding.good else 'BAD '} {finding.what}")
    if wrong:
        raise SiteError(f"{wrong} of these must be put right first")
