"""A system is placed by the sections of the site file: hosts, cores, network, and the way to its source."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.config.scenario import Grid, LoadSettings, Scenario
from bench.config.site import LoadHosts, Site
from bench.model.cell import Cell
from bench.model.message_sizes import MessageSize
from bench.plugins.environment import RunEnvironment
from bench.plugins.placement import Placement, framework_service, partitions, place, unreachable_reason
from bench.runner.cell_plan import plan_cell
from bench.storage.run_folder import RunRecord
from bench.system.supervisor import Supervisor
from bench.units import Bandwidth, Seconds
from frameworks.command.site import CommandSite
from frameworks.harmonicio.site import HarmonicioSite
from frameworks.spark.site import SparkSite
from producers.files.site import FilesSite
from producers.kafka.site import KafkaSite
from producers.tcp.site import TcpSite
from reports.data.derived import cpu_bound
from reports.data.run_data import RunData

SPARK = SparkSite("spark://f1:7077", cores=12)
HARMONICIO = HarmonicioSite("f1:8090", "f1:8091", "127.0.0.1:7215")


def unsupported_reason(system: str, site: Site) -> str | None:
    """Return what the plan of a system's cell says."""
    scenario = Scenario("x", (system,), Grid((MessageSize(1000),)))
    return plan_cell(scenario.cells()[0], scenario, site, 2).unsupported_reason


def test_what_runs_on_other_hosts_is_known() -> None:
    """It is what the site file has a section of; a plugin that is called as another key of the file has none."""
    site = Site(load=LoadHosts("h:1", 1), sections={"kafka": KafkaSite("b1:9092"), "harmonicio": HARMONICIO})
    assert place("harmonicio", "stream", site, 1).source_remote
    assert not place("load", "load", site, 1).source_remote
    assert place("python", "kafka", site, 1).source_remote
    assert not place("spark", "kafka", site, 1).framework_remote
    assert not place("python", "kafka", site, 1).framework_remote


def test_a_source_that_this_machine_serves_is_not_remote() -> None:
    """A port and a folder of this machine have sections, and stay here."""
    site = Site(sections={"tcp": TcpSite("127.0.0.1:7200"), "files": FilesSite("/srv/stream")})
    assert not place("python", "tcp", site, 2).source_remote
    assert not place("python", "files", site, 2).source_remote


def test_without_a_site_everything_runs_here() -> None:
    """There is no link within one machine."""
    assert place("spark", "kafka", Site(), 2) == Placement(
        framework_remote=False, source_remote=False, load_remote=False, framework_ours=True, cores=2, link=None
    )


COMMAND = Site(sections={"command": CommandSite(cores=16), "kafka": KafkaSite("b1:9092")})
LOAD = LoadHosts("h:1", 1)


@pytest.mark.parametrize(
    ("settings", "site", "unseen", "sees_other_work"),
    [
        ({}, Site(), set(), True),
        ({"run": "none", "file": "x.json"}, Site(), {"framework"}, False),
        ({"run": "docker run x", "daemon": True}, Site(), {"framework"}, False),
        ({"run": "none", "file": "x.json"}, COMMAND, {"framework", "source"}, True),
        ({"run": "ssh f1 x"}, replace(COMMAND, load=LOAD), {"framework", "source"}, False),
    ],
    ids=["a child", "runs already", "a container", "on other hosts", "nothing here"],
)
def test_other_work_is_what_is_not_ours_on_a_machine_that_is_measured(
    settings: dict[str, object], site: Site, unseen: set[str], sees_other_work: bool
) -> None:
    """Where the framework's processes are not children of the harness, their CPU time looks like other work."""
    placement = place("command", "kafka", site, 2, {"command": settings})
    assert (placement.unseen_roles, placement.sees_other_work) == (unseen, sees_other_work)
    assert placement.cores == (16 if site.sections else 2)


