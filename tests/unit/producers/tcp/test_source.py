"""The ports at which the source `tcp` serves frameworks."""

import socket
from types import SimpleNamespace
from typing import cast

from bench.config.address import Address
from bench.config.site import LoadHosts, Site
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.split_source import open_endpoint
from bench.services.ports import LOOPBACK, free_ports
from producers.tcp.sender import TcpSender
from producers.tcp.site import TcpSite


def on_site(site: Site) -> RunEnvironment:
    """Return the environment of a run on that site."""
    return cast("RunEnvironment", SimpleNamespace(site=site))


def is_free(port: int) -> bool:
    """Return whether nobody listens at a port."""
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True


def test_tcp_listens_where_the_site_says(env: RunEnvironment, unused_address: str) -> None:
    """It listens on loopback where the site says nothing."""
    cell, site = Cell("spark", "tcp", 1000, 0.0), Site(sections={"tcp": TcpSite(unused_address)})
    assert registry.make_source("tcp", {}).open(cell, on_site(site)).address == unused_address
    assert registry.make_source("tcp", {}).open(cell, env).address.startswith("127.0.0.1:")


def test_tcp_serves_readers_over_ipv6(ipv6_address: str) -> None:
    """The endpoint has the address as the site file writes it, and the sender listens there."""
    cell, site = Cell("spark", "tcp", 1000, 0.0), Site(sections={"tcp": TcpSite(ipv6_address)})
    endpoint = registry.make_source("tcp", {}).open(cell, on_site(site))
    assert endpoint.address == ipv6_address
    sender = TcpSender(endpoint)
    with socket.create_connection(Address.parse(endpoint.address)) as reader:
        assert sender.send([b"a message"]) == 1
        assert reader.recv(100) == b"a message\n"
    sender.close()


def test_several_tcp_senders_take_the_ports_that_follow() -> None:
    """A firewall is opened for them. Without a port of the site each takes any that is free."""
    cell, source = Cell("spark", "tcp", 1000, 0.0), registry.make_source("tcp", {})
    port = next(port for port in free_ports(20) if is_free(port + 1))
    site = Site(sections={"tcp": TcpSite(f"{LOOPBACK}:{port}")})
    endpoint = open_endpoint(source, cell, on_site(site), 2)
    assert (endpoint.address, endpoint.parts) == (f"{LOOPBACK}:{port},{LOOPBACK}:{port + 1}", 2)
    assert len(set(open_endpoint(source, cell, on_site(Site()), 3).address.split(","))) == 3


def test_load_workers_serve_tcp_from_their_hosts_and_a_baseline_from_here(unused_address: str) -> None:
    """Each has the address that the site file gives it; nobody listens there yet."""
    tcp = TcpSite(unused_address, load_hosts=("192.0.2.1:7200", "192.0.2.2:7200"))
    site, cell = Site(load=LoadHosts("192.0.2.9:5557", 2), sections={"tcp": tcp}), Cell("spark", "tcp", 1000, 0.0)
    source = registry.make_source("tcp", {})
    assert open_endpoint(source, cell, on_site(site), 2).address == "192.0.2.1:7200,192.0.2.2:7200"
    assert source.open(cell, on_site(site)).address == unused_address
