"""Everything that a run lacks is reported before anything starts."""

import socket

import pytest

from bench.config.address import Address
from bench.services import preflight
from bench.services.ports import listen_at


@pytest.fixture
def listening():
    """The address of a server on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_an_address_where_somebody_listens_can_be_reached_but_not_listened_at(listening):
    """A second server of our own would not get it."""
    assert preflight.connection_error(listening) is None
    (line,) = preflight.unavailable_addresses({"site.tcp.listen": listening})
    assert line.startswith(f"site.tcp.listen: cannot listen at {listening} (")


def test_an_address_where_nobody_listens_can_be_listened_at_but_not_reached(listening):
    """The reason is that of the system."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = f"127.0.0.1:{server.getsockname()[1]}"
    assert isinstance(preflight.connection_error(free), ConnectionRefusedError)
    assert preflight.unavailable_addresses({"listen": free}) == []


def test_an_ipv6_address_can_be_listened_at(ipv6_address):
    """As one of IPv4, until somebody listens there."""
    assert preflight.unavailable_addresses({"listen": ipv6_address}) == []
    with listen_at(Address.parse(ipv6_address)):
        assert preflight.connection_error(ipv6_address) is None
        assert preflight.unavailable_addresses({"listen": ipv6_address}) != []


def test_an_address_of_another_machine_cannot_be_listened_at():
    """The sentence names the key and the address."""
    (line,) = preflight.unavailable_addresses({"listen": "192.0.2.1:7200"})
    assert line.startswith("listen: cannot listen at 192.0.2.1:7200 (")


def test_a_file_that_cannot_be_read_is_named_with_its_key(tmp_path):
    """A folder is no file that can be read."""
    (tmp_path / "file").write_text("text")
    files = [("a", str(tmp_path / "file")), ("b", str(tmp_path / "missing")), ("c", str(tmp_path))]
    assert preflight.unreadable_files(files) == [
        f"b: {tmp_path / 'missing'} cannot be read",
        f"c: {tmp_path} cannot be read",
    ]


def test_a_folder_that_cannot_be_written_is_named_with_its_key(tmp_path):
    """One that is there is not."""
    found = preflight.unwritable_folders({"a": str(tmp_path), "b": str(tmp_path / "unmounted")})
    assert found == [f"b: {tmp_path / 'unmounted'} is no folder that can be written; is it mounted?"]


def test_jars_that_are_not_in_the_cache_will_be_downloaded(tmp_path):
    """The sentence names the set."""
    (line,) = preflight.missing_jars(("pulsar",), tmp_path)
    assert line == "the jars of pulsar are not in the cache: they will be downloaded first"
    assert isinstance(line, preflight.PendingDownload)
