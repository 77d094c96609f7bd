"""Pulsar's brokers and bookies send and write some bytes more than once."""

from bench.analysis.bounds import Copies
from bench.config.scenario import Grid, Scenario
from bench.config.site import Site
from bench.model.message_sizes import MessageSize
from bench.runner.cell_plan import plan_cell
from bench.units import Bandwidth
from producers.pulsar.plugin import copies, pulsar_copies
from producers.pulsar.site import PulsarSite
from producers.pulsar.source import PulsarSettings


def test_pulsar_sends_to_its_bookies_and_writes_twice() -> None:
    """A quorum of two, one reader: two to bookies and one out; journal and ledger of both copies, on two bookies."""
    assert pulsar_copies(2, consumers=1, bookies=2) == Copies(network=3, disk=2)


def test_a_larger_quorum_has_a_lower_bound() -> None:
    """From one to three, on the same bookies."""
    scenario = Scenario("x", ("python/pulsar",), Grid((MessageSize(1000),)))
    sections = [PulsarSite("pulsar://a:1", "http://a:2", bookies=3, write_quorum=quorum) for quorum in (1, 2, 3)]
    sites = [Site(bandwidth=Bandwidth(1e9), disk=Bandwidth(1e9), sections={"pulsar": one}) for one in sections]
    found = [plan_cell(scenario.cells()[0], scenario, site, 2).bounds for site in sites]
    for name in ("network", "disk"):
        rates = [min(bound.hz for bound in known if bound.name == name) for known in found]
        assert rates == sorted(rates, reverse=True)
        assert len(set(rates)) == 3


def test_copies_are_known_where_the_site_says_who_keeps_a_message() -> None:
    """Those of an embedded Pulsar follow from its settings."""
    settings = PulsarSettings(bookies=3, write_quorum=3)
    assert copies(settings, Site()) == pulsar_copies(3, bookies=3)
    complete = PulsarSite("pulsar://a:1,b:1", "http://a:2", bookies=4, write_quorum=2)
    assert copies(settings, Site(sections={"pulsar": complete})) == pulsar_copies(2, bookies=4, brokers=2)
    assert copies(settings, Site(sections={"pulsar": PulsarSite("pulsar://a:1", "http://a:2")})) is None
