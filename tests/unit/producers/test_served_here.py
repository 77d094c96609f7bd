"""Sources that this machine serves to frameworks of a site: a port, a shared folder."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bench.config.site import Site
from bench.errors import PluginError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from producers.files.site import FilesSite
from producers.tcp.site import TcpSite


def on_site(site: Site, data: Path = Path()) -> RunEnvironment:
    return cast("RunEnvironment", SimpleNamespace(site=site, data=data))


def test_tcp_listens_where_the_site_says(env: RunEnvironment, unused_address: str) -> None:
    """It listens on loopback where the site says nothing."""
    cell, site = Cell("spark", "tcp", 1000, 0.0), Site(sections={"tcp": TcpSite(unused_address)})
    assert registry.make_source("tcp", {}).open(cell, on_site(site)).address == unused_address
    assert registry.make_source("tcp", {}).open(cell, env).address.startswith("127.0.0.1:")


def test_files_lie_in_the_sites_folder(env: RunEnvironment, tmp_path: Path) -> None:
    """Each cell has a folder of its own in it until it is closed; a folder that is not mounted is not made."""
    cell, source = Cell("spark", "files", 1000, 0.0), registry.make_source("files", {"files": {"folder": "/dev/shm"}})
    endpoint = source.open(cell, on_site(Site(sections={"files": FilesSite(str(tmp_path))}), env.data))
    assert Path(endpoint.address).parent.parent == tmp_path
    source.close()
    assert not list(tmp_path.iterdir())
    unmounted = Site(sections={"files": FilesSite(str(tmp_path / "unmounted"))})
    with pytest.raises(PluginError, match="unmounted: No such file"):
        registry.make_source("files", {}).open(cell, on_site(unmounted, env.data))
