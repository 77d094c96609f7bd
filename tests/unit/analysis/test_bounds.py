"""The bounds of a cell follow the formulas, and a cell near a bound is limited by it."""

import pytest
from msgspec.structs import replace

from bench.analysis.bounds import Copies, cell_bounds, kafka_copies, pulsar_copies, reached_bound
from bench.config.scenario import Grid, Scenario
from bench.config.site import LoadHosts, Site
from bench.model.cell import Cell
from bench.model.measurement import Bound, Result
from bench.runner import deployment, run
from bench.units import Bandwidth, Size
from producers.kafka.site import KafkaSite
from producers.pulsar.site import PulsarSite

CELL = Cell("python", "kafka", 1000, 0.01)


def test_kafka_sends_to_followers_and_consumers():
    """Three copies, two readers, three brokers: three times in, two to followers and two out; three copies on three disks."""
    assert kafka_copies(3, consumers=2, brokers=3) == Copies(network=4 / 3, disk=1)


def test_a_card_carries_both_directions_at_once():
    """What comes in and goes out once fills a card no more than what comes in alone."""
    assert kafka_copies(1) == Copies(network=1, disk=1)


def test_pulsar_sends_to_its_bookies_and_writes_twice():
    """A quorum of two, one reader: two to bookies and one out; journal and ledger of both copies, on two bookies."""
    assert pulsar_copies(2, consumers=1, bookies=2) == Copies(network=3, disk=2)


def test_a_larger_quorum_has_a_lower_bound():
    """Network and disk bounds fall as the write quorum grows from one to three on the same bookies."""
    bounds = [cell_bounds(CELL, 2, pulsar_copies(quorum, bookies=3), network=1e9, disk=1e9) for quorum in (1, 2, 3)]
    for name in ("network", "disk"):
        rates = [min(bound.hz for bound in each if bound.name == name) for each in bounds]
        assert rates == sorted(rates, reverse=True)
        assert len(set(rates)) == 3


def test_the_lowest_bound_comes_first():
    """A network of 125 MB/s carries 125,000 messages of 1 kB, a third of them with three copies; two cores process 200
    of 10 ms."""
    bounds = cell_bounds(CELL, 2, kafka_copies(3), network=125e6, disk=900e6)
    network = [Bound("network", 125e6 / 3000, hard=False), Bound("network", 125_000.0)]
    assert bounds == [Bound("cpu", 200.0), network[0], network[1], Bound("disk", 300_000.0, hard=False)]


def test_an_unknown_bandwidth_gives_no_bound():
    """A cell within one machine has no network bound, and a disk of unknown speed gives none."""
    assert cell_bounds(Cell("python", "tcp", 100, 0.0), 2, None, network=None, disk=None) == []


def test_a_rate_near_a_bound_has_reached_it():
    """A bound is reached from nine tenths of it on."""
    bounds = [Bound("network", 100.0), Bound("disk", 1000.0, hard=False)]
    assert reached_bound(89.0, bounds) is None
    assert reached_bound(90.0, bounds) == bounds[0]


@pytest.mark.parametrize(
    ("settings", "brokers", "network"),
    [({"replication": 3}, "a:1", 100_000.0), ({"replication": 3}, "a:1,b:1,c:1", 300_000.0), ({}, "a:1", 300_000.0)],
    ids=["three copies on one", "three copies on three", "one"],
)
def test_the_settings_of_the_source_set_the_bound(settings, brokers, network):
    """The network bound is the site's 300 MB/s divided by the copies that a broker's card carries."""
    scenario = Scenario("x", ("python/kafka",), Grid((Size(1000),)), settings={"kafka": settings})
    site = Site(bandwidth=Bandwidth(300e6), sections={"kafka": KafkaSite(brokers)})
    assert deployment.cell_bounds(scenario.cells()[0], scenario, site, 2)[0].hz == network


