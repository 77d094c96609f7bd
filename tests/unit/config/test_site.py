"""A site has keys of its own, and a section for each plugin that adds one."""

import pytest
from msgspec import Struct

from bench.config.address import Address
from bench.config.site import LoadHosts, Site, file_type, from_file, same_site
from bench.config.validation import parse_site
from bench.config.yaml_document import read_document
from bench.errors import UsageError
from bench.units import Bandwidth


class InventedSection(Struct, frozen=True, forbid_unknown_fields=True):
    """The section of a plugin that does not exist."""

    address: str
    cores: int | None = None


@pytest.mark.parametrize(
    ("address", "parts"), [("b1:9092", ("b1", 9092)), ("[fd00::5]:80", ("fd00::5", 80))], ids=["name", "IPv6"]
)
def test_an_address_has_a_host_and_a_port(address, parts):
    """The brackets of an IPv6 address are not part of its host."""
    assert Address.parse(address) == parts


def test_a_section_of_a_plugin_is_typed(tmp_path):
    """It stands beside the keys of every site; one that is left out is not among the sections."""
    (tmp_path / "site.yaml").write_text("name: lab\ncores: 8\nours: {address: a:1}\n")
    site = from_file(
        parse_site(
            read_document(tmp_path / "site.yaml"), file_type({"ours": InventedSection, "theirs": InventedSection})
        )
    )
    assert site == Site("lab", cores=8, sections={"ours": InventedSection("a:1")})


def test_a_section_that_no_plugin_adds_is_refused(tmp_path):
    """The line names the keys that there are."""
    (tmp_path / "site.yaml").write_text("theirs: {address: a:1}\n")
    with pytest.raises(UsageError, match=r":1: theirs: found an unknown key; allowed: name, .*hosts, ours"):
        parse_site(read_document(tmp_path / "site.yaml"), file_type({"ours": InventedSection}))


def test_a_site_file_without_sections_has_the_defaults_of_a_site(tmp_path):
    """Its type shares them with Site."""
    (tmp_path / "site.yaml").write_text("shared_machine: true\n")
    assert from_file(parse_site(read_document(tmp_path / "site.yaml"), file_type({}))) == Site(shared_machine=True)


def test_sites_are_the_same_whether_their_sections_are_typed_or_not():
    """A run's record has them as its file says; a value that is left out equals one that is null."""
    typed = Site("lab", bandwidth=Bandwidth(125e6), sections={"ours": InventedSection("a:1")})
    assert same_site(typed, Site("lab", bandwidth=Bandwidth(125e6), sections={"ours": {"address": "a:1"}}))
    assert not same_site(typed, Site("lab", bandwidth=Bandwidth(125e6), sections={"ours": {"address": "a:2"}}))
    assert not same_site(typed, Site("lab", bandwidth=Bandwidth(125e6)))
    assert not same_site(typed, Site("lab", load=LoadHosts("h:1", 1), sections=typed.sections))
