"""Site files with the sections of the installed plugins."""

from pathlib import Path

from bench.config.site import Site
from bench.config.validation import read_site
from bench.errors import UsageError
from bench.plugins import registry


def read_site_file(path: Path | None) -> Site:
    """Return the site of a file; this machine for None.

    Raises:
        UsageError: The file is wrong; one line for each mistake. A section whose plugin lacks a package is unknown; one
            more line then names the package.
    """
    if path is None:
        return Site()
    try:
        return registry.site_of(read_site(path, registry.site_file_type()))
    except UsageError as mistakes:
        text = str(mistakes)
        reasons = [why for name, why in registry.incomplete_plugins() if f": {name}: found an unknown key" in text]
        raise UsageError("\n".join([text, *reasons])) from None
