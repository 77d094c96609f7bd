"""Site files with the sections of the installed plugins."""

from pathlib import Path

from bench.config.site import Site
from bench.config.validation import parse_site
from bench.config.yaml_document import read_document
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
    document, kind = read_document(path), registry.site_file_type()
    try:
        return registry.site_of(parse_site(document, kind))
    except UsageError as mistakes:
        unknown = document.values.keys() - set(kind.__struct_fields__)
        reasons = [why for name, why in registry.incomplete_plugins() if name in unknown]
        raise UsageError("\n".join([str(mistakes), *reasons])) from None
