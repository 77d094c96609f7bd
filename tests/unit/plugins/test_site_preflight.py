"""A run that lacks something of its site is refused, by the key of the site file or the endpoint."""

from pathlib import Path

import pytest

from bench.config.site import Site
from bench.errors import SiteError
from bench.model.cell import Cell
from bench.plugins.site_preflight import (
    missing_endpoints,
    missing_for,
    part_of,
    require_site,
    site_services,
    unusable_here,
)
from frameworks.harmonicio.site import HarmonicioSite
from frameworks.spark.site import SparkSite
from producers.files.site import FilesSite
from producers.kafka.site import KafkaSecurity, KafkaSite
from producers.pulsar.site import PulsarSite
from producers.tcp.site import TcpSite


def pulsar_site(address: str, token_file: str | None = None) -> Site:
    return Site(sections={"pulsar": PulsarSite(f"pulsar://{address}", f"http://{address}", token_file=token_file)})


def test_an_endpoint_where_nobody_listens_refused_the_connection(unused_address: str) -> None:
    """Its host is there: what listened has died."""
    (missing,) = missing_endpoints(Site(sections={"spark": SparkSite(f"spark://{unused_address}")}))
    assert missing.refused
    assert not missing.is_source
    assert str(missing) == f"spark at {unused_address}: no connection (Connection refused)"


def test_a_run_needs_its_endpoints(unused_address: str) -> None:
    """Nothing is begun where one of them is missing."""
    with pytest.raises(SiteError, match=f"kafka at {unused_address}: no connection"):
        require_site(Site(sections={"kafka": KafkaSite(unused_address)}))


def test_a_cell_needs_only_the_services_of_its_own_plugins(unused_address: str, exporter_address: str) -> None:
    """Another source of the site that is gone is a finding of that source's cells."""
    sections = {"kafka": KafkaSite(exporter_address), "pulsar": pulsar_site(unused_address).sections["pulsar"]}
    site = Site(sections=sections)
    require_site(part_of(site, Cell("python", "kafka", 1000, 0.0)))
    assert missing_endpoints(part_of(site, Cell("spark", "kafka", 1000, 0.0))) == []
    with pytest.raises(SiteError, match="pulsar at"):
        require_site(part_of(site, Cell("python", "pulsar", 1000, 0.0)))


def test_a_site_whose_endpoints_answer_is_complete(exporter_address: str) -> None:
    """So is a run without a site."""
    require_site(Site(sections={"kafka": KafkaSite(exporter_address)}))
    require_site(Site())
    assert missing_endpoints(Site()) == []


def test_a_section_of_two_plugins_counts_once() -> None:
    """HarmonicIO is framework and source: its death is that of the framework."""
    site = Site(sections={"harmonicio": HarmonicioSite("h:1", "h:2", "h:3"), "kafka": KafkaSite("k:1")})
    assert {each.key: each.is_source for each in site_services(site)} == {"harmonicio": False, "kafka": True}


def test_what_this_machine_should_serve_is_looked_at(tmp_path: Path) -> None:
    """An address that is not its own and a folder that is not there are reported."""
    site = Site(sections={"tcp": TcpSite("192.0.2.1:7200"), "files": FilesSite(str(tmp_path / "unmounted"))})
    folder, listening = sorted(unusable_here(site))
    assert listening.startswith("site.tcp.listen: cannot listen at 192.0.2.1:7200")
    assert folder == f"site.files.folder: {tmp_path / 'unmounted'} is no folder that can be written; is it mounted?"
    assert unusable_here(Site()) == []


@pytest.mark.parametrize(
    ("key", "section"),
    [
        ("kafka.security.password_file", KafkaSite("b1:9092", KafkaSecurity("bench", "/nowhere/it", "/dev/null"))),
        ("pulsar.ca_file", PulsarSite("pulsar://b1:6650", "http://b1:8080", ca_file="/nowhere/it")),
        ("spark.password_file", SparkSite("local[2]", password_file="/nowhere/it")),
        (
            "harmonicio.connector_token_file",
            HarmonicioSite("a:1", "a:2", "a:3", connector_token_file="/nowhere/it"),
        ),
    ],
    ids=["kafka", "pulsar", "spark", "harmonicio"],
)
def test_a_file_that_cannot_be_read_ends_a_run_before_it_begins(key: str, section: object) -> None:
    """The line names the key and the path, not an endpoint that did not answer."""
    site = Site(sections={key.partition(".")[0]: section})
    with pytest.raises(SiteError, match=rf"site\.{key}: /nowhere/it cannot be read"):
        require_site(site)


def test_a_sites_pulsar_needs_no_jars(exporter_address: str, tmp_path: Path) -> None:
    """It needs no Java either."""
    plugins = [("frameworks", "python"), ("sources", "pulsar")]
    assert missing_for(plugins, pulsar_site(exporter_address), tmp_path) == []


def test_an_embedded_pulsars_jars_are_announced(tmp_path: Path) -> None:
    """They will be downloaded."""
    assert missing_for([("sources", "pulsar")], Site(), tmp_path) == [
        "the jars of pulsar are not in the cache: they will be downloaded first"
    ]


def test_a_pulsar_that_does_not_answer_is_reported(unused_address: str) -> None:
    """Its service and its administration have a line each, with the address."""
    found = missing_endpoints(pulsar_site(unused_address))
    assert list(map(str, found)) == 2 * [f"pulsar at {unused_address}: no connection (Connection refused)"]


def test_a_token_file_that_is_not_there_is_reported(exporter_address: str, tmp_path: Path) -> None:
    """The line has the key that names it."""
    found = missing_for([("sources", "pulsar")], pulsar_site(exporter_address, str(tmp_path / "token")), tmp_path)
    assert found == [f"site.pulsar.token_file: {tmp_path / 'token'} cannot be read"]


def test_a_plugin_that_is_not_installed_is_reported(tmp_path: Path) -> None:
    """The line names those that are."""
    (line,) = missing_for([("sources", "kafak")], Site(), tmp_path)
    assert line.startswith("unknown source 'kafak'; installed: ")
    assert line.endswith("did you mean 'kafka'?")
