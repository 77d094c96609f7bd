"""A cell's plan holds what follows from scenario, site and plugins: its bounds, and why it cannot be measured."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.config.elasticity import Elasticity, LoadPart
from bench.config.scenario import Grid, LoadSettings, Scenario
from bench.config.site import LoadHosts, Site
from bench.model.measurement import Bound
from bench.model.message_keys import Keys
from bench.model.message_sizes import MessageSize
from bench.runner.cell_plan import CellPlan, plan_cell
from bench.services.python_environments import missing_reason
from bench.units import Bandwidth, Rate, Seconds, Share
from frameworks.bytewax.adapter import ENVIRONMENT
from producers.kafka.site import KafkaSite
from producers.pulsar.site import PulsarSite


def plan(system: str, site: Site | None = None, load: LoadSettings | None = None, **settings: object) -> CellPlan:
    """Return the plan of a system's only cell, with messages of 1 kB, on two cores."""
    scenario = Scenario(
        "x", (system,), Grid((MessageSize(1000),)), load=load or LoadSettings(),
        settings={system.partition("/")[2]: settings} if settings else {},
    )  # fmt: skip
    return plan_cell(scenario.cells()[0], scenario, site or Site(), 2)


@pytest.mark.parametrize(
    ("settings", "brokers", "network"),
    [({"replication": 3}, "a:1", 100_000.0), ({"replication": 3}, "a:1,b:1,c:1", 300_000.0), ({}, "a:1", 300_000.0)],
    ids=["three copies on one", "three copies on three", "one"],
)
def test_the_sources_settings_make_the_bound(settings: dict[str, object], brokers: str, network: float) -> None:
    """It is the site's 300 MB/s, divided by the copies that a broker's card carries."""
    site = Site(bandwidth=Bandwidth(300e6), sections={"kafka": KafkaSite(brokers)})
    assert plan("python/kafka", site, **settings).bounds[0].hz == network


def test_within_one_machine_there_is_no_network_bound() -> None:
    """The site's Kafka is remote, a cell over TCP is not; where hosts of their own send, the link has several cards."""
    site = Site(bandwidth=Bandwidth(300e6), sections={"kafka": KafkaSite("a:1")})
    assert plan("python/kafka", site).bounds == (Bound("network", 300_000.0),)
    assert plan("python/tcp", site).bounds == ()
    several = replace(site, load=LoadHosts("a:2", 2))
    assert [bound.hard for system in ("python/kafka", "python/tcp") for bound in plan(system, several).bounds] == [
        False,
        False,
    ]


def test_a_disk_is_a_soft_bound_and_a_network_a_hard_one() -> None:
    """A disk may be exceeded for a while, a network never; the lowest bound comes first."""
    site = Site(bandwidth=Bandwidth(200e6), disk=Bandwidth(50e6), sections={"kafka": KafkaSite("a:1")})
    found = plan("python/kafka", site)
    assert [(bound.name, bound.hz, bound.hard) for bound in found.bounds] == [
        ("disk", 50_000.0, False),
        ("network", 200_000.0, True),
    ]
    assert found.hard_bound == Bound("network", 200_000.0)
    assert [bound.name for bound in found.soft_bounds] == ["disk"]


def test_a_sites_pulsar_keeps_messages_in_its_own_way() -> None:
    """The scenario's settings are those of an embedded one; where the site does not say, there is no such bound."""
    settings = {"bookies": 3, "write_quorum": 3}
    brokers, disk = "pulsar://a:1,b:1,c:1", Bandwidth(900e6)
    complete = Site(disk=disk, sections={"pulsar": PulsarSite(brokers, "http://a:2", bookies=3, write_quorum=2)})
    assert [(bound.name, round(bound.hz)) for bound in plan("python/pulsar", complete, **settings).bounds] == [
        ("disk", 675_000)
    ]
    silent = Site(disk=disk, sections={"pulsar": PulsarSite(brokers, "http://a:2")})
    assert plan("python/pulsar", silent, **settings).bounds == ()
    assert plan("python/pulsar", silent).hard_bound is None


def test_the_batch_interval_is_that_of_the_framework() -> None:
    """A framework that goes on continuously has none."""
    assert plan("spark/kafka").batch_interval > 0
    assert plan("python/kafka").batch_interval == 0


def test_a_source_without_keys_refuses_them() -> None:
    """The sentence names the sources that have them."""
    assert plan("capacity/memory", load=LoadSettings(keys=Keys(10))).unsupported_reason == (
        "load.keys: messages of memory have no keys; leave it out, or use a source that has them (kafka, pulsar)"
    )


@pytest.mark.parametrize("source", ["kafka", "pulsar"])
def test_a_source_with_keys_takes_them(source: str) -> None:
    """Kafka and Pulsar have them."""
    assert plan(f"python/{source}", load=LoadSettings(keys=Keys(10))).unsupported_reason is None


