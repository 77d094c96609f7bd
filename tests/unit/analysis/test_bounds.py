"""The roofs over a cell are those of the formulas, and a cell near one carries its name."""

import pytest
from msgspec.structs import replace

from bench.analysis.bounds import Copies, cell_bounds, kafka_copies, pulsar_copies, reached_bound
from bench.config.scenario import Grid, Scenario
from bench.config.site import KafkaSite, LoadSite, PulsarSite, Site
from bench.model.cell import Cell
from bench.model.measurement import Bound, Result
from bench.runner import deployment, run
from bench.units import Bandwidth, Size

CELL = Cell("plain", "kafka", 1000, 0.01)


def test_kafka_sends_to_followers_and_consumers():
    """Three copies, two readers, three brokers: three times in, two to followers and two out; three copies on three disks."""
    assert kafka_copies(3, consumers=2, brokers=3) == Copies(network=4 / 3, disk=1)


def test_a_card_carries_both_directions_at_once():
    """What comes in and goes out once fills a card no more than what comes in alone."""
    assert kafka_copies(1) == Copies(network=1, disk=1)


def test_pulsar_sends_to_its_bookies_and_writes_twice():
    """A quorum of two, one reader: two to bookies and one out; journal and ledger of both copies, on two bookies."""
    assert pulsar_copies(2, consumers=1, bookies=2) == Copies(network=3, disk=2)


def test_a_larger_quorum_has_a_lower_roof():
    """From one to three, on the same bookies."""
    bounds = [cell_bounds(CELL, 2, pulsar_copies(quorum, bookies=3), network=1e9, disk=1e9) for quorum in (1, 2, 3)]
    for name in ("network", "disk"):
        rates = [min(bound.hz for bound in known if bound.name == name) for known in bounds]
        assert rates == sorted(rates, reverse=True)
        assert len(set(rates)) == 3


def test_the_lowest_roof_comes_first():
    """125 MB/s carry 125,000 messages of 1 kB, and a third of it where each goes to three; two cores work on 200 of 10 ms."""
    known = cell_bounds(CELL, 2, kafka_copies(3), network=125e6, disk=900e6)
    network = [Bound("network", 125e6 / 3000, hard=False), Bound("network", 125_000.0)]
    assert known == [Bound("cpu", 200.0), network[0], network[1], Bound("disk", 300_000.0, hard=False)]


def test_what_is_not_known_is_no_roof():
    """Neither a network within one machine nor a disk of which nobody said how fast it is."""
    assert cell_bounds(Cell("plain", "tcp", 100, 0.0), 2, None, network=None, disk=None) == []


def test_a_rate_near_a_roof_has_reached_it():
    """From nine tenths on."""
    known = [Bound("network", 100.0), Bound("disk", 1000.0, hard=False)]
    assert reached_bound(89.0, known) is None
    assert reached_bound(90.0, known) == known[0]


@pytest.mark.parametrize(
    ("settings", "brokers", "network"),
    [({"replication": 3}, "a:1", 100_000.0), ({"replication": 3}, "a:1,b:1,c:1", 300_000.0), ({}, "a:1", 300_000.0)],
    ids=["three copies on one", "three copies on three", "one"],
)
def test_the_sources_settings_make_the_roof(settings, brokers, network):
    """A site's 300 MB/s, less for each copy that a broker's card sees."""
    scenario = Scenario("x", ("plain/kafka",), Grid((Size(1000),)), settings={"kafka": settings})
    site = Site(bandwidth=Bandwidth(300e6), kafka=KafkaSite(brokers))
    assert deployment.cell_bounds(scenario.cells()[0], scenario, site, 2)[0].hz == network


def test_within_one_machine_there_is_no_network():
    """The site's Kafka is elsewhere, a cell over TCP is not; where hosts of their own send, the link has several cards."""
    scenario = Scenario("x", ("plain/kafka", "plain/tcp"), Grid((Size(1000),)))
    site = Site(bandwidth=Bandwidth(300e6), kafka=KafkaSite("a:1"))
    bounds = {cell.source: deployment.cell_bounds(cell, scenario, site, 2) for cell in scenario.cells()}
    assert (bounds["kafka"], bounds["tcp"]) == ([Bound("network", 300_000.0)], [])
    several = replace(site, load=LoadSite("a:2", 2))
    assert [
        bound.hard for cell in scenario.cells() for bound in deployment.cell_bounds(cell, scenario, several, 2)
    ] == [
        False,
        False,
    ]


