"""Site files with the sections of the installed plugins."""

from pathlib import Path

from bench.config.site import Site
from bench.config.validation import read_site
from bench.plugins import registry


def read_site_file(path: Path | None) -> Site:
    """Return the site of a file; this machine for None.

    Raises:
        UsageError: The file is wrong; one line for each mistake.
    """
    return registry.site_of(read_site(path, registry.site_file_type())) if path is not None else Site()