@pytest.mark.parametrize(
    ("system", "load", "reason"),
    [
        ("python/kafka", LoadSettings(by="inline", workers=2), "this load generator is one thread of the harness"),
        ("command/tcp", LoadSettings(workers=2), "command/tcp takes messages of 1 at most"),
        ("capacity/memory", LoadSettings(workers=2), "this load generator is one thread of the harness"),
        ("capacity/memory", LoadSettings(by="locust"), "memory exists only within the harness's process"),
    ],
    ids=["one thread", "one address", "one thread, chosen by the source", "in the process"],
)
def test_a_load_generator_that_cannot_serve_the_source_is_refused(system: str, load: LoadSettings, reason: str) -> None:
    """The sentence says which of both is in the way."""
    found = plan(system, load=load).unsupported_reason
    assert found is not None
    assert reason in found


@pytest.mark.parametrize(
    ("system", "load", "most"),
    [
        ("python/kafka", LoadSettings(cores=8), 8),
        ("python/kafka", LoadSettings(cores=8, workers=1), 1),
        ("python/kafka", LoadSettings(cores=8, limit=Rate(100)), 1),
        ("python/tcp", LoadSettings(cores=8), 8),
        ("command/tcp", LoadSettings(cores=8), 1),
        ("capacity/memory", LoadSettings(cores=8), 1),
    ],
    ids=["open", "number given", "limited on purpose", "a port for each", "one address", "in the process"],
)
def test_a_load_generator_may_have_as_many_workers_as_it_has_cores(system: str, load: LoadSettings, most: int) -> None:
    """Only one where more could not help or were not asked for."""
    found = plan(system, load=load)
    assert (found.workers, found.max_workers) == (1, most)
    assert found.with_workers(2).workers == 2


@pytest.mark.parametrize(
    ("system", "entropy", "refused"),
    [("flink/files", 0.9, True), ("flink/files", 0.8, False), ("flink/kafka", 0.9, False), ("spark/files", 0.9, False)],
)
def test_a_framework_that_reads_lines_refuses_a_binary_filler(system: str, entropy: float, *, refused: bool) -> None:
    """Only where it reads the source as lines; the reason names the setting."""
    reason = plan(system, load=LoadSettings(entropy=Share(entropy))).unsupported_reason
    assert reason is None if not refused else "load.entropy 0.9 is above 0.8" in (reason or "")


@pytest.mark.parametrize(
    ("system", "said"),
    [("flink/kafka", None), ("flink/tcp", "only while it reads kafka"), ("spark/tcp", "advice and restart only")],
)
def test_workers_come_and_go_where_the_framework_can_do_that(system: str, said: str | None) -> None:
    """Of kind elasticity a framework may support some sources only; the reason names them."""
    elasticity = Elasticity((LoadPart(Seconds(1), Rate(1)),), ("fixed",))
    scenario = Scenario("x", (system,), Grid((MessageSize(1000),)), elasticity=elasticity)
    reason = plan_cell(scenario.cells()[0], scenario, Site(), 2).unsupported_reason
    assert reason is None if said is None else said in (reason or "")


def test_a_source_in_the_harness_gets_a_load_generator_there() -> None:
    """It need not be named; other sources get the default one."""
    assert plan("capacity/memory").load_generator.in_process
    assert plan("capacity/memory").unsupported_reason is None
    assert plan("python/kafka").load_generator.default


def test_a_framework_that_is_not_installed_makes_a_cell_unsupported(tmp_path: Path) -> None:
    """The sentence has the command that installs it; where nothing is run, this is not checked."""
    scenario = Scenario("x", ("bytewax/kafka",), Grid((MessageSize(1000),)))
    cell = scenario.cells()[0]
    if missing_reason(ENVIRONMENT, tmp_path) != "bytewax is not installed (30 MB); run: bench install bytewax":
        pytest.skip("there is no Python here with which Bytewax could be installed")
    assert plan_cell(cell, scenario, Site(), 2, tmp_path).unsupported_reason == missing_reason(ENVIRONMENT, tmp_path)
    assert plan_cell(cell, scenario, Site(), 2).unsupported_reason is None


@pytest.mark.parametrize(
    ("system", "trace", "cost", "traced"),
    [
        ("python/kafka", None, 0.005, True), ("python/kafka", None, 0.004, False),
        ("python/kafka", False, 0.005, False), ("python/kafka", True, 0.0, True),
        ("spark/kafka", None, 0.005, False), ("spark/kafka", True, 0.005, True),
    ],
)  # fmt: skip
def test_cells_are_traced_where_it_costs_little(system: str, trace: bool | None, cost: float, *, traced: bool) -> None:
    """Unless the scenario says otherwise: what it costs the driver of batches is not known well enough."""
    scenario = Scenario("x", (system,), Grid((MessageSize(1000),), (Seconds(cost),)), trace=trace)
    assert plan_cell(scenario.cells()[0], scenario, Site(), 2).traced == traced


def test_a_run_of_policies_is_not_traced_unless_the_scenario_says_so() -> None:
    """It lasts for minutes, and nothing explains it."""
    elasticity = Elasticity((LoadPart(Seconds(10), Rate(8)),), ("ds2",))
    scenario = Scenario(
        "x",
        ("harmonicio/stream",),
        Grid((MessageSize(1000),), (Seconds(0.01),)),
        kind="elasticity",
        elasticity=elasticity,
    )
    assert not plan_cell(scenario.cells()[0], scenario, Site(), 2).traced
