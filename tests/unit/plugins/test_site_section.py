"""A plugin reads its own section of a site, and tells the harness what it may know of the service."""

import msgspec
import pytest
from msgspec import Struct

from bench.config.site import Site
from bench.plugins import registry
from bench.plugins.site_section import ExternalService, SiteSection
from bench.units import Seconds


class Values(Struct, frozen=True, forbid_unknown_fields=True):
    """The section of a plugin that does not exist."""

    address: str
    timeout: Seconds = Seconds(1)


SECTION = SiteSection("ours", Values, lambda values: ExternalService(endpoints=[values.address]))


def test_a_section_that_the_site_does_not_have_is_none():
    """Neither its values nor its service exist."""
    assert SECTION.read(Site(sections={"theirs": Values("a:1")})) is None
    assert SECTION.service(Site()) is None


def test_a_section_is_read_whether_it_is_typed_or_not():
    """A run's record has plain values; quantities are read with their units."""
    assert SECTION.read(Site(sections={"ours": Values("a:1", Seconds(2))})) == Values("a:1", Seconds(2))
    assert SECTION.read(Site(sections={"ours": {"address": "a:1", "timeout": "2 s"}})) == Values("a:1", Seconds(2))


def test_the_service_is_what_the_plugin_says():
    """A service is on other hosts unless the plugin says otherwise."""
    service = SECTION.service(Site(sections={"ours": Values("a:1")}))
    assert service == ExternalService(endpoints=["a:1"])
    assert service.remote


def test_a_section_that_does_not_fit_its_type_is_an_error():
    """An unknown key is not passed over."""
    with pytest.raises(msgspec.ValidationError):
        SECTION.read(Site(sections={"ours": {"address": "a:1", "adress": "a:2"}}))


@pytest.mark.parametrize(("kind", "name", "section"), [pytest.param(*one, id=one[1]) for one in registry.sections()])
def test_the_sections_of_installed_plugins_do_not_share_a_key_with_the_site(kind, name, section):
    """The file's own keys stay what they are, and two plugins with one key have one type."""
    assert section.key not in {field.name for field in msgspec.structs.fields(Site)}
    assert registry.site_sections()[section.key] is section.type
    assert section.service(Site()) is None
