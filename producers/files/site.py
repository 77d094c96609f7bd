"""The section `files` of a site file: a folder that is shared with the frameworks."""

from typing import Annotated

from msgspec import Meta, Struct

from bench.plugins.site_section import ExternalService, SiteSection


class FilesSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A folder that this machine and the frameworks see under the same path, such as one of an NFS server."""

    folder: Annotated[str, Meta(pattern=r"^/\S+$(?!\n)", description="an absolute path without spaces")]
    """each cell has a folder of its own in it, removed at the end; a scenario's settings.files.folder is not used"""
    load_hosts: bool = False
    """with `load`: whether the load hosts see it, too, and their workers may write there"""


def _describe(site: FilesSite) -> ExternalService:
    return ExternalService(folders={"folder": site.folder}, remote=False, load_workers=None if site.load_hosts else 0)


FILES_SITE = SiteSection("files", FilesSite, _describe)
