"""The doctor looks at a site: its endpoints, and what its hosts report of their clocks, services and limits."""

import re
from pathlib import Path

import pytest
from exporter import Exporter

from bench.cli import diagnosis
from bench.config.site import HostSite, Site
from producers.kafka.site import KafkaSite
from producers.pulsar.site import PulsarSite

AHEAD = 5.0
"""Seconds by which the clock of the exporter is ahead of ours in one test."""


def findings(site: Site, tmp_path: Path) -> dict[str, bool]:
    """Return what the doctor says of a site's hosts and endpoints: whether each is as it should be."""
    found = diagnosis.findings(site, tmp_path, tmp_path / "cache", tmp_path / "children")
    return {one.what: one.good for one in found if one.what.startswith(("b1:", "kafka at", "spark at"))}


def test_a_clock_that_is_off_is_a_bad_finding(
    exporter_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five seconds ahead are within what the finding says, however long the exporter took to answer."""
    monkeypatch.setattr(Exporter, "ahead", AHEAD)
    found = findings(Site(hosts={"b1": HostSite(exporter_address)}), tmp_path)
    (clock,) = [(what, good) for what, good in found.items() if "its clock differs" in what]
    said = re.match(r"b1: its clock differs by ([\d.]+) ms ± ([\d.]+) ms", clock[0])
    assert said
    off, bound = map(float, said.groups())
    assert abs(off - 1000 * AHEAD) <= bound + 0.1  # both are rounded
    assert not clock[1]


def test_services_versions_and_limits_are_compared(exporter_address: str, tmp_path: Path) -> None:
    """A service that runs in its version is right; another version, a stopped or missing one, and few files are not."""
    services = {"kafka": "4.1.1", "spark-worker": "4.2.0", "pulsar": "4.2.4"}
    found = findings(Site(hosts={"b1": HostSite(exporter_address, services)}), tmp_path)
    assert found["b1: kafka 4.1.1 runs"]
    assert not found["b1: kafka may have 1024 files and connections at once"]
    assert not found["b1: spark-worker does not run; run the playbook restart.yml"]
    assert not found["b1: pulsar is not set up there; run the playbook site.yml"]
    older = findings(Site(hosts={"b1": HostSite(exporter_address, {"kafka": "4.1.0"})}), tmp_path)
    assert not older["b1: kafka is 4.1.1, the site file says 4.1.0"]


def test_a_host_that_does_not_answer_is_a_bad_finding(unused_address: str, tmp_path: Path) -> None:
    """There is one line about it, which names it."""
    assert list(findings(Site(hosts={"b1": HostSite(unused_address)}), tmp_path).values()) == [False]


def test_an_endpoint_that_takes_connections_is_a_good_finding(exporter_address: str, tmp_path: Path) -> None:
    """The line names its section and its address."""
    assert findings(Site(sections={"kafka": KafkaSite(exporter_address)}), tmp_path) == {
        f"kafka at {exporter_address} takes connections": True
    }


def test_an_endpoint_without_a_connection_is_one_bad_finding(unused_address: str, tmp_path: Path) -> None:
    """Nothing says that it takes connections."""
    assert findings(Site(sections={"kafka": KafkaSite(unused_address)}), tmp_path) == {
        f"kafka at {unused_address}: no connection (Connection refused)": False
    }


def test_jars_that_will_be_downloaded_are_a_good_finding(tmp_path: Path) -> None:
    """An empty cache needs no correction."""
    found = diagnosis.findings(Site(), tmp_path, tmp_path / "cache", tmp_path / "children")
    assert {one.good for one in found if "not in the cache" in one.what} == {True}


def test_a_token_over_an_open_connection_is_reported(unused_address: str, tmp_path: Path) -> None:
    """There is a line for each connection that is not encrypted."""
    (tmp_path / "token").write_text("a token")
    section = PulsarSite(
        f"pulsar+ssl://{unused_address}", f"http://{unused_address}", token_file=str(tmp_path / "token")
    )
    found = diagnosis.findings(Site(sections={"pulsar": section}), tmp_path, tmp_path / "cache", tmp_path / "children")
    assert [one.what for one in found if "unencrypted" in one.what] == [
        f"pulsar at http://{unused_address}: its token goes over an unencrypted connection, where others can read it"
    ]
