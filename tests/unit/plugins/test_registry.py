"""Plugins are found by their entry points, and a declaration that is none is refused."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bench.errors import PluginError, UsageError
from bench.plugins import registry
from bench.search.bisection import Bisection


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install one plugin of each kind, whose declaration is a class."""
    entry = EntryPoint("ours", "bench.search.bisection:Bisection", "bench.any")
    elsewhere = EntryPoint("theirs", "third_party.plugin:plugin", "bench.any")
    monkeypatch.setattr(registry, "_entry_points", lambda _: {"ours": entry, "theirs": elsewhere})


@pytest.mark.usefixtures("third_party")
def test_the_packages_of_all_plugins_are_known() -> None:
    """A plugin's package needs no edit of the harness."""
    assert registry.top_packages() == {"bench", "third_party"}


@pytest.mark.usefixtures("third_party")
def test_a_strategy_without_a_declaration_is_refused() -> None:
    """The line names what its entry point must give."""
    with pytest.raises(PluginError, match=r"the entry point bench\.search gives no SearchPlugin"):
        registry.strategy_factory("ours")


def test_a_plugin_whose_library_cannot_be_loaded_fails_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where there is no memory for it: the campaign saw a traceback."""
    (tmp_path / "large_library.py").write_text("raise ImportError('failed to map segment')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("ours", "large_library:plugin", "bench.search")
    monkeypatch.setattr(registry, "_entry_points", lambda _: {"ours": entry})
    with pytest.raises(PluginError, match=r"^ours failed to load: failed to map segment \(no memory for it"):
        registry.strategy_factory("ours")


def test_a_strategy_is_found_by_its_name_or_its_class() -> None:
    """A class of the user's own needs no declaration."""
    assert registry.strategy_factory("bisection") is Bisection
    assert registry.strategy_factory("bench.search.bisection:Bisection") is Bisection


def test_only_a_strategy_that_says_so_is_calibrated() -> None:
    """The intervals of one that is not installed are brackets."""
    strategies = ("two-counter", "bisection", "rfc2544", "gone")
    assert [registry.is_calibrated(name) for name in strategies] == [True, False, False, False]


@pytest.mark.parametrize("name", [":", "..x:y", "a b:c"])
def test_a_strategy_of_no_module_is_refused(name: str) -> None:
    """In one line."""
    with pytest.raises(UsageError, match="names no module"):
        registry.strategy_factory(name)


def test_an_ability_that_no_report_format_has_is_a_mistake_of_the_user() -> None:
    """The message is that of the caller."""
    assert callable(registry.find_report_ability(lambda plugin: plugin.compare, "none compares"))
    with pytest.raises(UsageError, match="none compares"):
        registry.find_report_ability(lambda _: None, "none compares")
