"""The port at which the source `tcp` serves frameworks."""

from types import SimpleNamespace
from typing import cast

from bench.config.site import Site
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from producers.tcp.site import TcpSite


def test_tcp_listens_where_the_site_says(env: RunEnvironment, unused_address: str) -> None:
    """It listens on loopback where the site says nothing."""
    cell = Cell("spark", "tcp", 1000, 0.0)
    on_site = cast("RunEnvironment", SimpleNamespace(site=Site(sections={"tcp": TcpSite(unused_address)})))
    assert registry.make_source("tcp", {}).open(cell, on_site).address == unused_address
    assert registry.make_source("tcp", {}).open(cell, env).address.startswith("127.0.0.1:")