def test_a_cell_at_a_roof_carries_its_name():
    """Whatever else limited the trial."""
    result = Result("plain/kafka", "plain", "kafka", 1000, 0.0, "measured", estimate_hz=950.0, limited_by="cpu")
    assert run.under([Bound("network", 1000.0)], result).limited_by == "network"
    assert run.under([Bound("network", 2000.0)], result) == result


def test_a_generators_limit_stays_one_near_a_roof():
    """The system itself was not at its limit."""
    result = Result(
        "plain/kafka", "plain", "kafka", 1000, 0.0, "lower-bound", estimate_hz=950.0, limited_by="generator"
    )
    assert run.under([Bound("network", 1000.0)], result) == result


def test_what_lies_above_a_hard_roof_alone_is_an_alarm():
    """A disk may be passed for a while; a network never."""
    scenario = Scenario("x", ("plain/kafka",), Grid((Size(1000),)))
    site = Site(bandwidth=Bandwidth(200e6), disk=Bandwidth(50e6), kafka=KafkaSite("a:1"))
    known = deployment.cell_bounds(scenario.cells()[0], scenario, site, 2)
    assert [(bound.name, bound.hz, bound.hard) for bound in known] == [
        ("disk", 50_000.0, False),
        ("network", 200_000.0, True),
    ]


def test_an_interval_ends_where_theory_does():
    """What lies above is possible for the statistics alone; a result above is none."""
    result = Result(
        "plain/kafka",
        "plain",
        "kafka",
        100,
        0.01,
        "measured",
        estimate_hz=196.0,
        low_hz=190.0,
        high_hz=210.0,
        bound_hz=200.0,
    )
    assert run._checked(result) == replace(result, high_hz=200.0)
    assert run._checked(replace(result, estimate_hz=201.0)).high_hz == 201.0
    impossible = run._checked(replace(result, low_hz=230.0, estimate_hz=240.0))
    assert (impossible.status, impossible.estimate_hz, impossible.high_hz) == ("failed", None, None)


def test_a_cell_keeps_its_soft_roofs_for_the_report():
    """What lies above a hard one alone is no figure, so the hard one is the result's bound."""
    known = [Bound("disk", 90.0, hard=False), Bound("cpu", 100.0)]
    bounds = run.under(known, Result("plain/kafka", "plain", "kafka", 1000, 0.0, "measured", estimate_hz=85.0))
    assert (bounds.soft_bounds, bounds.limited_by) == ((known[0],), "disk")


def test_a_sites_pulsar_keeps_messages_in_its_own_way():
    """Whatever the scenario says of an embedded one; where the site does not say, there is no such bound."""
    scenario = Scenario(
        "x", ("plain/pulsar",), Grid((Size(1000),)), settings={"pulsar": {"bookies": 3, "write_quorum": 3}}
    )
    brokers, disk = "pulsar://a:1,b:1,c:1", Bandwidth(900e6)
    known_site = Site(disk=disk, pulsar=PulsarSite(brokers, "http://a:2", bookies=3, write_quorum=2))
    assert [
        (bound.name, round(bound.hz)) for bound in deployment.cell_bounds(scenario.cells()[0], scenario, known_site, 2)
    ] == [("disk", 675_000)]
    silent = Site(disk=disk, pulsar=PulsarSite(brokers, "http://a:2"))
    assert deployment.cell_bounds(scenario.cells()[0], scenario, silent, 2) == []


def test_an_interval_that_reaches_the_generators_limit_is_a_lower_bound():
    """Nobody could tell whose limit was met; below it the system's was."""
    rates = {"estimate_hz": 1998.0, "low_hz": 1924.0, "high_hz": 2074.0}
    result = Result("plain/kafka", "plain", "kafka", 1000, 0.0, "measured", **rates, generator_hz=2000.0)
    bounds = run._checked(result)
    assert (bounds.status, bounds.reason, bounds.low_hz, bounds.high_hz) == ("lower-bound", "generator", 1924.0, None)
    assert run._checked(replace(result, generator_hz=2100.0)).status == "measured"