@pytest.mark.parametrize(
    ("configured", "max_workers", "found"),
    [(None, None, 2), (None, 8, 8), (3, 8, 3)],
    ids=["cores", "workers at most", "as set"],
)
def test_a_topic_has_a_partition_for_each_task_that_may_read_it(
    tmp_path: Path, configured: int | None, max_workers: int | None, found: int
) -> None:
    """One for each core, or for the most workers where they come and go, unless the scenario says."""
    supervisor = Supervisor(tmp_path / "children", tmp_path / "logs")
    env = RunEnvironment(Site(), supervisor, tmp_path, tmp_path, cores=2, max_workers=max_workers)
    assert partitions(configured, Cell("python", "kafka", 100, 0.0), env) == found


@pytest.mark.parametrize(
    ("system", "site", "link"),
    [
        ("python/tcp", Site(bandwidth=Bandwidth(125e6)), None),
        ("python/kafka", Site(bandwidth=Bandwidth(125e6), sections={"kafka": KafkaSite("b1:9092")}), 125e6),
        ("spark/tcp", Site(bandwidth=Bandwidth(125e6), sections={"spark": SPARK}), 125e6),
        ("python/tcp", Site(bandwidth=Bandwidth(125e6), load=LoadHosts("h:1", 1)), 125e6),
        ("python/kafka", Site(sections={"kafka": KafkaSite("b1:9092")}), None),
    ],
    ids=["all here", "remote source", "remote framework", "load hosts", "bandwidth unknown"],
)
def test_messages_cross_a_link_where_anything_is_on_another_host(system: str, site: Site, link: float | None) -> None:
    """Its bandwidth is the site's."""
    framework, _, source = system.partition("/")
    assert place(framework, source, site, 2).link == link


def test_a_framework_that_is_not_installed_runs_here() -> None:
    """Runs of plugins that are gone can be reported."""
    assert framework_service("gone", Site(sections={"spark": SPARK})) is None
    assert place("gone", "gone", Site(cores=16), 2).cores == 2


