"""The roofs over a cell are those of the formulas, and a cell near one carries its name."""

import pytest

from bench import rig, run
from bench.bounds import Copies, Roof, kafka_copies, pulsar_copies, roof_reached, roofs
from bench.measurement import Result
from bench.scenario import Cell, Grid, Scenario
from bench.site import Site
from bench.units import Bandwidth, Size

CELL = Cell("plain", "kafka", 1000, 0.01)


def test_kafka_sends_to_followers_and_consumers():
    """Three copies, two readers: one in, two to followers, two out; three copies on three disks are one a disk."""
    assert kafka_copies(3, consumers=2, brokers=3) == Copies(network=5, disk=1)


def test_pulsar_sends_to_its_bookies_and_writes_twice():
    """A quorum of two, one reader: one in, two to bookies, one out; journal and ledger of both copies, on two bookies."""
    assert pulsar_copies(2, consumers=1, bookies=2) == Copies(network=4, disk=2)


def test_a_larger_quorum_has_a_lower_roof():
    """From one to three, on the same bookies."""
    found = [roofs(CELL, 2, pulsar_copies(quorum, bookies=3), network=1e9, disk=1e9) for quorum in (1, 2, 3)]
    for name in ("network", "disk"):
        rates = [roof.hz for known in found for roof in known if roof.name == name]
        assert rates == sorted(rates, reverse=True)
        assert len(set(rates)) == 3


def test_the_lowest_roof_comes_first():
    """125 MB/s carry 62,500 messages of 1 kB in and out; two cores work on 200 of 10 ms."""
    known = roofs(CELL, 2, kafka_copies(1), network=125e6, disk=200e6)
    assert known == [Roof("cpu", 200.0), Roof("network", 62_500.0), Roof("disk", 200_000.0, hard=False)]


def test_what_is_not_known_is_no_roof():
    """Neither a network within one machine nor a disk of which nobody said how fast it is."""
    assert roofs(Cell("plain", "tcp", 100, 0.0), 2, None, network=None, disk=None) == []


def test_a_rate_near_a_roof_has_reached_it():
    """From nine tenths on."""
    known = [Roof("network", 100.0), Roof("disk", 1000.0, hard=False)]
    assert roof_reached(89.0, known) is None
    assert roof_reached(90.0, known) == known[0]


@pytest.mark.parametrize(("settings", "network"), [({"replication": 3}, 50_000.0), ({}, 100_000.0)], ids=["three copies", "one"])
def test_the_sources_settings_make_the_roof(settings, network):
    """A site's 200 MB/s, less for each copy."""
    scenario = Scenario("x", ("plain/kafka",), Grid((Size(1000),)), settings={"kafka": settings})
    cell = scenario.cells()[0]
    assert rig.roofs(cell, scenario, Site(bandwidth=Bandwidth(200e6)), 2)[0].hz == network


def test_a_cell_at_a_roof_carries_its_name():
    """Whatever else limited the trial."""
    result = Result("plain/kafka", "plain", "kafka", 1000, 0.0, "measured", estimate_hz=950.0, limited_by="cpu")
    assert run.under([Roof("network", 1000.0)], result).limited_by == "network"
    assert run.under([Roof("network", 2000.0)], result) == result


def test_what_lies_above_a_hard_roof_alone_is_an_alarm():
    """A disk may be passed for a while; a network never."""
    scenario = Scenario("x", ("plain/kafka",), Grid((Size(1000),)))
    known = rig.roofs(scenario.cells()[0], scenario, Site(bandwidth=Bandwidth(200e6), disk=Bandwidth(50e6)), 2)
    assert [(roof.name, roof.hz, roof.hard) for roof in known] == [("disk", 50_000.0, False), ("network", 100_000.0, True)]