def test_within_one_machine_there_is_no_network():
    """Only the cell whose Kafka is elsewhere has a network bound; with several sending hosts it is a soft one."""
    scenario = Scenario("x", ("python/kafka", "python/tcp"), Grid((Size(1000),)))
    site = Site(bandwidth=Bandwidth(300e6), sections={"kafka": KafkaSite("a:1")})
    bounds = {cell.source: deployment.cell_bounds(cell, scenario, site, 2) for cell in scenario.cells()}
    assert (bounds["kafka"], bounds["tcp"]) == ([Bound("network", 300_000.0)], [])
    several = replace(site, load=LoadHosts("a:2", 2))
    assert [
        bound.hard for cell in scenario.cells() for bound in deployment.cell_bounds(cell, scenario, several, 2)
    ] == [
        False,
        False,
    ]


def test_a_cell_at_a_bound_is_limited_by_it():
    """The bound replaces the limit that the trials showed."""
    result = Result("python/kafka", "python", "kafka", 1000, 0.0, "measured", estimate_hz=950.0, limited_by="cpu")
    assert run.under([Bound("network", 1000.0)], result).limited_by == "network"
    assert run.under([Bound("network", 2000.0)], result) == result


def test_a_generators_limit_stays_one_near_a_bound():
    """The limit stays "generator", since the system itself was not at its limit."""
    result = Result(
        "python/kafka", "python", "kafka", 1000, 0.0, "lower-bound", estimate_hz=950.0, limited_by="generator"
    )
    assert run.under([Bound("network", 1000.0)], result) == result


def test_the_network_is_a_hard_bound_and_the_disk_a_soft_one():
    """A disk's bandwidth may be exceeded for a while, a network's never."""
    scenario = Scenario("x", ("python/kafka",), Grid((Size(1000),)))
    site = Site(bandwidth=Bandwidth(200e6), disk=Bandwidth(50e6), sections={"kafka": KafkaSite("a:1")})
    bounds = deployment.cell_bounds(scenario.cells()[0], scenario, site, 2)
    assert [(bound.name, bound.hz, bound.hard) for bound in bounds] == [
        ("disk", 50_000.0, False),
        ("network", 200_000.0, True),
    ]


def test_an_interval_ends_where_theory_does():
    """The interval is cut at the hard bound; an estimate above the bound fails the cell."""
    result = Result(
        "python/kafka",
        "python",
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


def test_a_cell_keeps_its_soft_bounds_for_the_report():
    """The result has the soft bounds; the hard one is its bound anyway."""
    bounds = [Bound("disk", 90.0, hard=False), Bound("cpu", 100.0)]
    result = run.under(bounds, Result("python/kafka", "python", "kafka", 1000, 0.0, "measured", estimate_hz=85.0))
    assert (result.soft_bounds, result.limited_by) == ((bounds[0],), "disk")


def test_a_sites_pulsar_keeps_messages_in_its_own_way():
    """The site's bookies and quorum count, not the scenario's; where the site does not name them there is no disk
    bound."""
    scenario = Scenario(
        "x", ("python/pulsar",), Grid((Size(1000),)), settings={"pulsar": {"bookies": 3, "write_quorum": 3}}
    )
    brokers, disk = "pulsar://a:1,b:1,c:1", Bandwidth(900e6)
    known_site = Site(disk=disk, sections={"pulsar": PulsarSite(brokers, "http://a:2", bookies=3, write_quorum=2)})
    assert [
        (bound.name, round(bound.hz)) for bound in deployment.cell_bounds(scenario.cells()[0], scenario, known_site, 2)
    ] == [("disk", 675_000)]
    silent = Site(disk=disk, sections={"pulsar": PulsarSite(brokers, "http://a:2")})
    assert deployment.cell_bounds(scenario.cells()[0], scenario, silent, 2) == []


def test_an_interval_that_reaches_the_generators_limit_is_a_lower_bound():
    """At the generator's limit the cell is a lower bound, below it the cell is measured."""
    rates = {"estimate_hz": 1998.0, "low_hz": 1924.0, "high_hz": 2074.0}
    result = Result("python/kafka", "python", "kafka", 1000, 0.0, "measured", **rates, generator_hz=2000.0)
    checked = run._checked(result)
    assert (checked.status, checked.reason, checked.low_hz, checked.high_hz) == (
        "lower-bound",
        "generator",
        1924.0,
        None,
    )
    assert run._checked(replace(result, generator_hz=2100.0)).status == "measured"