@pytest.mark.parametrize(
    ("system", "site", "part"),
    [
        ("spark/kafka", Site(sections={"spark": SPARK}), "kafka"),
        ("spark/pulsar", Site(sections={"spark": SPARK, "kafka": KafkaSite("b1:9092")}), "pulsar"),
        ("spark/files", Site(sections={"spark": SPARK}), "files"),
        ("spark/tcp", Site(sections={"spark": SPARK, "files": FilesSite("/srv/stream")}), "tcp"),
        ("harmonicio/kafka", Site(sections={"harmonicio": HARMONICIO}), "kafka"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_source_that_a_framework_of_the_site_would_not_reach_is_refused(system: str, site: Site, part: str) -> None:
    """The sentence names the section of the site file that is missing."""
    framework, _, source = system.partition("/")
    assert unsupported_reason(system, site) == (
        f"{framework} runs on the site, {source} on this machine, where it is not reached:"
        f" the site file has no `{part}`"
    )


@pytest.mark.parametrize(
    ("system", "site"),
    [
        ("spark/kafka", Site()),
        ("python/tcp", Site(sections={"spark": SPARK})),
        ("harmonicio/stream", Site(sections={"spark": SPARK})),
        ("harmonicio/stream", Site(sections={"harmonicio": HARMONICIO})),
        ("spark/files", Site(sections={"spark": SPARK, "files": FilesSite("/srv/stream")})),
        ("spark/tcp", Site(sections={"spark": SPARK, "tcp": TcpSite("127.0.0.1:7200")})),
        ("spark/kafka", Site(sections={"spark": SPARK, "kafka": KafkaSite("b1:9092")})),
    ],
    ids=[
        "all here",
        "python is here",
        "harmonicio is here",
        "its own source",
        "shared folder",
        "a port",
        "the site's broker",
    ],
)
def test_a_source_that_is_reached_is_not_refused(system: str, site: Site) -> None:
    """Both are here, or the site file says where the source is reached."""
    assert unsupported_reason(system, site) is None


def test_a_source_within_the_harness_is_refused_to_processes_of_their_own() -> None:
    """A framework within the harness reads it."""
    assert unreachable_reason("capacity", "memory", Site()) is None
    assert unreachable_reason("spark", "memory", Site()) == (
        "memory exists only within the harness's process, and spark reads with processes of its own"
    )


def test_load_generators_of_other_hosts_reach_only_sources_of_the_site() -> None:
    """A cell of a source of this machine is unsupported; the other cells of the run are measured."""
    load = LoadHosts("127.0.0.1:5557", 3)
    site = Site(load=load, sections={"kafka": KafkaSite("b1:9092")})
    assert unreachable_reason("python", "kafka", site) is None
    for source in ("tcp", "files", "memory", "stream"):
        reason = unreachable_reason("capacity" if source == "memory" else "python", source, site)
        assert reason is not None
        assert reason.startswith(f"{source} runs on this machine, where load generators of other hosts")


def test_load_workers_serve_a_port_of_their_own_and_a_folder_that_they_share() -> None:
    """Where the site file says so, and has an address for each of them."""
    sections = {"tcp": TcpSite("a:1", load_hosts=("l1:1", "l1:2", "l2:1")), "files": FilesSite("/srv", load_hosts=True)}
    three = Site(load=LoadHosts("a:2", 3), sections=sections)
    assert [unreachable_reason("python", source, three) for source in sections] == [None, None]
    four = Site(load=LoadHosts("a:2", 4), sections=sections)
    assert unreachable_reason("python", "files", four) is None
    assert unsupported_reason("python/tcp", four) == (
        "the site file has 4 load workers, and of tcp addresses for 3 of them"
    )


def test_receivers_leave_a_core_of_a_cluster_for_tasks() -> None:
    """Each occupies one, and without another no batch would ever run; the socket source needs none."""
    sections = {"spark": SparkSite("spark://f1:7077", cores=3), "tcp": TcpSite("a:1")}
    scenario = Scenario("x", ("spark/tcp",), Grid((MessageSize(1000),)), load=LoadSettings(workers=3))
    (cell,) = scenario.cells()
    found = plan_cell(cell, scenario, Site(sections=sections), 8)
    assert found.unsupported_reason == "load.workers: 3, but spark/tcp takes messages of 2 at most"
    free = replace(scenario, load=LoadSettings(cores=8))
    assert plan_cell(cell, free, Site(sections=sections), 8).max_workers == 2
    assert plan_cell(cell, free, Site(), 8).max_workers == 8
    sockets = replace(scenario, settings={"spark": {"tcp": "socket"}})
    assert plan_cell(cell, sockets, Site(sections=sections), 8).unsupported_reason is None


def test_cores_are_those_of_the_frameworks_hosts() -> None:
    """They are of the framework's section, of the site for all, or of this machine."""
    site = Site(cores=16, sections={"spark": SPARK, "harmonicio": HARMONICIO})
    assert [place(name, "kafka", site, 2).cores for name in ("spark", "harmonicio", "python")] == [12, 16, 2]
    assert place("spark", "kafka", Site(cores=16, sections={"kafka": KafkaSite("b1:9092")}), 2).cores == 2
    scenario = Scenario("x", ("spark/kafka", "python/kafka"), Grid((MessageSize(1000),), (Seconds(0.01),)))
    assert [plan_cell(cell, scenario, site, 2).bounds[0].hz for cell in scenario.cells()] == [1200.0, 200.0]


def test_a_reports_bound_is_that_of_the_framework() -> None:
    """Spark's twelve cores of the site are not those of plain processes on this machine."""
    scenario = Scenario("x", ("spark/kafka", "python/kafka"), Grid((MessageSize(1000),)))
    run = RunRecord(1, scenario, Site(sections={"spark": SPARK}), {"cores": 2}, "2026-05-04T10:00:00Z")
    run_data = RunData(Path(), run, ())
    assert [cpu_bound(run_data, name, 0.01) for name in ("spark", "python")] == [1200.0, 200.0]
