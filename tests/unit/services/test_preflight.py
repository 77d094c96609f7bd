"""What a run needs and has not got is told before anything starts."""

import socket

import pytest

from bench.config.site import Site
from bench.services import preflight
from producers.pulsar.site import PulsarSite


@pytest.fixture
def listening():
    """The address of a server on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def site(address, **more):
    return Site(sections={"pulsar": PulsarSite(f"pulsar://{address}", f"http://{address}", **more)})


def test_a_sites_pulsar_needs_no_jars(listening, tmp_path):
    """Nor Java."""
    assert preflight.missing({"python", "pulsar"}, site(listening), tmp_path) == []


def test_an_embedded_pulsars_jars_are_announced(tmp_path):
    """They will be downloaded."""
    assert preflight.missing({"pulsar"}, Site(), tmp_path) == [
        "the jars of pulsar are not in the cache: they will be downloaded first"
    ]


def test_a_pulsar_that_does_not_answer_is_told(tmp_path):
    """Its service and its administration, each with its address."""
    found = preflight.missing({"pulsar"}, site("127.0.0.1:9"), tmp_path)
    assert [line.partition(":")[0] for line in found] == ["pulsar at 127.0.0.1", "pulsar at 127.0.0.1"]


def test_a_token_file_that_is_not_there_is_told(listening, tmp_path):
    """By the key that names it."""
    found = preflight.missing({"pulsar"}, site(listening, token_file=str(tmp_path / "token")), tmp_path)
    assert found == [f"site.pulsar.token_file: {tmp_path / 'token'} cannot be read"]
